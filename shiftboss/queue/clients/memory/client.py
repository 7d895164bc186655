"""A worker's way to a memory record: the same contract as over SQL."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shiftboss.queue.authority import System
from shiftboss.queue.contract import (
    Claimed,
    Heartbeat,
    Known,
    Lease,
    Mark,
    Note,
    Registration,
    Settlement,
    WorkerStatus,
)
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Quarantined, Released, Snoozed
from shiftboss.queue.runtime.ports import CANCEL

if TYPE_CHECKING:
    from shiftboss.queue.clients.memory.store import MemoryStore

SYSTEM = System()


class MemoryClient:
    """A `QueueClient` of one worker over a store that others may use too. Everything is done as `System`."""

    def __init__(
        self, store: "MemoryStore", *, queues: Sequence[str] = ("default",), lease_seconds: float = 30.0
    ) -> None:
        self._store = store
        self._queues = tuple(queues)
        self._lease_seconds = lease_seconds
        self._worker_id = 0

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of; the store goes on, for others too."""

    async def register(self, registration: Registration, tasks: Sequence[str]) -> int:
        """Announce the worker and remember its id."""
        known = self._worker_id or None
        self._worker_id = self._store.register(registration, authority=SYSTEM, tasks=tasks, worker_id=known)
        return self._worker_id

    async def worker_heartbeat(self, status: WorkerStatus) -> Known | None:
        """Say that the worker lives."""
        return self._store.worker_heartbeat(status, authority=SYSTEM, worker_id=self._worker_id)

    async def heartbeat(self, leases: Sequence[Lease]) -> Heartbeat:
        """Prolong leases."""
        return self._store.heartbeat(
            leases, authority=SYSTEM, worker_id=self._worker_id, lease_seconds=self._lease_seconds
        )

    async def claim(self, queue: str, tasks: Sequence[str], limit: int, after: Mark | None) -> list[Claimed]:
        """Lease available jobs."""
        return self._store.claim(
            authority=SYSTEM,
            worker_id=self._worker_id,
            queue=queue,
            tasks=tasks,
            limit=limit,
            lease_seconds=self._lease_seconds,
            after=after,
        )

    async def note(self, items: Sequence[tuple[Lease, Note]]) -> Settlement:
        """Keep what running handlers tell."""
        return self._store.note(items, authority=SYSTEM, worker_id=self._worker_id)

    async def revisions(self, revisions: Sequence[int]) -> dict[int, str]:
        """Configurations behind these revisions."""
        return self._store.revisions(revisions, authority=SYSTEM)

    async def complete(self, items: Sequence[tuple[Lease, Done]]) -> Settlement:
        """Finish jobs."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def fail(self, items: Sequence[tuple[Lease, Failed]]) -> Settlement:
        """Count failures."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def release(self, items: Sequence[tuple[Lease, Released]]) -> Settlement:
        """Give jobs back unharmed."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def snooze(self, items: Sequence[tuple[Lease, Snoozed]]) -> Settlement:
        """Put jobs off."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def discard(self, items: Sequence[tuple[Lease, Discarded]]) -> Settlement:
        """Give jobs up for good."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def quarantine(self, items: Sequence[tuple[Lease, Quarantined]]) -> Settlement:
        """Hold back jobs that cannot run at all."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def reap_own(self, items: Sequence[tuple[Lease, Lost]]) -> Settlement:
        """Settle what a dead executor had in hand."""
        return self._store.report(items, authority=SYSTEM, worker_id=self._worker_id)

    async def stage(self) -> int:
        """Cancel what is past its deadline, and make due jobs available."""
        return self._store.expire(authority=SYSTEM) + self._store.stage(authority=SYSTEM)

    async def reap(self) -> int:
        """Take jobs from expired leases."""
        return len(self._store.reap(authority=SYSTEM))

    async def waiting_tasks(self, tasks: Sequence[str]) -> list[str]:
        """Tasks that wait in the worker's queues and are not among `tasks`."""
        return self._store.waiting_tasks(authority=SYSTEM, queues=self._queues, tasks=tasks)


class MemoryWakeups:
    """`Wakeups` within the process."""

    def __init__(self, store: "MemoryStore") -> None:
        self._store = store

    async def listen(
        self, worker_id: int, *, woken: Callable[[str | None, int], None], ordered: Callable[[str], None]
    ) -> None:
        """Hand on what becomes available and orders to this worker, until cancelled."""
        loop = asyncio.get_running_loop()
        end = self._store.listen(
            worker_id,
            woken=lambda queue, priority: _hand_on(loop, woken, queue, priority),
            ordered=lambda: _hand_on(loop, ordered, CANCEL),
        )
        try:
            # What came before this moment has not been heard.
            woken(None, 0)
            ordered(CANCEL)
            await loop.create_future()
        finally:
            end()


def _hand_on(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *said: object) -> None:
    # The loop may be closing while a thread of somebody else's enqueues: a hint that is lost costs a poll.
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, *said)
