"""Jobs and workers made by the store's own verbs, and looks at what the record holds of them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from psycopg.conninfo import make_conninfo

from shiftboss.queue.authority import Authority, System
from shiftboss.queue.contract import Claimed, Lease, Registration, Settlement, WorkerStatus
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Quarantined, Released, Snoozed
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import enqueue, holds, hosts, lease, operate, processes, upkeep, workers
from shiftboss.queue.store.statement import Verb, run
from tests.waiting import wait_for

SYSTEM = System()
TASK = "shop.tasks.send_invoice"
ARGS = '{"args": [1], "kwargs": {"to": "kim"}}'

DONE = Done('{"sum": 3}', 12)
FAILED = Failed("handler_raised", "ValueError", "no", "1b0c9e4f", "Traceback…", 60.0, 12)
RELEASED = Released("shutdown")
SNOOZED = Snoozed(90.0, 12)
DISCARDED = Discarded("the invoice was withdrawn", 12)
QUARANTINED = Quarantined(QuarantineReason.INVALID_ARGUMENTS, "the arguments do not fit the task")
LOST = Lost(alone=True, suspect=True, code="executor_died", message="killed by signal 9", evidence='{"signal": 9}')

REPORTS: dict[str, tuple[Callable[..., Verb[Settlement]], Any]] = {
    "complete": (lease.complete, DONE),
    "fail": (lease.fail, FAILED),
    "release": (lease.release, RELEASED),
    "snooze": (lease.snooze, SNOOZED),
    "discard": (lease.discard, DISCARDED),
    "quarantine": (lease.quarantine, QUARANTINED),
    "reap_own": (lease.reap_own, LOST),
}
"""Each way in which a worker reports the end of a run, with an outcome of its kind."""


def report(verb: str, leases: Lease | Sequence[Lease], worker: int) -> Verb[Settlement]:
    """The verb by which a worker reports this kind of end for these leases."""
    function, outcome = REPORTS[verb]
    leases = [leases] if isinstance(leases, Lease) else leases
    return function([(one, outcome) for one in leases], authority=SYSTEM, worker_id=worker)


def new_job(
    *,
    queue: str = "default",
    task: str = TASK,
    args: str = ARGS,
    priority: int = 0,
    due_in: float | None = None,
    failure_limit: int = 5,
    loss_limit: int = 3,
    meta: str = "{}",
    deadline_in: float | None = None,
    **rest: Any,
) -> enqueue.NewJob:
    """A job to be; `due_in` and `deadline_in` seconds from now."""
    return enqueue.NewJob(
        queue=queue,
        task=task,
        args=args,
        priority=priority,
        due_at=None if due_in is None else datetime.now(UTC) + timedelta(seconds=due_in),
        failure_limit=failure_limit,
        loss_limit=loss_limit,
        meta=meta,
        deadline=None if deadline_in is None else datetime.now(UTC) + timedelta(seconds=deadline_in),
        **rest,
    )


def enqueued(n: int = 1, *, authority: Authority = SYSTEM, **how: Any) -> list[int]:
    """Ids of jobs that wait, in their order."""
    return [run(enqueue.enqueue(new_job(**how), authority=authority)).id for _ in range(n)]


def a_worker(*queues: str, tasks: Sequence[str] = (TASK,), idle: bool = False) -> int:
    """The id of a worker that serves these queues and has announced itself."""
    registration = Registration(
        pool="default",
        host="web-1",
        pid=4711,
        code_version="v7",
        queues=queues or ("default",),
        processes=2,
        threads=8,
        lease_seconds=30.0,
        heartbeat_seconds=5.0,
    )
    worker = run(workers.register(registration, authority=SYSTEM, tasks=tasks))
    if idle:
        says(worker, idle=True, tasks=tasks)
    return worker


def says(
    worker: int,
    *,
    state: str = "running",
    in_use: int = 0,
    idle: bool = False,
    tasks: Sequence[str] = (TASK,),
    lag_ms: int = 0,
    losses: int = 0,
) -> bool:
    """A worker's heartbeat; whether the record knows it."""
    status = WorkerStatus(state=state, in_use=in_use, idle=idle, tasks=tuple(tasks), lag_ms=lag_ms, losses=losses)
    return run(workers.worker_heartbeat(status, authority=SYSTEM, worker_id=worker)) is not None


