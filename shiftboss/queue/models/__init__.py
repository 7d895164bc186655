"""The tables as Django models: windows for reading. The store is the only door for writing.

The tables themselves, their constraints and indexes are made by the migrations in SQL.
"""

from shiftboss.queue.models.hosts import Command as Command
from shiftboss.queue.models.hosts import Hold as Hold
from shiftboss.queue.models.hosts import Host as Host
from shiftboss.queue.models.hosts import Process as Process
from shiftboss.queue.models.hosts import Roll as Roll
from shiftboss.queue.models.hosts import RollStep as RollStep
from shiftboss.queue.models.hosts import Scale as Scale
from shiftboss.queue.models.jobs import Attempt as Attempt
from shiftboss.queue.models.jobs import Event as Event
from shiftboss.queue.models.jobs import Finished as Finished
from shiftboss.queue.models.jobs import Job as Job
from shiftboss.queue.models.jobs import Purge as Purge
from shiftboss.queue.models.jobs import Revision as Revision
from shiftboss.queue.models.jobs import Waiter as Waiter
from shiftboss.queue.models.people import Audit as Audit
from shiftboss.queue.models.people import Token as Token
from shiftboss.queue.models.queues import Backfill as Backfill
from shiftboss.queue.models.queues import BackfillItem as BackfillItem
from shiftboss.queue.models.queues import Histogram as Histogram
from shiftboss.queue.models.queues import Mark as Mark
from shiftboss.queue.models.queues import Queue as Queue
from shiftboss.queue.models.queues import Sample as Sample
from shiftboss.queue.models.queues import Slot as Slot
from shiftboss.queue.models.window import ReadOnly as ReadOnly
from shiftboss.queue.models.workers import Worker as Worker
