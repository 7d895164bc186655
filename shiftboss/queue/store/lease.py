"""What workers do under their leases: claim, heartbeat, and report how each run ended.

All take `authority=System()`: a worker acts for the system. A write names job, fence and worker; where the
record no longer agrees it changes nothing, and is kept as a `write_rejected` event.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import errors as pg

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.contract import Claimed, Heartbeat, Lease, Mark, Settlement
from shiftboss.queue.outcomes import Done, Failed, Lost, Quarantined, Released
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb
from shiftboss.queue.store.upkeep import met_missing_day, with_todays_partitions


def _lease(id: int, fence: int, *_: Any) -> Lease:
    return Lease(id, fence)


_CLAIM = Statement("claim", Claimed)
_CLAIM_AFTER = Statement("claim_after", Claimed)
_HEARTBEAT = Statement("heartbeat", lambda id, fence, answer: (Lease(id, fence), answer))
_COMPLETE = Statement("complete", _lease)
_FAIL = Statement("fail", _lease)
_RELEASE = Statement("release", _lease)
_QUARANTINE = Statement("quarantine", _lease)
_REAP_OWN = Statement("reap_own", _lease)
_SETTLED = Statement("settled", _lease)
_NUMBER_EVENTS = Statement("number_events", lambda *_: None)
_REJECT = Statement("reject", lambda *_: None)


def claim(
    *,
    authority: Authority,
    worker_id: int,
    queue: str,
    tasks: Sequence[str],
    limit: int,
    lease_seconds: float,
    after: Mark | None = None,
) -> Verb[list[Claimed]]:
    """Lease up to `limit` available jobs of a queue, in the order in which they are to run.

    Highest priority first, then the longest due. With `after`, only that priority and only past that mark.
    """
    require_system(authority, "claim")
    params = {
        "worker_id": worker_id,
        "queue": queue,
        "tasks": list(tasks),
        "limit": limit,
        "lease_seconds": lease_seconds,
    }
    call = _CLAIM.call(**params) if after is None else _CLAIM_AFTER.call(**params, **after._asdict())
    rows: list[Claimed] = yield call
    return sorted(rows, key=lambda job: (-job.priority, job.due_at, job.id))


def heartbeat(
    leases: Sequence[Lease], *, authority: Authority, worker_id: int, lease_seconds: float
) -> Verb[Heartbeat]:
    """Prolong leases to `lease_seconds` from now. Never waits for a lock; lost ones are recorded as rejected."""
    require_system(authority, "heartbeat")
    ids, fences = _columns(leases)
    rows = yield _HEARTBEAT.call(ids=ids, fences=fences, worker_id=worker_id, lease_seconds=lease_seconds)
    answers = dict(rows)
    lost = [lease for lease in leases if answers[lease] == "lost"]
    if lost:
        yield from with_todays_partitions(lambda: _rejected(lost, worker_id=worker_id, verb="heartbeat"))

    def those(kind: str) -> frozenset[Lease]:
        return frozenset(lease for lease, answer in answers.items() if answer == kind)

    return Heartbeat(renewed=those("renewed"), busy=those("busy"), lost=those("lost"))


O = TypeVar("O")  # noqa: E741 - one kind of outcome


@dataclass(frozen=True, slots=True)
class _Report(Generic[O]):
    """How one kind of outcome is written: its statement, the trace that it leaves, its columns."""

    statement: Statement[Lease]
    outcome: str
    columns: Callable[[Sequence[O]], dict[str, Any]]

    def call(self, items: Sequence[tuple[Lease, O]], worker_id: int) -> Call[Lease]:
        ids, fences = _columns([lease for lease, _ in items])
        columns = self.columns([outcome for _, outcome in items])
        return self.statement.call(ids=ids, fences=fences, worker_id=worker_id, **columns)


_DONE: _Report[Done] = _Report(
    _COMPLETE,
    "completed",
    lambda items: {"results": [o.result for o in items], "run_ms": [o.run_ms for o in items]},
)
_FAILED: _Report[Failed] = _Report(
    _FAIL,
    "failed",
    lambda items: {
        "backoff_seconds": [o.backoff_seconds for o in items],
        "run_ms": [o.run_ms for o in items],
        "codes": [o.code for o in items],
        "types": [o.type for o in items],
        "messages": [o.message for o in items],
        "fingerprints": [o.fingerprint for o in items],
        "tracebacks": [o.traceback for o in items],
    },
)
_RELEASED: _Report[Released] = _Report(_RELEASE, "released", lambda items: {"codes": [o.code for o in items]})
_QUARANTINED: _Report[Quarantined] = _Report(
    _QUARANTINE,
    "quarantined",
    lambda items: {"reasons": [str(o.reason) for o in items], "messages": [o.message for o in items]},
)
_LOST: _Report[Lost] = _Report(
    _REAP_OWN,
    "lost",
    lambda items: {
        "alone": [o.alone for o in items],
        "suspect": [o.suspect for o in items],
        "codes": [o.code for o in items],
        "messages": [o.message for o in items],
        "evidence": [o.evidence for o in items],
    },
)


def complete(items: Sequence[tuple[Lease, Done]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Finish jobs. A result that jsonb refuses turns that one job's outcome into a failure."""
    require_system(authority, "complete")

    def unstorable(lease: Lease, done: Done, error: Exception) -> Verb[Settlement]:
        failed = Failed(
            code="result_not_storable",
            type=f"{type(error).__module__}.{type(error).__qualname__}",
            message=_line(error),
            fingerprint="result_not_storable",
            traceback="",
            backoff_seconds=60.0,
            run_ms=done.run_ms,
        )
        return fail([(lease, failed)], authority=authority, worker_id=worker_id)

    return (yield from _write(_DONE, items, worker_id=worker_id, unstorable=unstorable))


