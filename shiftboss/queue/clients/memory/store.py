"""The memory record: all verbs and reads, named as those of `store/` and with their answers; saved and loaded."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path

from shiftboss.queue.clients.memory import file
from shiftboss.queue.clients.memory.client import MemoryClient, MemoryWakeups
from shiftboss.queue.clients.memory.enqueue import Enqueueing
from shiftboss.queue.clients.memory.lease import Leasing
from shiftboss.queue.clients.memory.operate import Operating
from shiftboss.queue.clients.memory.read import Reading
from shiftboss.queue.clients.memory.record import utc_now
from shiftboss.queue.clients.memory.upkeep import Upkeep
from shiftboss.queue.states import State


class MemoryStore(Enqueueing, Leasing, Operating, Upkeep, Reading):
    """Jobs in memory, gone with the process unless saved.

    Every verb is one step under one lock, so that threads see it whole or not at all. `clock` gives aware times;
    of finished jobs the last `keep_finished` are kept.
    """

    def client(self, *, queues: Sequence[str] = ("default",), lease_seconds: float = 30.0) -> MemoryClient:
        """A worker's way to this store, such as `Worker` takes; each worker has one of its own."""
        return MemoryClient(self, queues=queues, lease_seconds=lease_seconds)

    def wakeups(self) -> MemoryWakeups:
        """What spares a worker the waiting for its next poll."""
        return MemoryWakeups(self)

    def save(self, path: str | Path) -> None:
        """Write all jobs to a JSON file, in one step: whoever reads it finds the old one or the new one."""
        with self._turn:
            text = file.dump(self._content())
        file.write(Path(path), text)

    def _content(self) -> file.Saved:
        shelf = self._shelf
        return file.Saved(
            jobs=[*shelf.finished.values(), *shelf.live.values()],
            attempts=list(chain.from_iterable(shelf.attempts.values())),
            events=list(chain.from_iterable(shelf.events.values())),
            paused=self._paused,
            limits=self._limits,
            lines=self._lines,
            revisions=self._revisions,
            last_id=self._last_id,
            last_worker_id=self._last_worker_id,
        )

    @classmethod
    def load(
        cls, path: str | Path, *, clock: Callable[[], datetime] = utc_now, keep_finished: int = 10_000
    ) -> "MemoryStore":
        """The store that was saved. Raises ValueError where the file is none, or of another version.

        Jobs that ran when it was saved have lost their worker with its process: each is reaped, which counts as a
        loss, so that a job that ends its process every time is held back at its limit. Their fences are kept, so
        that nothing of the old process can still write.
        """
        store = cls(clock=clock, keep_finished=keep_finished)
        store._restore(file.read(Path(path)))
        return store

    def _restore(self, saved: file.Saved) -> None:
        self._paused, self._limits, self._lines = saved.paused, saved.limits, saved.lines
        self._revisions, self._last_id, self._last_worker_id = saved.revisions, saved.last_id, saved.last_worker_id
        for job in saved.jobs:
            self._shelf.put(job)
        for attempt in saved.attempts:
            self._shelf.attempts[attempt.job_id].append(attempt)
        for event in saved.events:
            self._shelf.events[event.job_id].append(event)
        for job in list(self._shelf.live.values()):
            if job.state is State.RUNNING:
                self._reap(job, self._clock(), file.RESTORED)
