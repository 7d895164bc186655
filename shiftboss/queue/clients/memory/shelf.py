"""Where the memory record keeps its jobs: live ones by claim order and by key, and the last finished ones.

Not thread-safe by itself: `MemoryStore` holds its lock.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from shiftboss.queue.clients.memory.job import Job, Place
from shiftboss.queue.jobs import AttemptRow, EventRow
from shiftboss.queue.states import FINAL, State


class KeyTaken(Exception):
    """Another live job holds the key: what the unique index is in PostgreSQL."""


class Shelf:
    """`put` is the only way in, and keeps the orders and the keys; at most `keep_finished` finished jobs stay."""

    def __init__(self, keep_finished: int) -> None:
        self._keep_finished = keep_finished
        self.live: dict[int, Job] = {}
        self.finished: dict[int, Job] = {}
        self.attempts: defaultdict[int, list[AttemptRow]] = defaultdict(list)
        self.events: defaultdict[int, list[EventRow]] = defaultdict(list)
        self.running: defaultdict[str, set[int]] = defaultdict(set)
        self._queues: defaultdict[str, list[Place]] = defaultdict(list)
        # The holder of a key, and the follow-up that waits for it.
        self._keys: dict[tuple[str, bool], int] = {}
        self._undo: list[tuple[int, Job | None]] | None = None

    def get(self, job_id: int) -> Job | None:
        """A job, live or finished."""
        return self.live.get(job_id) or self.finished.get(job_id)

    def holder(self, key: str | None, *, follow_up: bool = False) -> Job | None:
        """The live job that holds the key, or the follow-up that waits for it."""
        return None if key is None else self.live.get(self._keys.get((key, follow_up), 0))

    def available(self, queue: str, after: Place | None) -> Iterator[Job]:
        """Available jobs of a queue in the order of their claims; with `after` of that priority only, past it."""
        places = self._queues[queue]
        for place in places[0 if after is None else bisect_left(places, after) :]:
            if after is None or (place > after and place[0] == after[0]):
                yield self.live[place[2]]

    def put(self, job: Job) -> None:
        """Take a job in, in the place of what it was before. Raises KeyTaken, and leaves all as it was."""
        before, slot = self.live.get(job.id), _slot(job)
        if slot is not None and self._keys.get(slot, job.id) != job.id:
            raise KeyTaken(job.key)
        if self._undo is not None:
            self._undo.append((job.id, before))
        self._remove(before)
        if job.state in FINAL:
            self.finished[job.id] = job
            self._trim()
            return
        self.live[job.id] = job
        if slot is not None:
            self._keys[slot] = job.id
        if job.state is State.AVAILABLE:
            insort(self._queues[job.queue], job.place)
        elif job.state is State.RUNNING:
            self.running[job.queue].add(job.id)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Undo what was put within the block where it raises."""
        self._undo = []
        try:
            yield
        except BaseException:
            undo, self._undo = self._undo, None
            for job_id, before in reversed(undo):
                self._remove(self.live.get(job_id))
                self.finished.pop(job_id, None)
                if before is not None:
                    self.put(before)
            raise
        finally:
            self._undo = None

    def _remove(self, job: Job | None) -> None:
        if job is None:
            return
        del self.live[job.id]
        if (slot := _slot(job)) is not None:
            del self._keys[slot]
        self.running[job.queue].discard(job.id)
        if job.state is State.AVAILABLE:
            places = self._queues[job.queue]
            del places[bisect_left(places, job.place)]

    def _trim(self) -> None:
        while len(self.finished) > self._keep_finished:
            oldest = next(iter(self.finished))
            for shelf in (self.finished, self.attempts, self.events):
                shelf.pop(oldest, None)


def _slot(job: Job) -> tuple[str, bool] | None:
    """The key that a live job holds: none in the quarantine."""
    return (
        None
        if job.key is None or job.state in FINAL or job.state is State.QUARANTINED
        else (job.key, job.follow_up)
    )
