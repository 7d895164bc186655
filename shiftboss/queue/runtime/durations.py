"""How long handlers take, as measured: the base of prefetching."""

AHEAD_SECONDS = 0.25
"""Work that a worker leases ahead of its free slots."""

QUEUED_SECONDS = 0.1
"""Work that waits inside an executor, so that no thread idles between two messages."""

MAX_AHEAD = 500
_WEIGHT = 0.1
_SHORTEST = 1e-6


AHEAD_BYTES = 16 * 1024 * 1024
"""Arguments, as JSON, that a worker leases ahead: large ones must not fill its memory."""


class Durations:
    """Moving averages: run times in seconds, for each task and for all together, and the size of arguments."""

    def __init__(self) -> None:
        self._by_task: dict[str, float] = {}
        self._overall: float | None = None
        self._bytes = 0.0

    def leased(self, size: int) -> None:
        """Take in the size of a leased job's arguments, in characters of JSON."""
        self._bytes += _WEIGHT * (size - self._bytes)

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
        by_time = int(slots * AHEAD_SECONDS / max(self._overall, _SHORTEST))
        return min(MAX_AHEAD, by_time, int(AHEAD_BYTES / max(self._bytes, 1.0)))

    def queued(self, task: str, threads: int) -> int:
        """Jobs of this task that may wait inside an executor; 0 for a slow or unmeasured task."""
        seconds = self._by_task.get(task)
        if seconds is None:
            return 0
        return min(MAX_AHEAD, int(threads * QUEUED_SECONDS / max(seconds, _SHORTEST)))
