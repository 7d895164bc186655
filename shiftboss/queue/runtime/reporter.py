"""Carries outcomes to the record, in batches, and keeps them until the record has answered for each."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.runtime.budget import Budget
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.ports import QueueClient

log = logging.getLogger("shiftboss.reporter")

MAX_BATCH = 1000
MAX_BATCH_CHARACTERS = 8 * 1024 * 1024
BUSY_SECONDS = 1.0

Write = Callable[[Sequence[tuple[Lease, Any]]], Awaitable[Settlement]]


class Reporter:
    """A queue of outcomes for each kind; `run_once()` writes one batch of each.

    While the record cannot be reached nothing is lost: `trouble` is set, and the keeper leases no more. What
    took too long as one batch comes again in smaller ones.
    `characters` is the size of the results and tracebacks that wait; `settled` is told of what the record holds.
    """

    def __init__(
        self, client: QueueClient, holdings: Holdings, *, settled: Callable[[Held, Outcome], None] | None = None
    ) -> None:
        self._holdings = holdings
        self._settled = settled
        self._writes: tuple[tuple[type[Outcome], Write], ...] = (
            (Done, client.complete),
            (Failed, client.fail),
            (Released, client.release),
            (Snoozed, client.snooze),
            (Discarded, client.discard),
            (Quarantined, client.quarantine),
            (Lost, client.reap_own),
        )
        self._pending: dict[type[Outcome], deque[tuple[Lease, Outcome]]] = {
            kind: deque() for kind, _ in self._writes
        }
        # Of tasks that ask for `durable="each"`: each is written alone, and waits for no batch of another kind.
        self._alone: deque[tuple[Lease, Outcome]] = deque()
        self._budget = Budget(MAX_BATCH, MAX_BATCH_CHARACTERS)
        self._some = asyncio.Event()
        self._busy = 0
        self.characters = 0
        self.trouble = False

    def add(self, held: Held, outcome: Outcome) -> None:
        """Take an outcome for the next batch, or to be written alone where the job's task asks for that."""
        alone = held.config is not None and held.config.durable == "each"
        queue = self._alone if alone else self._pending[type(outcome)]
        queue.append((held.lease, outcome))
        self.characters += _size(outcome)
        self._some.set()

    @property
    def pending(self) -> int:
        """Outcomes that the record has not answered for."""
        return self._busy + len(self._alone) + sum(map(len, self._pending.values()))

    async def run_once(self) -> bool:
        """Wait for outcomes and write a batch of each kind, and alone what asks for that.

        What could not be written stays where it was.
        Raises the first error after all kinds have had their turn: none holds up the others.
        """
        await self._some.wait()
        self._some.clear()
        errors: list[Exception] = []
        for kind, write in self._writes:
            await self._write_alone(errors)
            if queue := self._pending[kind]:
                try:
                    await self._write(queue, write, _take(queue, self._budget))
                except Exception as error:
                    errors.append(error)
        await self._write_alone(errors)
        self.trouble = bool(errors)
        if self._alone or any(self._pending.values()):
            self._some.set()
        if errors:
            raise errors[0]
        return True

    async def _write_alone(self, errors: list[Exception]) -> None:
        """Write those that have come by now, one by one until the first error: then it is the others' turn."""
        writes = dict(self._writes)
        for _ in range(0 if errors else len(self._alone)):
            item = self._alone.popleft()
            try:
                await self._write(self._alone, writes[type(item[1])], [item])
            except Exception as error:
                errors.append(error)
                self._alone.rotate(-1)
                return

    async def _write(
        self, queue: deque[tuple[Lease, Outcome]], write: Write, batch: Sequence[tuple[Lease, Outcome]]
    ) -> None:
        self._busy += len(batch)
        try:
            settlement = await write(batch)
        except BaseException:
            queue.extendleft(reversed(batch))
            self._budget.failed()
            raise
        finally:
            self._busy -= len(batch)
        self._budget.passed()
        self._answered(queue, batch, settlement)

    def _answered(
        self, queue: deque[tuple[Lease, Outcome]], batch: Sequence[tuple[Lease, Outcome]], settlement: Settlement
    ) -> None:
        if self._settled is not None:
            for lease, outcome in batch:
                if lease in settlement.settled and (held := self._holdings.get(lease)) is not None:
                    self._settled(held, outcome)
        self._holdings.drop(settlement.settled)
        self._holdings.drop(settlement.lost)
        self.characters -= sum(_size(outcome) for lease, outcome in batch if lease not in settlement.busy)
        for lease in sorted(settlement.lost):
            log.warning("job.write_rejected", extra={"job": lease.job_id, "fence": lease.fence})
        if settlement.busy:
            again = [item for item in batch if item[0] in settlement.busy]
            self._busy += len(again)
            asyncio.get_running_loop().call_later(BUSY_SECONDS, self._offer_again, queue, again)

    def _offer_again(self, queue: deque[tuple[Lease, Outcome]], items: list[tuple[Lease, Outcome]]) -> None:
        self._busy -= len(items)
        queue.extend(items)
        self._some.set()


def _take(queue: deque[tuple[Lease, Outcome]], budget: Budget) -> list[tuple[Lease, Outcome]]:
    """Take a batch out: bounded in number and in size, so that no statement takes long."""
    batch: list[tuple[Lease, Outcome]] = []
    characters = 0
    while queue and len(batch) < budget.rows and (not batch or characters < budget.characters):
        item = queue.popleft()
        batch.append(item)
        characters += _size(item[1])
    return batch


def _size(outcome: Outcome) -> int:
    match outcome:
        case Done():
            return len(outcome.result) if outcome.result is not None else 0
        case Failed():
            return len(outcome.traceback)
    return 0
