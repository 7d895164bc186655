"""Jobs and workers as pages show them, made by the store's own verbs."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from shiftboss.console import charts, whole
from shiftboss.permissions import ROLES
from shiftboss.queue.authority import Authority, System
from shiftboss.queue.contract import Claimed, Registration, WorkerStatus
from shiftboss.queue.outcomes import Done, Failed
from shiftboss.queue.states import State
from shiftboss.queue.store import enqueue, lease, operate, read, samples, workers
from shiftboss.queue.store.statement import run

SYSTEM = System()
TASK = "shop.tasks.send_invoice"

TRACEBACK = """\
Traceback (most recent call last):
  File "/app/.venv/lib/python3.13/site-packages/tracing/wrap.py", line 88, in call
    return traced(*args, **kwargs)
  File "/app/shop/tasks.py", line 31, in send_invoice
    mailer.deliver(invoice)
    ~~~~~~~~~~~~~~^^^^^^^^^
  File "/usr/lib/python3.13/smtplib.py", line 876, in sendmail
    raise SMTPRecipientsRefused(senderrs)
smtplib.SMTPRecipientsRefused: {'kim@example.org': (550, b'mailbox unavailable')}
"""


def person(name: str, *permissions: str, role: str | None = None) -> User:
    """Somebody of the staff with these permissions, and those of a role."""
    user = User.objects.create_user(name, password="correct horse", is_staff=True)
    wanted = {permission.partition(".")[2] for permission in {*permissions, *(ROLES[role] if role else ())}}
    found = list(Permission.objects.filter(content_type__app_label="shiftboss", codename__in=wanted))
    assert {permission.codename for permission in found} == wanted
    user.user_permissions.set(found)
    return user


def job(
    task: str = TASK,
    *,
    queue: str = "default",
    args: str = '{"args": [], "kwargs": {}}',
    priority: int = 0,
    due_at: datetime | None = None,
    max_attempts: int = 5,
    authority: Authority = SYSTEM,
    **more: Any,
) -> int:
    """Enqueue a job; its id."""
    new = enqueue.NewJob(
        queue=queue,
        task=task,
        args=args,
        priority=priority,
        due_at=due_at,
        failure_limit=max_attempts,
        loss_limit=3,
        **more,
    )
    return run(enqueue.enqueue(new, authority=authority)).id


def worker(
    *queues: str, pool: str = "default", host: str = "web-1", pid: int = 4711, lease_seconds: float = 30.0
) -> int:
    """Announce a worker of these queues; its id."""
    registration = Registration(
        pool=pool,
        host=host,
        pid=pid,
        code_version=None,
        queues=queues or ("default",),
        processes=1,
        threads=8,
        lease_seconds=lease_seconds,
        heartbeat_seconds=min(5.0, lease_seconds / 3),
    )
    return run(workers.register(registration, authority=SYSTEM, tasks=[TASK]))


def heartbeat(
    worker_id: int, *, in_use: int = 0, lag_ms: int = 2, state: str = "running", losses: int = 0, **more: Any
) -> None:
    """Let a worker say that it lives."""
    status = WorkerStatus(
        state=state, in_use=in_use, idle=False, tasks=(TASK,), lag_ms=lag_ms, losses=losses, **more
    )
    run(workers.worker_heartbeat(status, authority=SYSTEM, worker_id=worker_id))


def claimed(
    worker_id: int,
    *,
    queue: str = "default",
    tasks: Sequence[str] = (TASK,),
    limit: int = 1,
    lease_seconds: float = 30.0,
) -> list[Claimed]:
    """Let a worker claim jobs."""
    return run(
        lease.claim(
            authority=SYSTEM,
            worker_id=worker_id,
            queue=queue,
            tasks=tasks,
            limit=limit,
            lease_seconds=lease_seconds,
        )
    )


def completed(jobs: Iterable[Claimed], worker_id: int, *, result: str | None = "null", run_ms: int = 12) -> None:
    """Let a worker report success."""
    items = [(job.lease, Done(result, run_ms)) for job in jobs]
    run(lease.complete(items, authority=SYSTEM, worker_id=worker_id))


def failed(
    jobs: Iterable[Claimed],
    worker_id: int,
    *,
    type: str = "smtplib.SMTPRecipientsRefused",
    message: str = "{'kim@example.org': (550, b'mailbox unavailable')}",
    traceback: str = TRACEBACK,
    backoff_seconds: float = 0.0,
    run_ms: int = 412,
    evidence: str = "{}",
) -> None:
    """Let a worker report failure."""
    failure = Failed(
        code="handler_raised",
        type=type,
        message=message,
        fingerprint="1b0c9e4f6a52d730",
        traceback=traceback,
        backoff_seconds=backoff_seconds,
        run_ms=run_ms,
        evidence=evidence,
    )
    run(lease.fail([(job.lease, failure) for job in jobs], authority=SYSTEM, worker_id=worker_id))


def completed_job(worker_id: int, **how: Any) -> int:
    """A job that a worker has done; its id."""
    job_id = job(**how)
    completed(claimed(worker_id, tasks=[how.get("task", TASK)], queue=how.get("queue", "default")), worker_id)
    return job_id


def quarantined_job(worker_id: int) -> int:
    """A job that failed as often as it may; its id."""
    job_id = job(max_attempts=1)
    failed(claimed(worker_id), worker_id)
    return job_id


def job_in(state: State, *, queue: str = "default") -> int:
    """A job in this state, made where no other job of the queue waits; its id."""
    match state:
        case State.SCHEDULED:
            return job(queue=queue, due_at=datetime.now(UTC) + timedelta(hours=1))
        case State.AVAILABLE:
            return job(queue=queue)
        case State.COMPLETED:
            return completed_job(worker(), queue=queue)
        case State.CANCELLED:
            job_id = job(queue=queue)
            run(operate.cancel([job_id], authority=SYSTEM))
            return job_id
        case State.DISCARDED:
            job_id = job_in(State.QUARANTINED, queue=queue)
            run(operate.discard([job_id], authority=SYSTEM))
            return job_id
    worker_id = worker()
    job_id = job(queue=queue, max_attempts=1 if state is State.QUARANTINED else 5)
    held = claimed(worker_id, queue=queue)
    assert [one.id for one in held] == [job_id]
    if state is not State.RUNNING:
        failed(held, worker_id, backoff_seconds=3600)
    return job_id


def state_of(job_id: int) -> State:
    """Where a job stands."""
    found = run(read.job(authority=SYSTEM, job_id=job_id))
    assert found
    return found.state


_READ = whole._found


def looked_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a maintainer look at the whole before each page, so that it shows what a test has just done."""

    def looked() -> dict[str, samples.Sample]:
        sample_all()
        return _READ()

    monkeypatch.setattr(samples, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(samples, "REST", 0.0)
    monkeypatch.setattr(whole, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(whole, "_found", looked)
    monkeypatch.setattr(charts, "KEPT_SECONDS", 0.0)
    whole.forget()
    charts.forget()


def sample_all() -> None:
    """Look at all parts of the whole, as a maintainer does."""
    for part in samples.Part:
        run(samples.look(part, authority=SYSTEM))


@contextmanager
def abandoned() -> Iterator[None]:
    """Within the block no maintainer looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "_found", _READ)
        yield


@contextmanager
def maintained() -> Iterator[None]:
    """Within the block a maintainer has just looked at all: for counting a page's statements."""
    sample_all()
    with abandoned():
        yield
