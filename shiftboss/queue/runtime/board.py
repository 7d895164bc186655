"""Shared memory between a keeper, its executors and its sentinel. It survives SIGKILL of any of them.

The *slot board* of an executor has a place (a *ticket*) for each job in its hands: one byte that the executor
sets when the handler starts and when it has ended, the time of that start, and the lease's expiry, which the
keeper writes. After a death the bytes tell which jobs had started. The *deadline board* of a keeper has a pid and
a deadline for each executor; the sentinel kills a process that is past its deadline.
"""

import mmap
import os
import tempfile

NOT_STARTED, STARTED, ENDED = 0, 1, 2
TICKETS = 4096
MAX_EXECUTORS = 1024

_WORD = 8


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

    SIZE = TICKETS * (2 * _WORD + 1)

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _shared_file(self.SIZE) if fd is None else fd
        self._memory = mmap.mmap(self.fd, self.SIZE)
        # Typed views write a whole word at once; `struct` would write zeros first, which the other side can see.
        whole = memoryview(self._memory)
        self._expiries = whole[: TICKETS * _WORD].cast("d")
        self._starts = whole[TICKETS * _WORD : 2 * TICKETS * _WORD].cast("d")
        self._states = whole[2 * TICKETS * _WORD :]

    def begin(self, ticket: int, at: float) -> None:
        """The handler starts now, in seconds of the boot-time clock."""
        self._starts[ticket] = at
        self._states[ticket] = STARTED

    def began_at(self, ticket: int) -> float:
        """When the handler started, in seconds of the boot-time clock; 0 where it has not."""
        return self._starts[ticket] if self._states[ticket] != NOT_STARTED else 0.0

    def mark(self, ticket: int, state: int) -> None:
        """Set where the job with this ticket stands."""
        self._states[ticket] = state

    def state(self, ticket: int) -> int:
        """NOT_STARTED, STARTED or ENDED."""
        return self._states[ticket]

    def set_expiry(self, ticket: int, expires_at: float) -> None:
        """Write the lease's expiry, in seconds of the boot-time clock."""
        self._expiries[ticket] = expires_at

    def expiry(self, ticket: int) -> float:
        """When the lease expires, in seconds of the boot-time clock."""
        return self._expiries[ticket]

    def close(self) -> None:
        """Let go; the memory goes with the last process that holds it."""
        os.close(self.fd)


class DeadlineBoard:
    """Pids and deadlines of a keeper's executors; a deadline of 0 means that nothing is in hand."""

    SIZE = MAX_EXECUTORS * _WORD * 2

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _shared_file(self.SIZE) if fd is None else fd
        whole = memoryview(mmap.mmap(self.fd, self.SIZE))
        self._pids = whole[: MAX_EXECUTORS * _WORD].cast("q")
        self._deadlines = whole[MAX_EXECUTORS * _WORD :].cast("d")

    def write(self, place: int, pid: int, deadline: float) -> None:
        """Set the deadline of the executor at this place, in seconds of the boot-time clock."""
        self._deadlines[place] = 0.0  # never an old deadline beside a new pid
        self._pids[place] = pid
        self._deadlines[place] = deadline

    def read(self) -> list[tuple[int, int, float]]:
        """(place, pid, deadline) of all executors that have something in hand."""
        return [
            (place, self._pids[place], deadline)
            for place, deadline in enumerate(self._deadlines)
            if deadline and self._pids[place]
        ]
