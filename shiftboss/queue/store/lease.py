"""What workers do under their leases: claim, heartbeat, and report how each run ended.

All take `authority=System()`: a worker acts for the system. A write names job, fence and worker; where the
record no longer agrees it changes nothing, and is kept as a `write_rejected` event. Every end of a run but a
completion cancels the job where somebody has asked for its end.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import errors as pg

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.contract import Claimed, Heartbeat, Lease, Mark, Settlement
from shiftboss.queue.errors import LeaseLost
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Quarantined, Released, Snoozed
from shiftboss.queue.store.partitions import met_missing_day, with_todays_partitions
from shiftboss.queue.store.queues import settle
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb, numbers


def _lease(id: int, fence: int, *_: Any) -> Lease:
    return Lease(id, fence)


_CLAIM = Statement("claim", Claimed)
_CLAIM_AFTER = Statement("claim_after", Claimed)
_CLAIM_LIMITED = Statement("claim_limited", Claimed)
_CLAIM_SEQUENTIAL = Statement("claim_sequential", Claimed)
_LIMIT_OF = Statement("limit_of", lambda sequential, above: (bool(sequential), bool(above)))
_HEARTBEAT = Statement("heartbeat", lambda id, fence, answer, cause: (Lease(id, fence), answer, cause))
_COMPLETE = Statement("complete", _lease)
_FAIL = Statement("fail", _lease)
_RELEASE = Statement("release", _lease)
_SNOOZE = Statement("snooze", _lease)
_DISCARD = Statement("discard", _lease)
_QUARANTINE = Statement("quarantine", _lease)
_REAP_OWN = Statement("reap_own", _lease)
_LOCK = Statement("lock", _lease)
_SETTLED = Statement("settled", _lease)
_ENDED = Statement("ended", _lease)
_NUMBER_EVENTS = Statement("number_events", lambda *_: None)
_REJECT = Statement("reject", lambda *_: None)

LOCKED = (pg.LockNotAvailable, pg.DeadlockDetected)
"""What somebody else's lock answers with: to be tried again."""


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

    Highest priority first, then the longest due. With `after`, only that priority and only past that mark, but for
    a queue with a limit: it is always claimed from its bottom, and at most as many jobs as it has free slots.
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
    if not rows:
        rows = yield from _claim_limited(params)
    return sorted(rows, key=lambda job: (-job.priority, job.due_at, job.id))


def _claim_limited(params: dict[str, Any]) -> Verb[list[Claimed]]:
    """The claim of a queue with a limit. What it is now only chooses the statement: each has its own guard."""
    found: list[tuple[bool, bool]] = yield _LIMIT_OF.call(queue=params["queue"])
    if not found:
        return []
    [(sequential, above)] = found
    if above:
        yield from settle(params["queue"])
    statement = _CLAIM_SEQUENTIAL if sequential else _CLAIM_LIMITED
    rows: list[Claimed] = yield statement.call(**params)
    return rows


def heartbeat(
    leases: Sequence[Lease], *, authority: Authority, worker_id: int, lease_seconds: float
) -> Verb[Heartbeat]:
    """Prolong leases to `lease_seconds` from now, and learn whose end has been asked for. Never waits for a lock.

    Lost ones are recorded as rejected, but for those that this worker itself has ended in the meantime; one that
    cannot be recorded now is busy, to be asked again.
    """
    require_system(authority, "heartbeat")
    ids, fences = ids_and_fences(leases)
    rows = yield _HEARTBEAT.call(ids=ids, fences=fences, worker_id=worker_id, lease_seconds=lease_seconds)
    answers: dict[Lease, str] = {lease: answer for lease, answer, _ in rows}
    cancelled = {lease: cause for lease, _, cause in rows if cause is not None}
    lost = [lease for lease in leases if answers[lease] == "lost"]
    try:
        if lost:
            yield from with_todays_partitions(lambda: _rejected_heartbeats(lost, worker_id))
    except (*LOCKED, pg.CheckViolation):
        # The others are renewed, and the keeper has to hear of it.
        answers |= dict.fromkeys(lost, "busy")

    def those(kind: str) -> frozenset[Lease]:
        return frozenset(lease for lease, answer in answers.items() if answer == kind)

    return Heartbeat(renewed=those("renewed"), busy=those("busy"), lost=those("lost"), cancelled=cancelled)


