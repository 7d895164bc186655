"""What workers say of themselves: who they are, that they live, what they do."""

from collections.abc import Sequence
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.contract import Registration, WorkerStatus
from shiftboss.queue.store.statement import Call, Statement, Verb


def _first(value: Any, *_: Any) -> Any:
    return value


_REGISTER = Statement("register_worker", _first)
_HEARTBEAT = Statement("worker_heartbeat", _first)
_FORGET = Statement("forget_workers", _first)
_WAITING_TASKS = Statement("waiting_tasks", _first)


def register(
    registration: Registration, *, authority: Authority, tasks: Sequence[str], worker_id: int | None = None
) -> Verb[int]:
    """Announce a worker; the answer is its id.

    With `worker_id`, the id that it had, it keeps that one and with it its leases. It gets another only where
    that id has become another process's.
    """
    require_system(authority, "register")
    known = yield _register(registration, tasks, worker_id)
    [answer] = known or (yield _register(registration, tasks, None))
    return int(answer)


def _register(registration: Registration, tasks: Sequence[str], worker_id: int | None) -> Call[Any]:
    return _REGISTER.call(
        worker_id=worker_id,
        pool=registration.pool,
        host=registration.host,
        pid=registration.pid,
        code_version=registration.code_version,
        queues=list(registration.queues),
        tasks=list(tasks),
        processes=registration.processes,
        threads=registration.threads,
        lease_seconds=registration.lease_seconds,
        heartbeat_seconds=registration.heartbeat_seconds,
    )


def worker_heartbeat(status: WorkerStatus, *, authority: Authority, worker_id: int) -> Verb[bool]:
    """Say that the worker lives and what it does; False where the record no longer knows it."""
    require_system(authority, "worker heartbeat")
    rows = yield _HEARTBEAT.call(
        worker_id=worker_id,
        state=status.state,
        in_use=status.in_use,
        idle=status.idle,
        tasks=list(status.tasks),
        lag_ms=status.lag_ms,
        losses=status.losses,
        tainted=status.tainted,
        dropped=status.dropped,
        resources=status.resources,
    )
    return bool(rows)


def forget_workers(*, authority: Authority) -> Verb[int]:
    """Drop workers last seen more than a day ago; answers how many."""
    require_system(authority, "forget workers")
    rows = yield _FORGET.call()
    return len(rows)


def waiting_tasks(*, authority: Authority, queues: Sequence[str], tasks: Sequence[str]) -> Verb[list[str]]:
    """Tasks that wait in these queues and are not among `tasks`: a sample of the first jobs of each queue."""
    require_system(authority, "waiting tasks")
    rows: list[str] = yield _WAITING_TASKS.call(queues=list(queues), tasks=list(tasks))
    return rows
