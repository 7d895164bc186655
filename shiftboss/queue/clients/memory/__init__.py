"""A record in memory: volatile, thread-safe, for one process, with the behaviour of the one in PostgreSQL.

For tests, for programs without a database, and as the second opinion on what the statements do.
"""

from shiftboss.queue.clients.memory.client import MemoryClient as MemoryClient
from shiftboss.queue.clients.memory.client import MemoryWakeups as MemoryWakeups
from shiftboss.queue.clients.memory.functions import Functions as Functions
from shiftboss.queue.clients.memory.store import MemoryStore as MemoryStore
