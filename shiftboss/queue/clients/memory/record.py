"""What all verbs of the memory record share: the lock, the shelf, the wake-ups, the events."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from threading import RLock
from typing import Any

from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.clients.memory.shelf import Shelf
from shiftboss.queue.contract import (
    Registration,
    WorkerStatus,
)
from shiftboss.queue.jobs import (
    EventRow,
)
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import FINAL, State

MAX_EVENTS = 1000
"""Events kept of one job, the newest."""

Woken = Callable[[str | None, int], None]


def utc_now() -> datetime:
    """The time, aware."""
    return datetime.now(UTC)


class Record:
    """The state of a memory record. Whoever touches it holds `_turn`."""

    def __init__(self, *, clock: Callable[[], datetime] = utc_now, keep_finished: int = 10_000) -> None:
        self._clock = clock
        self._turn = RLock()
        self._shelf = Shelf(keep_finished)
        self._last_id = 0
        self._last_worker_id = 0
        self._workers: dict[int, tuple[Registration, WorkerStatus | None]] = {}
        self._paused: dict[str, tuple[datetime, str, str]] = {}
        self._revisions: dict[int, str] = {}
        # How many jobs of a queue run at once, and whether in strict order; there, which one has begun.
        self._limits: dict[str, tuple[int, bool]] = {}
        self._lines: dict[str, int] = {}
        self._listeners: dict[object, tuple[int, Woken, Callable[[], None]]] = {}

    def listen(self, worker_id: int, *, woken: Woken, ordered: Callable[[], None]) -> Callable[[], None]:
        """Call back, under the store's lock, when jobs become available and when this worker should look.

        The answer ends it.
        """
        place = object()
        with self._turn:
            self._listeners[place] = worker_id, woken, ordered

        def end() -> None:
            with self._turn:
                self._listeners.pop(place, None)

        return end

    def _revision(self, config: TaskConfig | None) -> int | None:
        """Keep a configuration, and tell its number."""
        if config is None:
            return None
        self._revisions[config.revision] = config.to_json()
        return config.revision

    def _put(self, job: Job) -> None:
        before = self._shelf.live.get(job.id)
        self._shelf.put(job)
        rests = job.state in FINAL or job.state is State.QUARANTINED
        if rests and self._lines.get(job.queue) == job.id:
            del self._lines[job.queue]
        changed = before is None or (before.state, before.priority) != (job.state, job.priority)
        if job.state is State.AVAILABLE and changed:
            self._wake(job.queue, job.priority)

    def _wake(self, queue: str, priority: int) -> None:
        for _, woken, _ in list(self._listeners.values()):
            woken(queue, priority)

    def _tell(
        self,
        job_id: int,
        kind: str,
        data: Any,
        *,
        worker_id: int | None = None,
        fence: int | None = None,
    ) -> None:
        events = self._shelf.events[job_id]
        seq = events[-1].seq + 1 if events else 1
        events.append(EventRow(job_id, seq, self._clock(), kind, worker_id, fence, json.dumps(data)))
        del events[:-MAX_EVENTS]
