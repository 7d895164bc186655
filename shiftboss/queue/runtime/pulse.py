"""The heartbeat: prolongs the leases of one keeper, tells the record of the worker itself, and hears in the
answers whose end has been asked for and what is ordered of the worker."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence

from shiftboss.queue.contract import Lease, WorkerStatus
from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.loop import wait_for_event
from shiftboss.queue.runtime.ports import QueueClient

log = logging.getLogger("shiftboss.pulse")

BATCH = 500
BUSY_SECONDS = 1.0
LOOK_SECONDS = 0.1
"""Looks out of turn keep this distance, however many orders come."""


class Pulse:
    """`run_once()` waits for the next beat and makes it. While `failing`, no job may be leased.

    `cancel(held, cause)` is called where a held job should end, at each beat anew while it does not;
    `register(tasks)` where the record no longer knows the worker, `ordered(word)` where a person has ordered
    something of it, at each beat anew.
    """

    def __init__(
        self,
        *,
        period_seconds: float,
        client: QueueClient,
        clock: Callable[[], float],
        holdings: Holdings,
        children: Children,
        register: Callable[[Sequence[str]], Awaitable[None]],
        status: Callable[[int], WorkerStatus],
        cancel: Callable[[Held, str], None],
        ordered: Callable[[str], None],
    ) -> None:
        self.failing = False
        self._period = period_seconds
        self._client = client
        self._clock = clock
        self._holdings = holdings
        self._children = children
        self._register = register
        self._status = status
        self._cancel = cancel
        self._ordered = ordered
        self._next = clock()
        self._look = asyncio.Event()
        self._everything = False
        self._looked_at = -math.inf

    def look(self) -> None:
        """Ask for all leases at once, and not at the next beat."""
        self._everything = True
        self._look.set()

    async def run_once(self) -> bool:
        """One beat, or a look out of turn. How late a beat is sent is its lag; after a failure it comes sooner."""
        if looking := await wait_for_event(self._look, self._next - self._clock()):
            await asyncio.sleep(max(0.0, self._looked_at + LOOK_SECONDS - self._clock()))
        due = not looking or self._clock() >= self._next
        self._look.clear()
        everything, self._everything = self._everything, False
        self._looked_at = self._clock()
        try:
            await (self._beat(everything) if due else self._renew(everything))
        except BaseException:
            self.failing = True
            self._everything |= everything
            self._next = self._clock() + min(1.0, self._period / 5)
            raise
        self.failing = False
        return True

    async def _beat(self, everything: bool) -> None:
        lag_ms = round((self._clock() - self._next) * 1000)
        self._next = max(self._next + self._period, self._clock() + self._period / 2)
        await self._renew(everything)
        status = self._status(lag_ms)
        known = await self._client.worker_heartbeat(status)
        if known is None:
            await self._register(status.tasks)
        elif known.order is not None:
            self._ordered(known.order)

    async def _renew(self, everything: bool) -> None:
        stale = self._holdings.stale(math.inf if everything else self._clock() - self._period / 4)
        busy = False
        for start in range(0, len(stale), BATCH):
            busy |= await self._renew_batch([held.lease for held in stale[start : start + BATCH]])
        for executor in self._children.executors:
            executor.refresh_deadline()
        if busy:
            self._next = min(self._next, self._clock() + BUSY_SECONDS)
            self._everything |= everything

    async def _renew_batch(self, leases: list[Lease]) -> bool:
        sent_at = self._clock()
        answer = await self._client.heartbeat(leases)
        self._holdings.renewed(answer.renewed, sent_at)
        for lease, cause in answer.cancelled.items():
            if (held := self._holdings.get(lease)) is not None:
                self._cancel(held, cause)
        for lease in answer.lost:
            self._lose(lease)
        return bool(answer.busy)

    def _lose(self, lease: Lease) -> None:
        held = self._holdings.get(lease)
        if held is None:
            return  # it was settled while the heartbeat was under way
        held.lost = True
        log.warning("job.lease_lost", extra={"job": lease.job_id, "fence": lease.fence})
        self._cancel(held, Cause.LEASE_LOST)
