"""Executors that have done enough make room for fresh ones, and a worker that holds too much memory ends.

An executor that has run `max_jobs` jobs, or holds more than `max_rss_mb` after one, is *retired* (children.py).
Where the programs of a worker hold more than `max_worker_rss_mb` together, it drains, and whoever supervises it
starts another.
"""

import logging
import os
from collections.abc import Callable

from shiftboss.queue.runtime import usage
from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.executor_process import ExecutorProcess

log = logging.getLogger("shiftboss.wear")

LOOK_SECONDS = 1.0


class Wear:
    """`ended` after each outcome that has come, `run_once()` again and again; `give_up()` drains the worker."""

    def __init__(self, *, config: KeeperConfig, children: Children, give_up: Callable[[], None]) -> None:
        self.failure: str | None = None
        self._children = children
        self._give_up = give_up
        self._max_jobs = config.max_jobs
        self._max_kb = _kilobytes(config.max_rss_mb)
        self._max_worker_kb = _kilobytes(config.max_worker_rss_mb)

    def ended(self, executor: ExecutorProcess, jobs: int) -> None:
        """So many more of an executor's jobs have ended."""
        executor.jobs += jobs
        if self._max_jobs is not None and executor.jobs >= self._max_jobs:
            self._children.retire(executor, f"it has run {executor.jobs} jobs")

    async def run_once(self) -> None:
        """Look at the memory of all, and again at who could not be retired before."""
        for executor in [*self._children.shared, *self._children.solo]:
            if executor.ready and executor.jobs:
                self.ended(executor, 0)
                self._weigh(executor)
        if self._max_worker_kb is not None and self.failure is None:
            pids = (executor.pid for executor in self._children.executors)
            held = usage.of_processes([os.getpid(), *pids]).memory_kb or 0
            if held > self._max_worker_kb:
                self.failure = f"its programs hold {held // 1024} MB, which is more than `max_worker_rss_mb`"
                log.warning("worker.too_large", extra={"memory_kb": held, "limit_kb": self._max_worker_kb})
                self._give_up()

    def _weigh(self, executor: ExecutorProcess) -> None:
        if self._max_kb is None:
            return
        held = usage.of_processes([executor.pid]).memory_kb or 0
        if held > self._max_kb:
            self._children.retire(executor, f"it holds {held // 1024} MB")


def _kilobytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * 1024