def claim(
    worker: int,
    *,
    n: int = 1,
    queue: str = "default",
    tasks: Sequence[str] = (TASK,),
    lease_seconds: float = 30.0,
    after: Any = None,
) -> Verb[list[Claimed]]:
    """The verb by which a worker claims."""
    return lease.claim(
        authority=SYSTEM,
        worker_id=worker,
        queue=queue,
        tasks=tasks,
        limit=n,
        lease_seconds=lease_seconds,
        after=after,
    )


def claimed(worker: int, n: int = 1, **how: Any) -> list[Claimed]:
    """Jobs that a worker has just claimed of those that were enqueued."""
    jobs = run(claim(worker, n=n, **how))
    assert len(jobs) == n
    return jobs


def running(worker: int, n: int = 1, *, lease_seconds: float = 30.0, **how: Any) -> list[Lease]:
    """Leases of new jobs that a worker holds."""
    enqueued(n, **how)
    return [job.lease for job in claimed(worker, n, lease_seconds=lease_seconds)]


def expired(worker: int, **how: Any) -> Lease:
    """The lease of a new job that a worker holds no more, because it was not renewed in time."""
    [lost] = running(worker, lease_seconds=0.01, **how)
    wait_for_expiry(lost)
    return lost


def wait_for_expiry(lost: Lease) -> None:
    """Wait until the database finds that the lease has expired."""
    question = "select lease_expires_at < clock_timestamp() from shiftboss_job where id = %s"
    wait_for(lambda: scalar(question, lost.job_id), seconds=20, every=0.003)


def scheduled(worker: int) -> Lease:
    """A job that is due in an hour; it was never leased."""
    return Lease(enqueued(due_in=3600)[0], 0)


def available(worker: int) -> Lease:
    """A job that was released."""
    [held] = running(worker)
    run(report("release", held, worker))
    return held


def retryable(worker: int) -> Lease:
    """A job that failed and waits for its next attempt."""
    [held] = running(worker)
    run(report("fail", held, worker))
    return held


def quarantined(worker: int) -> Lease:
    """A job that has failed as often as it may."""
    [held] = running(worker, failure_limit=1)
    run(report("fail", held, worker))
    return held


def completed(worker: int) -> Lease:
    """A job that is done."""
    [held] = running(worker)
    run(report("complete", held, worker))
    return held


def to_be_cancelled(worker: int, **how: Any) -> Lease:
    """A running job whose end somebody has asked for."""
    [held] = running(worker, **how)
    run(operate.cancel([held.job_id], authority=SYSTEM))
    return held


def cancelled(worker: int) -> Lease:
    """A job that was released after somebody had asked for its end."""
    held = to_be_cancelled(worker)
    run(report("release", held, worker))
    return held


def discarded(worker: int) -> Lease:
    """A job that its handler gave up for good."""
    [held] = running(worker)
    run(report("discard", held, worker))
    return held


def reclaimed(worker: int) -> Lease:
    """The old lease of a job that was reaped and is running again."""
    old = expired(worker)
    run(upkeep.reap(authority=SYSTEM))
    run(upkeep.stage(authority=SYSTEM))
    [again] = claimed(worker)
    assert again.id == old.job_id
    return old


def missing(worker: int) -> Lease:
    """A lease on a job that the record never held."""
    return Lease(2**62, 1)


NOT_HELD: dict[str, Callable[[int], Lease]] = {
    "scheduled": scheduled,
    "available": available,
    "retryable": retryable,
    "quarantined": quarantined,
    "completed": completed,
    "cancelled": cancelled,
    "discarded": discarded,
    "expired": expired,
    "running under a newer fence": reclaimed,
    "missing": missing,
}
"""Jobs on which the lease that comes back is not, or no longer, held."""


def execute(sql: str, *params: Any) -> None:
    """Run a statement on Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def rows(sql: str, *params: Any) -> list[Any]:
    """All rows of a question."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def scalar(sql: str, *params: Any) -> Any:
    """The one value of a question."""
    [[value]] = rows(sql, *params)
    return value


