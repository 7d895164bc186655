"""The heartbeat: prolongs the leases of one keeper and tells the record of the worker itself."""

import asyncio
import logging
from collections.abc import Callable

from shiftboss.queue.contract import Lease, Registration, WorkerStatus
from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.holdings import Holdings
from shiftboss.queue.runtime.ports import QueueClient

log = logging.getLogger("shiftboss.pulse")

BATCH = 500
BUSY_SECONDS = 1.0


class Pulse:
    """`run_once()` waits for the next beat and makes it. While `failing`, no job may be leased."""

    def __init__(
        self,
        *,
        period_seconds: float,
        client: QueueClient,
        clock: Callable[[], float],
        holdings: Holdings,
        children: Children,
        registration: Registration,
        status: Callable[[int], WorkerStatus],
    ) -> None:
        self.failing = False
        self._period = period_seconds
        self._client = client
        self._clock = clock
        self._holdings = holdings
        self._children = children
        self._registration = registration
        self._status = status
        self._next = clock()

    async def run_once(self) -> bool:
        """One beat; how late it is sent is its lag. After a failure the next one comes sooner."""
        planned = self._next
        await asyncio.sleep(max(0.0, planned - self._clock()))
        lag_ms = round((self._clock() - planned) * 1000)
        self._next = max(planned + self._period, self._clock() + self._period / 2)
        try:
            await self._renew()
            status = self._status(lag_ms)
            if not await self._client.worker_heartbeat(status):
                await self._client.register(self._registration, status.tasks)
        except BaseException:
            self.failing = True
            self._next = self._clock() + min(1.0, self._period / 5)
            raise
        self.failing = False
        return True

    async def _renew(self) -> None:
        stale = self._holdings.stale(self._clock() - self._period / 4)
        for start in range(0, len(stale), BATCH):
            await self._renew_batch([held.job.lease for held in stale[start : start + BATCH]])
        for executor in self._children.executors:
            executor.refresh_deadline()

    async def _renew_batch(self, leases: list[Lease]) -> None:
        sent_at = self._clock()
        answer = await self._client.heartbeat(leases)
        self._holdings.renewed(answer.renewed, sent_at)
        for lease in answer.lost:
            self._lose(lease)
        if answer.busy:
            self._next = min(self._next, self._clock() + BUSY_SECONDS)

    def _lose(self, lease: Lease) -> None:
        held = self._holdings.get(lease)
        if held is None:
            return  # it was settled while the heartbeat was under way
        held.lost = True
        log.warning("job.lease_lost", extra={"job": lease.job_id, "fence": lease.fence})
        if held.executor is not None:
            held.executor.cancel(held, Cause.LEASE_LOST)
