"""From a token to the end of a process: runs that outlive their time or do not hear that they are to end.

The token is set, with its cause. Who is still there `grace_seconds` later is *deaf*: its executor is *tainted*. It
takes no new job, gives back what has not begun, and a replacement starts at once. When its other runs are done it
is killed, with all that it has started; at once where there are none. Until then the deaf job stays leased, so
that no retry runs beside it. Only runs with a timeout or a cause are looked at.
"""

import asyncio
import logging
from collections.abc import Callable

from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.executor_process import ExecutorProcess
from shiftboss.queue.runtime.holdings import Held, Holdings

log = logging.getLogger("shiftboss.escalation")

LOOK_SECONDS = 0.1
ANSWER_SECONDS = 1.0
"""So long a tainted executor has to give back what has not begun."""
SILENT_SECONDS = 4.0
"""One that says nothing for so long, and for the grace, lets nobody in it go on; a busy machine is quicker."""


class Escalation:
    """`watch` and `ask` begin it for one run; `run_once()` is to be called again and again."""

    def __init__(
        self, *, grace_seconds: float, clock: Callable[[], float], holdings: Holdings, children: Children
    ) -> None:
        self._grace_seconds = grace_seconds
        self._clock = clock
        self._holdings = holdings
        self._children = children
        self._watched: set[Held] = set()
        self._some = asyncio.Event()

    def watch(self, held: Held) -> None:
        """See to it that a job with a timeout keeps it."""
        self._watched.add(held)
        self._some.set()

    def ask(self, held: Held, cause: Cause) -> None:
        """Ask a job in an executor's hands to end: given back where it has not begun. The first cause wins."""
        if held.cause is None:
            held.cause, held.asked_at = cause, self._clock()
        if held.executor is not None:
            held.executor.cancel(held, held.cause)
        self.watch(held)

    async def run_once(self) -> None:
        """Look once at all that is watched; waits while that is nothing."""
        if not self._watched and not self._children.tainted:
            self._some.clear()
            await self._some.wait()
        now = self._clock()
        for held in list(self._watched):
            if self._holdings.get(held.lease) is not held or held.deaf:
                self._watched.discard(held)
            elif held.executor is not None:
                self._look(held, held.executor, now)
        for executor in list(self._children.tainted):
            self._end(executor, now)

    def _look(self, held: Held, executor: ExecutorProcess, now: float) -> None:
        began_at = executor.began_at(held)
        if not began_at or executor.has_ended(held):
            return  # its outcome is on its way: however long that takes, it did not run that long
        if held.cause is None:
            if held.timeout_seconds is not None and now - began_at >= held.timeout_seconds:
                log.warning("job.timed_out", extra={"job": held.job.id, "fence": held.job.fence})
                self.ask(held, Cause.TIMEOUT)
        elif now - max(held.asked_at, began_at) >= self._grace_seconds:
            held.deaf = True
            facts = {"job": held.job.id, "fence": held.job.fence, "cause": held.cause, "pid": executor.pid}
            log.warning("job.deaf", extra=facts)
            self._children.taint(executor)

    def _end(self, executor: ExecutorProcess, now: float) -> None:
        """End a tainted executor where nothing runs in it that could still end well."""
        waited = now - executor.tainted_at
        if not executor.neighbours:
            if executor.answers or not executor.unstarted or waited >= ANSWER_SECONDS:
                self._children.put_down(executor)
        elif not executor.answers and waited >= max(SILENT_SECONDS, self._grace_seconds):
            # One handler holds the interpreter: no other can go on, and none would ever be done.
            log.warning("executor.silent", extra={"pid": executor.pid})
            self._children.put_down(executor)