def _as_dicts(question: str, job_id: int) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(question, [job_id])
        names = [column.name for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def live(job_id: int) -> dict[str, Any] | None:
    """The whole row of a live job."""
    found = _as_dicts("select * from shiftboss_job where id = %s", job_id)
    return found[0] if found else None


def finished(job_id: int) -> dict[str, Any] | None:
    """The whole row of a finished job."""
    found = _as_dicts("select * from shiftboss_finished where id = %s", job_id)
    assert len(found) <= 1
    return found[0] if found else None


def state(job_id: int) -> str:
    """Where a job stands."""
    row = live(job_id) or finished(job_id)
    assert row
    return str(row["state"])


def attempts(job_id: int) -> list[dict[str, Any]]:
    """The attempt rows of a job."""
    return _as_dicts("select * from shiftboss_attempt where job_id = %s order by fence, ended_at", job_id)


def events(job_id: int) -> list[dict[str, Any]]:
    """The stored events of a job."""
    return _as_dicts(
        "select seq, kind, worker_id, fence, data from shiftboss_event where job_id = %s order by seq", job_id
    )


def whole(job_id: int) -> tuple[Any, ...]:
    """All that the record holds of a job, but for its events."""
    return live(job_id), finished(job_id), attempts(job_id)


def address() -> str:
    """The libpq address of the test database."""
    settings = connection.settings_dict
    return make_conninfo(
        dbname=settings["NAME"],
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
    )


EMPTIED = ["job", "finished", "attempt", "event", "worker", "queue", "slot", "purge", "waiter", "revision"]
EMPTIED += ["sample", "histogram", "mark", "host", "process", "command", "hold", "roll", "roll_step", "scale"]


def a_host(name: str = "web-1", *, programs: Sequence[dict[str, Any]] = (), lease_seconds: float = 10.0) -> int:
    """A host whose agent lives and has seen these programs; the agent's fence."""
    agent = hosts.Agent(
        name=name, hostname=name, pid=11, home="/srv/shiftboss", code_version="v7", lease_seconds=lease_seconds
    )
    fence = run(hosts.take(agent, authority=SYSTEM))
    assert fence
    seen = [{"state": "RUNNING", "pid": 2, "launcher": 1, "since": None, "memory_kb": 1} | one for one in programs]
    assert run(hosts.beat(name, authority=SYSTEM, fence=fence, programs=seen, trouble=None))
    return fence


def a_hold(fence: int, **other: Any) -> int:
    """A program of the host, `web` where no other is named, that is held back; its number."""
    looping: dict[str, Any] = {"host": "web-1", "program": "web", "pool": None, "step": 1, "seconds": 600.0}
    end: dict[str, Any] = {
        "process": "7",
        "host": "web-1",
        "program": "web",
        "ended_at": "2026-01-01T14:02:00+00:00",
    }
    end |= {"ending": "code", "code": 3, "signal": None, "uptime_seconds": 5.0, "version": None}
    end |= {"jobs": ["7"], "more_jobs": 3}
    evidence = {"times": 3, "seconds": 40.0, "ends": [end], "line": "no disk", "line_times": 3, "version": None}
    looping |= {"evidence": {**evidence, "version_before": None}, "after": 0}
    hold_id = run(holds.hold(holds.Looping(**{**looping, **other}), authority=SYSTEM, fence=fence))
    assert hold_id
    return hold_id


def poisoned(job: Lease, worker: int) -> Verb[bool]:
    """The verb by which the agent of a new host holds the job back that killed its worker."""
    host = f"of-{job.job_id}"
    looping = holds.Looping(
        host=host, program="worker-default-1", pool="default", step=1, seconds=0.0, evidence={"times": 3}, after=0
    )
    blamed = holds.Poison(job_id=job.job_id, fence=job.fence, worker_id=worker, message="its worker died 3 times")
    return holds.poison(looping, blamed, authority=SYSTEM, fence=a_host(host))


def taken_back(job: Lease, worker: int) -> Verb[list[int]]:
    """The verb by which the agent of a new host takes a job back from a worker that has died."""
    host = f"of-{job.job_id}"
    fence = a_host(host)
    dead = processes.Life(
        program="worker-default-1", launcher=1, started=1.0, ended=2.0, ending="signal", signal=9, pool="default"
    )
    assert run(processes.note([dead], authority=SYSTEM, host=host, fence=fence))
    execute("update shiftboss_process set worker_id = %s where host = %s", worker, host)
    return holds.take_back(
        int(scalar("select id from shiftboss_process where host = %s", host)),
        {job.job_id: 0.0},
        authority=SYSTEM,
        host=host,
        fence=fence,
        worker_id=worker,
        message="its worker died",
    )


def empty() -> None:
    """Leave nothing for the next test."""
    for table in EMPTIED:
        execute(f"delete from shiftboss_{table}")
