"""What workers say of themselves: who they are, that they live, what they do. And what is ordered of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shiftboss.queue.authority import Authority, queues_of, require_system
from shiftboss.queue.contract import Known, Registration, WorkerStatus
from shiftboss.queue.errors import OutOfScope
from shiftboss.queue.store.statement import Call, Statement, Verb


def _first(value: Any, *_: Any) -> Any:
    return value


_REGISTER = Statement("register_worker", _first)
_HEARTBEAT = Statement("worker_heartbeat", Known)
_ORDER = Statement("order_worker", lambda *row: Ordered(*row[:-1]))
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


def worker_heartbeat(status: WorkerStatus, *, authority: Authority, worker_id: int) -> Verb[Known | None]:
    """Say that the worker lives and what it does, and hear what is ordered of it.

    None where the record no longer knows it.
    """
    require_system(authority, "worker heartbeat")
    rows: list[Known] = yield _HEARTBEAT.call(
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
        memory_kb=status.memory_kb,
        cpu_ms=status.cpu_ms,
    )
    return rows[0] if rows else None


@dataclass(frozen=True, slots=True)
class Ordered:
    """A worker as it was when something was ordered of it. `given`: the order stands now, and did not before.

    `within`: all of its queues are those of the one who orders.
    """

    id: int
    pool: str
    host: str
    pid: int
    state: str
    ordered: str | None
    alive: bool
    within: bool
    given: bool


def order(worker_id: int, *, authority: Authority, word: str, by: str) -> Verb[Ordered | None]:
    """Order a worker to `drain` or to `stop`; None where the record knows no such worker.

    It is told at once, and again with each heartbeat's answer. After `drain` may come `stop`, and nothing after.
    Within a scope only a worker all of whose queues are within it. Raises NotAllowed.
    """
    within = queues_of(authority, "order a worker")
    rows: list[Ordered] = yield _ORDER.call(
        worker_id=worker_id, word=word, by=by, within=None if within is None else sorted(within)
    )
    if rows and not rows[0].within:
        raise OutOfScope(f"worker {worker_id}, which serves other queues too", str(authority))
    return rows[0] if rows else None


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
