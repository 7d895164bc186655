"""The verbs that helpers use, on Django's own connection or on a store in memory: alike in name and answer."""

from collections.abc import Sequence
from typing import Any, Protocol

from shiftboss.queue.authority import System
from shiftboss.queue.contract import Claimed, Lease, Note, Registration, WorkerStatus
from shiftboss.queue.errors import NotStorable
from shiftboss.queue.jobs import JobDetail, JobRow
from shiftboss.queue.outcomes import Discarded, Done, Failed, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.states import State
from shiftboss.queue.store import lease, notes, operate, read, upkeep, workers
from shiftboss.queue.store.statement import run

SYSTEM = System()
REPORTS: dict[type[Any], Any] = {
    Done: lease.complete,
    Failed: lease.fail,
    Released: lease.release,
    Snoozed: lease.snooze,
    Discarded: lease.discard,
    Quarantined: lease.quarantine,
}
LEASE_SECONDS = 3600.0
PAGE = 1000


class Record(Protocol):
    """What a run of jobs asks of a record. All in the name of the system."""

    def register(self, registration: Registration, tasks: Sequence[str]) -> int:
        """Announce a worker."""

    def sign_off(self, worker_id: int) -> None:
        """It has stopped."""

    def stage(self) -> None:
        """Make due jobs available."""

    def expedite(self, job_ids: Sequence[int]) -> None:
        """Make waiting jobs available before they are due."""

    def waiting(self, state: State) -> list[JobRow]:
        """Jobs in this state, the oldest first."""

    def claim(self, worker_id: int, queue: str, tasks: Sequence[str]) -> list[Claimed]:
        """Lease the next job."""

    def report(self, worker_id: int, of: Lease, outcome: Outcome) -> None:
        """End a run."""

    def note(self, worker_id: int, items: Sequence[tuple[Lease, Note]]) -> None:
        """Keep what a handler told."""

    def revisions(self, numbers: Sequence[int]) -> dict[int, str]:
        """Configurations by number."""

    def job(self, job_id: int) -> JobDetail | None:
        """A job with all that is known of it."""


class Database:
    """On Django's own connection, in the transaction that is open there."""

    def register(self, registration: Registration, tasks: Sequence[str]) -> int:
        return run(workers.register(registration, authority=SYSTEM, tasks=tasks))

    def sign_off(self, worker_id: int) -> None:
        run(workers.worker_heartbeat(STOPPED, authority=SYSTEM, worker_id=worker_id))

    def stage(self) -> None:
        run(upkeep.stage(authority=SYSTEM))

    def expedite(self, job_ids: Sequence[int]) -> None:
        run(operate.expedite(job_ids, authority=SYSTEM, by="run_jobs"))

    def waiting(self, state: State) -> list[JobRow]:
        return run(read.jobs(authority=SYSTEM, state=state, limit=PAGE))[::-1]

    def claim(self, worker_id: int, queue: str, tasks: Sequence[str]) -> list[Claimed]:
        return run(
            lease.claim(
                authority=SYSTEM,
                worker_id=worker_id,
                queue=queue,
                tasks=tasks,
                limit=1,
                lease_seconds=LEASE_SECONDS,
            )
        )

    def report(self, worker_id: int, of: Lease, outcome: Outcome) -> None:
        run(REPORTS[type(outcome)]([(of, outcome)], authority=SYSTEM, worker_id=worker_id))

    def note(self, worker_id: int, items: Sequence[tuple[Lease, Note]]) -> None:
        if run(notes.note(items, authority=SYSTEM, worker_id=worker_id)).refused:
            raise NotStorable("the record cannot hold what this job has told")

    def revisions(self, numbers: Sequence[int]) -> dict[int, str]:
        return run(read.revisions(numbers, authority=SYSTEM))

    def job(self, job_id: int) -> JobDetail | None:
        return run(read.job(authority=SYSTEM, job_id=job_id))


class Memory:
    """A store in memory."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def register(self, registration: Registration, tasks: Sequence[str]) -> int:
        return int(self._store.register(registration, authority=SYSTEM, tasks=tasks))

    def sign_off(self, worker_id: int) -> None:
        self._store.worker_heartbeat(STOPPED, authority=SYSTEM, worker_id=worker_id)

    def stage(self) -> None:
        self._store.stage(authority=SYSTEM)

    def expedite(self, job_ids: Sequence[int]) -> None:
        self._store.expedite(job_ids, authority=SYSTEM, by="run_jobs")

    def waiting(self, state: State) -> list[JobRow]:
        rows: list[JobRow] = self._store.jobs(authority=SYSTEM, state=state, limit=PAGE)
        return rows[::-1]

    def claim(self, worker_id: int, queue: str, tasks: Sequence[str]) -> list[Claimed]:
        jobs: list[Claimed] = self._store.claim(
            authority=SYSTEM, worker_id=worker_id, queue=queue, tasks=tasks, limit=1, lease_seconds=LEASE_SECONDS
        )
        return jobs

    def report(self, worker_id: int, of: Lease, outcome: Outcome) -> None:
        self._store.report([(of, outcome)], authority=SYSTEM, worker_id=worker_id)

    def note(self, worker_id: int, items: Sequence[tuple[Lease, Note]]) -> None:
        self._store.note(items, authority=SYSTEM, worker_id=worker_id)

    def revisions(self, numbers: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = self._store.revisions(numbers, authority=SYSTEM)
        return found

    def job(self, job_id: int) -> JobDetail | None:
        found: JobDetail | None = self._store.job(authority=SYSTEM, job_id=job_id)
        return found


STOPPED = WorkerStatus(state="stopped", in_use=0, idle=False, tasks=(), lag_ms=0, losses=0)


def record_of(store: Any) -> Record:
    """The record that a helper works on: the given store, else the database's."""
    return Database() if store is None else Memory(store)