O = TypeVar("O")  # noqa: E741 - one kind of outcome
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Report(Generic[O]):
    """How one kind of outcome is written: its statement, the trace that it leaves, its columns."""

    statement: Statement[Lease]
    outcome: str
    columns: Callable[[Sequence[O]], dict[str, Any]]
    # What is reported in the place of an outcome that the record cannot hold, if anything.
    instead: "Callable[[O, Exception], tuple[_Report[Any], Any]] | None" = None

    def call(self, items: Sequence[tuple[Lease, O]], worker_id: int) -> Call[Lease]:
        ids, fences = ids_and_fences([lease for lease, _ in items])
        outcomes: list[Any] = [outcome for _, outcome in items]
        columns = self.columns(outcomes)
        if self.statement is not _COMPLETE:
            columns["evidence"] = [outcome.evidence for outcome in outcomes]
        return self.statement.call(ids=ids, fences=fences, worker_id=worker_id, **columns)

    def trace(self, items: Sequence[tuple[Lease, O]], worker_id: int) -> Call[Lease]:
        ids, fences = ids_and_fences([lease for lease, _ in items])
        results = self.columns([outcome for _, outcome in items]).get("results")
        return _SETTLED.call(ids=ids, fences=fences, worker_id=worker_id, outcome=self.outcome, results=results)


def _plain(report: _Report[O], safe: Callable[[O, Exception], O]) -> _Report[O]:
    """The report, with its outcome in safe words where the record cannot hold it as it is."""

    def instead(outcome: O, error: Exception) -> tuple[_Report[O], O]:
        plain: Any = safe(outcome, error)
        if (said := getattr(outcome, "evidence", "{}")) != "{}":
            plain = replace(plain, evidence=json.dumps({"not_storable": _safe(said)}))
        return report, plain

    return replace(report, instead=instead)


_FAILED: _Report[Failed] = _plain(
    _Report(
        _FAIL,
        "failed",
        lambda items: {
            "backoff_seconds": [o.backoff_seconds for o in items],
            "run_ms": numbers(o.run_ms for o in items),
            "codes": [o.code for o in items],
            "types": [o.type for o in items],
            "messages": [o.message for o in items],
            "fingerprints": [o.fingerprint for o in items],
            "tracebacks": [o.traceback for o in items],
        },
    ),
    lambda failed, error: _not_storable("error_not_storable", "", error, failed.run_ms),
)
_DONE: _Report[Done] = _Report(
    _COMPLETE,
    "completed",
    lambda items: {"results": [o.result for o in items], "run_ms": numbers(o.run_ms for o in items)},
    instead=lambda done, error: (
        _FAILED,
        _not_storable(
            "result_not_storable", f"{type(error).__module__}.{type(error).__qualname__}", error, done.run_ms
        ),
    ),
)
_RELEASED: _Report[Released] = _plain(
    _Report(_RELEASE, "released", lambda items: {"codes": [o.code for o in items]}),
    lambda released, _: Released(_safe(released.code)),
)
_SNOOZED: _Report[Snoozed] = _plain(
    _Report(
        _SNOOZE,
        "snoozed",
        lambda items: {"seconds": [o.seconds for o in items], "run_ms": numbers(o.run_ms for o in items)},
    ),
    lambda snoozed, _: snoozed,
)
_DISCARDED: _Report[Discarded] = _plain(
    _Report(
        _DISCARD,
        "discarded",
        lambda items: {"messages": [o.message for o in items], "run_ms": numbers(o.run_ms for o in items)},
    ),
    lambda discarded, _: replace(discarded, message=_safe(discarded.message)),
)
_QUARANTINED: _Report[Quarantined] = _plain(
    _Report(
        _QUARANTINE,
        "quarantined",
        lambda items: {"reasons": [str(o.reason) for o in items], "messages": [o.message for o in items]},
    ),
    lambda quarantined, _: replace(quarantined, message=_safe(quarantined.message)),
)
_LOST: _Report[Lost] = _plain(
    _Report(
        _REAP_OWN,
        "lost",
        lambda items: {
            "alone": [o.alone for o in items],
            "suspect": [o.suspect for o in items],
            "codes": [o.code for o in items],
            "messages": [o.message for o in items],
        },
    ),
    lambda lost, _: replace(lost, code=_safe(lost.code), message=_safe(lost.message)),
)


