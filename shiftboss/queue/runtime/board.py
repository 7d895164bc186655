"""Shared memory between a keeper, its executors and its sentinel. It survives SIGKILL of any of them.

The *slot board* of an executor has a place (a *ticket*) for each job in its hands: one byte that the executor
sets when the handler starts and when it has ended, and the lease's expiry, which the keeper writes. After a
death the bytes tell which jobs had started. The *deadline board* of a keeper has a pid and a deadline for each
executor; the sentinel kills a process that is past its deadline.
"""

import mmap
import os
import struct
import tempfile

NOT_STARTED, STARTED, ENDED = 0, 1, 2
TICKETS = 4096
MAX_EXECUTORS = 1024

_EXPIRY = struct.Struct("=d")
_DEADLINE = struct.Struct("=qd")


def _shared_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("shiftboss-board")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


class SlotBoard:
    """The slot board of one executor; `fd` is inherited by it."""

    SIZE = TICKETS * (1 + _EXPIRY.size)

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _shared_file(self.SIZE) if fd is None else fd
        self._memory = mmap.mmap(self.fd, self.SIZE)

    def mark(self, ticket: int, state: int) -> None:
        """Set where the job with this ticket stands."""
        self._memory[ticket] = state

    def state(self, ticket: int) -> int:
        """NOT_STARTED, STARTED or ENDED."""
        return self._memory[ticket]

    def set_expiry(self, ticket: int, expires_at: float) -> None:
        """Write the lease's expiry, in seconds of the boot-time clock."""
        _EXPIRY.pack_into(self._memory, TICKETS + ticket * _EXPIRY.size, expires_at)

    def expiry(self, ticket: int) -> float:
        """When the lease expires, in seconds of the boot-time clock."""
        expires_at: float = _EXPIRY.unpack_from(self._memory, TICKETS + ticket * _EXPIRY.size)[0]
        return expires_at

    def close(self) -> None:
        """Unmap and close; the memory goes with the last process that holds it."""
        self._memory.close()
        os.close(self.fd)


class DeadlineBoard:
    """Pids and deadlines of a keeper's executors; a deadline of 0 means that nothing is in hand."""

    SIZE = MAX_EXECUTORS * _DEADLINE.size

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _shared_file(self.SIZE) if fd is None else fd
        self._memory = mmap.mmap(self.fd, self.SIZE)

    def write(self, place: int, pid: int, deadline: float) -> None:
        """Set the deadline of the executor at this place, in seconds of the boot-time clock."""
        _DEADLINE.pack_into(self._memory, place * _DEADLINE.size, pid, deadline)

    def read(self) -> list[tuple[int, int, float]]:
        """(place, pid, deadline) of all executors that have something in hand."""
        rows = enumerate(_DEADLINE.iter_unpack(self._memory))
        return [(place, pid, deadline) for place, (pid, deadline) in rows if pid and deadline]