def fail(items: Sequence[tuple[Lease, Failed]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Count a failure: retryable after its backoff, or quarantined at the failure limit."""
    require_system(authority, "fail")

    def unstorable(lease: Lease, failed: Failed, error: Exception) -> Verb[Settlement]:
        bare = Failed(
            code="error_not_storable",
            type="",
            message=_line(error),
            fingerprint="error_not_storable",
            traceback="",
            backoff_seconds=60.0,
            run_ms=failed.run_ms,
        )
        return _write(_FAILED, [(lease, bare)], worker_id=worker_id)

    return (yield from _write(_FAILED, items, worker_id=worker_id, unstorable=unstorable))


def release(items: Sequence[tuple[Lease, Released]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Give jobs back unharmed: available at once, nothing is counted."""
    require_system(authority, "release")
    return (yield from _write(_RELEASED, items, worker_id=worker_id))


def quarantine(
    items: Sequence[tuple[Lease, Quarantined]], *, authority: Authority, worker_id: int
) -> Verb[Settlement]:
    """Hold back jobs that cannot run at all."""
    require_system(authority, "quarantine")
    return (yield from _write(_QUARANTINED, items, worker_id=worker_id))


def reap_own(items: Sequence[tuple[Lease, Lost]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Settle what a dead executor of this worker had in hand; see `Lost` for what counts."""
    require_system(authority, "reap")
    return (yield from _write(_LOST, items, worker_id=worker_id))


_LOCKED = (pg.LockNotAvailable, pg.DeadlockDetected)

Unstorable = Callable[[Lease, Any, Exception], Verb[Settlement]]


def _write(
    report: _Report[O],
    items: Sequence[tuple[Lease, O]],
    *,
    worker_id: int,
    unstorable: Unstorable | None = None,
) -> Verb[Settlement]:
    """Write a batch; one bad or blocked outcome never holds up the others, nor does a missing partition."""
    items = sorted(items, key=lambda item: item[0])
    return (
        yield from with_todays_partitions(
            lambda: _write_sorted(report, items, worker_id=worker_id, unstorable=unstorable)
        )
    )


def _write_sorted(
    report: _Report[O], items: Sequence[tuple[Lease, O]], *, worker_id: int, unstorable: Unstorable | None
) -> Verb[Settlement]:
    try:
        written = yield report.call(items, worker_id)
    except _LOCKED:
        if len(items) == 1:
            return Settlement(busy={items[0][0]})
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        if unstorable is None or met_missing_day(error):
            raise
        if len(items) == 1:
            return (yield from unstorable(*items[0], error))
    else:
        return (yield from _judged(report, items, set(written), worker_id=worker_id))
    # Halve until the bad one is alone.
    middle = len(items) // 2
    settlement = Settlement()
    for part in (items[:middle], items[middle:]):
        settlement.add((yield from _write_sorted(report, part, worker_id=worker_id, unstorable=unstorable)))
    return settlement


def _judged(
    report: _Report[O], items: Sequence[tuple[Lease, O]], written: set[Lease], *, worker_id: int
) -> Verb[Settlement]:
    missing = [item for item in items if item[0] not in written]
    if not missing:
        return Settlement(settled=written)
    # Offered once more, so that the refusal and its record are one transaction.
    try:
        lost = yield Atomic(_offer_again(report, missing, worker_id=worker_id))
    except _LOCKED:
        return Settlement(settled=written, busy={lease for lease, _ in missing})
    return Settlement(settled={lease for lease, _ in items} - lost, lost=lost)


def _offer_again(report: _Report[O], items: Sequence[tuple[Lease, O]], *, worker_id: int) -> Verb[set[Lease]]:
    written = yield report.call(items, worker_id)
    rest = [lease for lease, _ in items if lease not in written]
    ids, fences = _columns(rest)
    settled = yield _SETTLED.call(ids=ids, fences=fences, worker_id=worker_id, outcome=report.outcome)
    lost = [lease for lease in rest if lease not in settled]
    yield from _reject(lost, worker_id=worker_id, verb=report.statement.name)
    return set(lost)


def _rejected(leases: Sequence[Lease], *, worker_id: int, verb: str) -> Verb[None]:
    yield Atomic(_reject(leases, worker_id=worker_id, verb=verb))


def _reject(leases: Sequence[Lease], *, worker_id: int, verb: str) -> Verb[None]:
    if leases:
        ids, fences = _columns(leases)
        yield _NUMBER_EVENTS.call(ids=ids)
        yield _REJECT.call(ids=ids, fences=fences, worker_id=worker_id, verb=verb)


def _columns(leases: Sequence[Lease]) -> tuple[list[int], list[int]]:
    return [lease.job_id for lease in leases], [lease.fence for lease in leases]


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:500].replace("\x00", "")
