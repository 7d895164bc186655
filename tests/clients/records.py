"""Both records behind one face, so that one test body holds them to the same behaviour."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import LocalClient, LocalWakeups
from shiftboss.queue.clients.memory import MemoryStore
from shiftboss.queue.contract import Claimed, Heartbeat, Lease, Mark, Note, Registration, Settlement
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.runtime.ports import QueueClient, Wakeups
from shiftboss.queue.store import enqueue, lease, notes, operate, queues, read, upkeep, workers
from shiftboss.queue.store.statement import run
from tests.clients.conftest import keeper_config
from tests.store import making
from tests.store.making import TASK

R = TypeVar("R")
SYSTEM = System()
TIMES = ("due_at", "deadline", "enqueued_at", "started_at", "lease_expires_at", "quarantined_at")


class Record(Protocol):
    """A record as the tests use it: the verbs and reads of `MemoryStore`, and what follows."""

    def __getattr__(self, name: str) -> Any: ...

    def later(self, seconds: float) -> None:
        """Let so much time pass."""

    def client(self, *, queues: Sequence[str], lease_seconds: float) -> QueueClient:
        """A worker's way to it."""

    def wakeups(self) -> Wakeups:
        """Its hints."""


class MemoryRecord(MemoryStore):
    """The memory record, with a clock that can be put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        super().__init__(clock=lambda: datetime.now(UTC) + self.ahead)

    def later(self, seconds: float) -> None:
        """Put the clock forward."""
        self.ahead += timedelta(seconds=seconds)


class SqlRecord:
    """The record in PostgreSQL, its verbs run on Django's connection."""

    _homes = {
        **dict.fromkeys(("enqueue", "enqueue_many"), enqueue),
        **dict.fromkeys(("register", "worker_heartbeat", "waiting_tasks"), workers),
        **dict.fromkeys(("claim", "heartbeat"), lease),
        **dict.fromkeys(("cancel", "expedite", "reinstate", "discard", "quarantine"), operate),
        **dict.fromkeys(("reprioritise", "reschedule", "rerun"), operate),
        **dict.fromkeys(("stage", "expire"), upkeep),
        **dict.fromkeys(("job", "jobs", "attempts", "events", "revisions"), read),
        **dict.fromkeys(("pause", "resume"), queues),
        "note": notes,
    }
    _reports = {
        Done: lease.complete,
        Failed: lease.fail,
        Released: lease.release,
        Snoozed: lease.snooze,
        Discarded: lease.discard,
        Quarantined: lease.quarantine,
        Lost: lease.reap_own,
    }

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._homes[name], name)
        return lambda *args, **kwargs: run(verb(*args, **kwargs))

    def report(self, items: Sequence[tuple[Lease, Outcome]], *, authority: Any, worker_id: int) -> Settlement:
        """The outcomes by their kinds."""
        answer = Settlement()
        for kind, verb in self._reports.items():
            if of_kind := [item for item in items if isinstance(item[1], kind)]:
                answer.add(run(verb(of_kind, authority=authority, worker_id=worker_id)))
        return answer

    def reap(self, *, authority: Any) -> list[int]:
        """The ids of what was reaped."""
        return [job.id for job in run(upkeep.reap(authority=authority))]

    def limit(self, queue: str, *, authority: Any, concurrency: int | None, sequential: bool = False) -> None:
        """A person's limit."""
        run(queues.limit(queue, queues.Limit(concurrency, sequential), authority=authority, by="kim"))

    def later(self, seconds: float) -> None:
        """Move all that is stored into the past: the database owns the clock."""
        moved = ", ".join(f"{name} = {name} - make_interval(secs => {seconds!r})" for name in TIMES)
        making.execute(f"update shiftboss_job set {moved}")

    def client(self, *, queues: Sequence[str], lease_seconds: float) -> LocalClient:
        """A worker's client on connections of its own."""
        return LocalClient(keeper_config(making.address(), queues=tuple(queues), lease_seconds=lease_seconds))

    def wakeups(self) -> LocalWakeups:
        """Hints by notification."""
        return LocalWakeups(making.address())


class Seat:
    """A registered worker's client, driven by one thread: each call is waited for."""

    def __init__(
        self,
        record: Record,
        *,
        queues: Sequence[str] = ("default",),
        lease_seconds: float = 30.0,
        pid: int = 1,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._loop = loop
        self.client = record.client(queues=queues, lease_seconds=lease_seconds)
        self.registration = Registration(
            pool="default",
            host="web-1",
            pid=pid,
            code_version=None,
            queues=tuple(queues),
            processes=1,
            threads=8,
            lease_seconds=lease_seconds,
            heartbeat_seconds=5,
        )
        self.do(self.client.open())
        self.id = self.do(self.client.register(self.registration, [TASK]))

    def do(self, call: Coroutine[Any, Any, R]) -> R:
        """Wait for a call of the client."""
        return self._loop.run_until_complete(call)

    def claim(
        self, n: int = 1, *, queue: str = "default", tasks: Sequence[str] = (TASK,), after: Mark | None = None
    ) -> list[Claimed]:
        """Lease jobs."""
        return self.do(self.client.claim(queue, tasks, n, after))

    def claimed(self, n: int = 1) -> list[Lease]:
        """Leases of so many jobs, which are there."""
        jobs = self.claim(n)
        assert len(jobs) == n
        return [job.lease for job in jobs]

    def heartbeat(self, *leases: Lease) -> Heartbeat:
        """Prolong leases."""
        return self.do(self.client.heartbeat(leases))

    def note(self, *items: tuple[Lease, Note]) -> Settlement:
        """Tell something."""
        return self.do(self.client.note(items))

    def report(self, leases: Lease | Sequence[Lease], outcome: Outcome) -> Settlement:
        """End runs in this way."""
        client = self.client
        writes: dict[type, Any] = {
            Done: client.complete,
            Failed: client.fail,
            Released: client.release,
            Snoozed: client.snooze,
            Discarded: client.discard,
            Quarantined: client.quarantine,
            Lost: client.reap_own,
        }
        leases = [leases] if isinstance(leases, Lease) else leases
        answer: Settlement = self.do(writes[type(outcome)]([(one, outcome) for one in leases]))
        return answer

    def close(self) -> None:
        """Close the client."""
        self.do(self.client.close())
