"""How long handlers take, as measured: the base of prefetching."""

AHEAD_SECONDS = 0.25
"""Work that a worker leases ahead of its free slots."""

QUEUED_SECONDS = 0.1
"""Work that waits inside an executor, so that no thread idles between two messages."""

MAX_AHEAD = 500
_WEIGHT = 0.1
_SHORTEST = 1e-6


class Durations:
    """Moving averages of run times in seconds: for each task, and for all together."""

    def __init__(self) -> None:
        self._by_task: dict[str, float] = {}
        self._overall: float | None = None

    def add(self, task: str, seconds: float) -> None:
        """Take in one run."""
        known = self._by_task.get(task)
        self._by_task[task] = seconds if known is None else known + _WEIGHT * (seconds - known)
        overall = self._overall
        self._overall = seconds if overall is None else overall + _WEIGHT * (seconds - overall)

    def prefetch(self, slots: int) -> int:
        """Jobs that make about `AHEAD_SECONDS` of work for so many slots; 0 until something was measured."""
        if self._overall is None:
            return 0
        return min(MAX_AHEAD, int(slots * AHEAD_SECONDS / max(self._overall, _SHORTEST)))

    def queued(self, task: str, threads: int) -> int:
        """Jobs of this task that may wait inside an executor; 0 for a slow or unmeasured task."""
        seconds = self._by_task.get(task)
        if seconds is None:
            return 0
        return min(MAX_AHEAD, int(threads * QUEUED_SECONDS / max(seconds, _SHORTEST)))
