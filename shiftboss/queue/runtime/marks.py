"""Where in each queue the next claim starts: plain bookkeeping, no I/O.

Dead index entries pile up below the jobs that are still there, most of all while an old snapshot is held open.
So a claim starts past the last job claimed (the *low-water mark*), and a *sweep* from the bottom of the queue
finds what came in below it: late commits, retries, other priorities. Sweeps run at least every second, and as
often as they are cheap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shiftboss.queue.contract import Claimed, Mark

SWEEP_SECONDS = 1.0
SHORTEST_SWEEP_SECONDS = 0.05
SWEEP_SHARE = 20
"""A sweep that took t is followed by claims past the mark for 20·t."""


@dataclass(slots=True)
class _Place:
    mark: Mark | None = None
    sweep_at: float = 0.0
    quiet_until: float = 0.0
    woken: bool = False  # since the last claim began


class Marks:
    """The marks of one worker over its queues. Times are seconds of any steady clock."""

    def __init__(self, queues: Iterable[str], *, poll_seconds: float) -> None:
        self._places = {queue: _Place() for queue in queues}
        self._poll_seconds = poll_seconds

    def open_queues(self, now: float) -> list[str]:
        """Queues in which a claim may find something, the longest unserved first."""
        return [queue for queue, place in self._places.items() if now >= place.quiet_until]

    def start(self, queue: str, now: float) -> Mark | None:
        """The mark to claim past, or None for a sweep from the bottom. It is the other queues' turn then."""
        place = self._places[queue] = self._places.pop(queue)
        place.woken = False
        return place.mark if now < place.sweep_at else None

    def claimed(
        self, queue: str, after: Mark | None, jobs: Sequence[Claimed], *, limit: int, began: float, now: float
    ) -> None:
        """Note what a claim of at most `limit` jobs that began at `began` brought."""
        place = self._places[queue]
        if after is None:
            pause = max(SHORTEST_SWEEP_SECONDS, SWEEP_SHARE * (now - began))
            place.sweep_at = now + min(SWEEP_SECONDS, pause)
        if jobs:
            place.mark = Mark(jobs[-1].priority, jobs[-1].due_at, jobs[-1].id)
        if place.woken:
            # What the notification meant may have been committed after the claim had looked.
            place.sweep_at = place.quiet_until = 0.0
        elif len(jobs) < limit:
            place.quiet_until = now + self._poll_seconds if after is None else place.sweep_at

    def wake(self, queue: str, priority: int) -> None:
        """A notification: something of this priority became available."""
        if (place := self._places.get(queue)) is not None:
            place.woken = True
            place.quiet_until = 0.0
            if place.mark is not None and place.mark.priority != priority:
                place.sweep_at = 0.0

    def reopen(self) -> None:
        """Claim from every queue again at once, from wherever its mark stands."""
        for place in self._places.values():
            place.woken = True
            place.quiet_until = 0.0

    def next_try(self) -> float:
        """When the first of the queues is open again."""
        return min(place.quiet_until for place in self._places.values())
