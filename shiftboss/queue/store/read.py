"""What the record says: reads for people, pages, the command line and the Tasks API. They change nothing.

`Owner` sees its own jobs and those that it watches, `Scoped` those of its queues and owners; `System` sees all.
JSON (`args`, `result`, `meta`, `evidence`, `data`) comes as the text that is stored, so that no digit of a number
is lost on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shiftboss.queue.authority import Authority, queues_of, reach_of, require_staff
from shiftboss.queue.jobs import AttemptRow as AttemptRow
from shiftboss.queue.jobs import EventRow as EventRow
from shiftboss.queue.jobs import JobDetail as JobDetail
from shiftboss.queue.jobs import JobRow as JobRow
from shiftboss.queue.states import State
from shiftboss.queue.store.statement import Statement
from shiftboss.queue.store.statement import Verb as StoreVerb

PAGE = 50
"""Jobs on one page of a list."""

RUNNING_BUDGET = 10_000
"""Running jobs looked at for what runs where: as many as 600 workers of 16 slots run."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process: `heartbeat_age_seconds` against `lease_seconds` is its health.

    `tainted` executors only wait for their end; `dropped` observations reached no observer; `resources` is JSON:
    for each resource how many are made, lent out and waited for. `memory_kb` is held now by its processes
    together, `cpu_ms` used by them within `up_seconds`. `ordered`: `drain` or `stop`, by a person.
    """

    id: int
    pool: str
    host: str
    pid: int
    state: str
    queues: list[str]
    tasks: int
    slots: int
    in_use: int
    lease_seconds: float
    heartbeat_seconds: float
    heartbeat_age_seconds: float
    lag_ms: int
    worst_lag_ms: int
    losses: int
    code_version: str | None
    started_at: datetime
    tainted: int = 0
    dropped: int = 0
    resources: str = "{}"
    memory_kb: int | None = None
    cpu_ms: int | None = None
    up_seconds: float = 0.0
    ordered: str | None = None
    ordered_by: str | None = None
    ordered_at: datetime | None = None

    @property
    def alive(self) -> bool:
        """Whether its last heartbeat is younger than its lease."""
        return self.state != "stopped" and self.heartbeat_age_seconds < self.lease_seconds

    @property
    def cores(self) -> float | None:
        """How many cores its processes have kept busy, on average over its time; None where nobody can tell."""
        return None if self.cpu_ms is None or self.up_seconds <= 0 else self.cpu_ms / 1000 / self.up_seconds


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A job that runs in a worker. `progress` is JSON text. `jobs`: how many run in that worker."""

    worker_id: int
    id: int
    queue: str
    task: str
    fence: int
    running_seconds: float
    lease_seconds_left: float
    progress: str | None
    cancel_requested: bool
    jobs: int


_WORKERS = Statement("workers", WorkerRow)
_WORKER = Statement("worker", WorkerRow)
_RUNNING = Statement("running", RunningRow)
_JOBS = Statement("jobs", lambda id, queue, task, state, *rest: JobRow(id, queue, task, State(state), *rest))
_JOBS_AFTER = Statement("jobs_after", _JOBS.row)
_JOB = Statement("job", lambda id, queue, task, state, *rest: JobDetail(id, queue, task, State(state), *rest))
_REVISIONS = Statement("revisions", lambda revision, config: (int(revision), str(config)))
_ATTEMPTS = Statement("attempts", AttemptRow)
_EVENTS = Statement("events", EventRow)


def workers(*, authority: Authority) -> StoreVerb[list[WorkerRow]]:
    """Workers that live, or ended within the last hour; the most recently seen first. For staff only.

    Who is narrowed to a scope sees them all, with those of their queues that are within it.
    """
    queues = queues_of(authority, "workers")
    rows: list[WorkerRow] = yield _WORKERS.call()
    return [_narrowed(row, queues) for row in rows]


def worker(worker_id: int, *, authority: Authority) -> StoreVerb[WorkerRow | None]:
    """One worker, as in `workers`, for a day after it was last seen; None where there is none."""
    queues = queues_of(authority, "worker")
    rows: list[WorkerRow] = yield _WORKER.call(worker_id=worker_id)
    return _narrowed(rows[0], queues) if rows else None


def _narrowed(row: WorkerRow, queues: frozenset[str] | None) -> WorkerRow:
    return row if queues is None else replace(row, queues=[name for name in row.queues if name in queues])


def running(
    workers: Sequence[int], *, authority: Authority, per_worker: int, budget: int = RUNNING_BUDGET
) -> StoreVerb[list[RunningRow]]:
    """What runs in these workers, the longest-running first, at most `per_worker` of each. For staff only.

    Of all running jobs the first `budget` by their ids are looked at.
    """
    require_staff(authority, "running")
    rows: list[RunningRow] = yield _RUNNING.call(
        workers=list(workers), per_worker=per_worker, budget=budget, **reach_of(authority)
    )
    return rows


def jobs(
    *,
    authority: Authority,
    state: State,
    queue: str | None = None,
    before_id: int | None = None,
    after_id: int | None = None,
    limit: int = PAGE,
) -> StoreVerb[list[JobRow]]:
    """Jobs in a state, newest id first, at most `limit`.

    Keyset pages: `before_id` gives the next older jobs, `after_id` the next newer ones.
    """
    statement, beyond = (_JOBS, before_id) if after_id is None else (_JOBS_AFTER, after_id)
    rows: list[JobRow] = yield statement.call(
        state=str(state), queue=queue, beyond=beyond, limit=limit, **reach_of(authority)
    )
    return sorted(rows, key=lambda row: -row.id)[:limit]


def job(*, authority: Authority, job_id: int) -> StoreVerb[JobDetail | None]:
    """One job, live or finished; None where there is none that the authority may see."""
    rows: list[JobDetail] = yield _JOB.call(id=job_id, **reach_of(authority))
    return rows[0] if rows else None


def revisions(numbers: Sequence[int], *, authority: Authority) -> StoreVerb[dict[int, str]]:
    """The configurations behind these revisions, as JSON texts, as far as they are known. For staff only."""
    require_staff(authority, "revisions")
    rows: list[tuple[int, str]] = yield _REVISIONS.call(revisions=list(numbers))
    return dict(rows)


def attempts(*, authority: Authority, job_id: int) -> StoreVerb[list[AttemptRow]]:
    """The attempts of a job that did not succeed, oldest first; none where the job is not visible."""
    rows: list[AttemptRow] = yield _ATTEMPTS.call(id=job_id, **reach_of(authority))
    return rows


def events(*, authority: Authority, job_id: int) -> StoreVerb[list[EventRow]]:
    """The stored events of a job in order; none where the job is not visible."""
    rows: list[EventRow] = yield _EVENTS.call(id=job_id, **reach_of(authority))
    return rows