def complete(items: Sequence[tuple[Lease, Done]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Finish jobs. A result that jsonb refuses turns that one job's outcome into a failure."""
    require_system(authority, "complete")
    return (yield from _write(_DONE, items, worker_id=worker_id))


def complete_here(lease: Lease, done: Done, *, authority: Authority, worker_id: int) -> Verb[None]:
    """Finish one job as the last act of the transaction that is open.

    Raises LeaseLost where it is no longer ours. Nothing is judged or recorded then: the transaction is to be
    rolled back, and would take that with it.
    """
    require_system(authority, "complete")
    call = _DONE.call([(lease, done)], worker_id)
    written = yield from with_todays_partitions(lambda: _in_savepoint(call))
    if not written:
        raise LeaseLost(f"job {lease.job_id} is no longer held under fence {lease.fence} by worker {worker_id}")


def _in_savepoint(call: Call[R]) -> Verb[list[R]]:
    # A statement that fails would else end the transaction around it.
    rows: list[R] = yield Atomic(_alone(call))
    return rows


def _alone(call: Call[R]) -> Verb[list[R]]:
    rows: list[R] = yield call
    return rows


def fail(items: Sequence[tuple[Lease, Failed]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Count a failure: retryable after its backoff, or quarantined at the failure limit."""
    require_system(authority, "fail")
    return (yield from _write(_FAILED, items, worker_id=worker_id))


def release(items: Sequence[tuple[Lease, Released]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Give jobs back unharmed: available at once, nothing is counted."""
    require_system(authority, "release")
    return (yield from _write(_RELEASED, items, worker_id=worker_id))


def snooze(items: Sequence[tuple[Lease, Snoozed]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Put jobs off: scheduled again in so many seconds, nothing is counted."""
    require_system(authority, "snooze")
    return (yield from _write(_SNOOZED, items, worker_id=worker_id))


def discard(items: Sequence[tuple[Lease, Discarded]], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Give jobs up for good."""
    require_system(authority, "discard")
    return (yield from _write(_DISCARDED, items, worker_id=worker_id))


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


UNSTORABLE = (
    psycopg.DataError,
    psycopg.IntegrityError,
    pg.ProgramLimitExceeded,
    pg.StatementTooComplex,
    pg.OutOfMemory,
)
"""What one outcome or note of a batch can bring about: found by halving, and answered for that one alone."""


def _write(report: _Report[O], items: Sequence[tuple[Lease, O]], *, worker_id: int) -> Verb[Settlement]:
    """Write a batch; one bad or blocked outcome never holds up the others, nor does a missing partition."""
    items = sorted(items, key=lambda item: item[0])
    return (yield from with_todays_partitions(lambda: _offer(report, items, worker_id)))


def _offer(report: _Report[O], items: Sequence[tuple[Lease, O]], worker_id: int) -> Verb[Settlement]:
    """The whole batch in one statement, the only one that waits for row locks; then what it did not take."""
    try:
        written = set((yield report.call(items, worker_id)))
    except (*LOCKED, *UNSTORABLE, pg.QueryCanceled) as error:
        if met_missing_day(error):
            raise
        written = set()
    rest = [item for item in items if item[0] not in written]
    return Settlement(settled=written).add((yield from _settle(report, rest, worker_id)))


def _settle(report: _Report[O], items: Sequence[tuple[Lease, O]], worker_id: int) -> Verb[Settlement]:
    """Judge each of these, halving the batch until what cannot be stored is alone."""
    if not items:
        return Settlement()
    try:
        answer: Settlement = yield Atomic(_judge(report, items, worker_id))
    except LOCKED:
        return Settlement(busy={lease for lease, _ in items})
    except (*UNSTORABLE, pg.QueryCanceled) as error:
        if met_missing_day(error):
            raise
        if len(items) == 1:
            if report.instead is None or isinstance(error, pg.QueryCanceled):
                raise
            [(lease, outcome)] = items
            other, safe = report.instead(outcome, error)
            return (yield from _settle(other, [(lease, safe)], worker_id))
    else:
        return answer
    middle = len(items) // 2
    settlement = yield from _settle(report, items[:middle], worker_id)
    return settlement.add((yield from _settle(report, items[middle:], worker_id)))


def _judge(report: _Report[O], items: Sequence[tuple[Lease, O]], worker_id: int) -> Verb[Settlement]:
    """Write what is ours and not locked; of the rest, tell what is settled, and record what is refused.

    One transaction, so that a refusal and its record are one.
    """
    ids, fences = ids_and_fences([lease for lease, _ in items])
    busy = set((yield _LOCK.call(ids=ids, fences=fences, worker_id=worker_id)))
    free = [item for item in items if item[0] not in busy]
    settled = set((yield report.call(free, worker_id)))
    rest = [item for item in free if item[0] not in settled]
    settled |= set((yield report.trace(rest, worker_id)))
    lost = [lease for lease, _ in rest if lease not in settled]
    yield from reject(lost, worker_id=worker_id, verb=report.statement.name)
    return Settlement(settled=settled, busy=busy, lost=set(lost))


def _rejected_heartbeats(leases: Sequence[Lease], worker_id: int) -> Verb[None]:
    yield Atomic(_reject_heartbeats(leases, worker_id))


def _reject_heartbeats(leases: Sequence[Lease], worker_id: int) -> Verb[None]:
    # The heartbeat and the end of a run go different ways; one that comes second is not late, but needless.
    ids, fences = ids_and_fences(leases)
    ended = set((yield _ENDED.call(ids=ids, fences=fences, worker_id=worker_id)))
    yield from reject([lease for lease in leases if lease not in ended], worker_id=worker_id, verb="heartbeat")


def reject(leases: Sequence[Lease], *, worker_id: int, verb: str) -> Verb[None]:
    """Record, in the transaction that is open, that a write under these leases was refused."""
    if leases:
        ids, fences = ids_and_fences(leases)
        yield _NUMBER_EVENTS.call(ids=ids)
        yield _REJECT.call(ids=ids, fences=fences, worker_id=worker_id, verb=verb)


def ids_and_fences(leases: Sequence[Lease]) -> tuple[str, str]:
    """Leases as the statements take them: ids and fences."""
    return numbers(lease.job_id for lease in leases), numbers(lease.fence for lease in leases)


def _not_storable(code: str, type: str, error: Exception, run_ms: int) -> Failed:
    return Failed(
        code=code,
        type=type,
        message=_safe(str(error).strip().partition("\n")[0]),
        fingerprint=code,
        traceback="",
        backoff_seconds=60.0,
        run_ms=run_ms,
    )


def _safe(text: str) -> str:
    """The text as far as every PostgreSQL text can hold it."""
    return text[:500].replace("\x00", "�").encode("utf-8", "replace").decode("utf-8")
