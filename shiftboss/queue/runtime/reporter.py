"""Carries outcomes to the record, in batches, and keeps them until the record has answered for each."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.outcomes import Done, Failed, Lost, Outcome, Quarantined, Released
from shiftboss.queue.runtime.holdings import Holdings
from shiftboss.queue.runtime.ports import QueueClient

log = logging.getLogger("shiftboss.reporter")

MAX_BATCH = 1000
BUSY_SECONDS = 1.0

Write = Callable[[Sequence[tuple[Lease, Any]]], Awaitable[Settlement]]


class Reporter:
    """A queue of outcomes for each kind; `run_once()` writes one batch of each.

    While the record cannot be reached nothing is lost: `trouble` is set, and the keeper leases no more.
    """

    def __init__(self, client: QueueClient, holdings: Holdings) -> None:
        self._holdings = holdings
        self._writes: tuple[tuple[type[Outcome], Write], ...] = (
            (Done, client.complete),
            (Failed, client.fail),
            (Released, client.release),
            (Quarantined, client.quarantine),
            (Lost, client.reap_own),
        )
        self._pending: dict[type[Outcome], deque[tuple[Lease, Outcome]]] = {
            kind: deque() for kind, _ in self._writes
        }
        self._some = asyncio.Event()
        self._busy = 0
        self.trouble = False

    def add(self, lease: Lease, outcome: Outcome) -> None:
        """Take an outcome for the next batch."""
        self._pending[type(outcome)].append((lease, outcome))
        self._some.set()

    @property
    def pending(self) -> int:
        """Outcomes that the record has not answered for."""
        return self._busy + sum(map(len, self._pending.values()))

    async def run_once(self) -> bool:
        """Wait for outcomes and write a batch of each kind; StoreUnavailable leaves them where they were."""
        await self._some.wait()
        self._some.clear()
        for kind, write in self._writes:
            if queue := self._pending[kind]:
                await self._write(queue, write)
        if any(self._pending.values()):
            self._some.set()
        return True

    async def _write(self, queue: deque[tuple[Lease, Outcome]], write: Write) -> None:
        batch = [queue.popleft() for _ in range(min(len(queue), MAX_BATCH))]
        self._busy += len(batch)
        try:
            settlement = await write(batch)
        except BaseException:
            queue.extendleft(reversed(batch))
            self._some.set()
            self.trouble = True
            raise
        finally:
            self._busy -= len(batch)
        self.trouble = False
        self._answered(queue, batch, settlement)

    def _answered(
        self, queue: deque[tuple[Lease, Outcome]], batch: Sequence[tuple[Lease, Outcome]], settlement: Settlement
    ) -> None:
        self._holdings.drop(settlement.settled)
        self._holdings.drop(settlement.lost)
        for job_id in sorted(settlement.lost):
            log.warning("job.write_rejected", extra={"job": job_id})
        if settlement.busy:
            again = [item for item in batch if item[0].job_id in settlement.busy]
            self._busy += len(again)
            asyncio.get_running_loop().call_later(BUSY_SECONDS, self._offer_again, queue, again)

    def _offer_again(self, queue: deque[tuple[Lease, Outcome]], items: list[tuple[Lease, Outcome]]) -> None:
        self._busy -= len(items)
        queue.extend(items)
        self._some.set()
