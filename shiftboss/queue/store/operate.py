"""What people do to jobs, many at a time: each verb is one guarded statement over the jobs named.

Nothing waits for a row's lock: a job that somebody else has in hand comes back as busy. Who has to act on one job
calls `hold` first. Rows that a verb did not change are told apart by where they stand.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import errors as pg

from shiftboss.queue import states
from shiftboss.queue.authority import Authority, reach_of, require_staff
from shiftboss.queue.authorizers import guards_queues, require_queue
from shiftboss.queue.errors import Busy, InvalidJob
from shiftboss.queue.jobs import Answer as Answer
from shiftboss.queue.jobs import Changed as Changed
from shiftboss.queue.jobs import Enqueued as Enqueued
from shiftboss.queue.jobs import Limits as Limits
from shiftboss.queue.jobs import Unchanged as Unchanged
from shiftboss.queue.jobs import Why as Why
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import FINAL, TRANSITIONS, Actor, QuarantineReason, State
from shiftboss.queue.store import read
from shiftboss.queue.store.partitions import with_todays_partitions
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb

HOLD_MILLISECONDS = 2000
"""How long an act waits for a job that another transaction has locked."""


def _changed(id: int, before: str, after: str, *_: Any) -> Changed:
    return Changed(id, State(before), State(after))


_CANCEL = Statement("cancel", _changed)
_EXPEDITE = Statement("expedite", _changed)
_REINSTATE = Statement("reinstate", _changed)
_DISCARD_HELD = Statement("discard_held", _changed)
_HOLD_BACK = Statement("hold_back", _changed)
_HOLD_AGAIN = Statement("hold_again", _changed)
_REPRIORITISE = Statement("reprioritise", _changed)
_RESCHEDULE = Statement("reschedule", _changed)
_EDIT = Statement("edit", lambda id, state, at, _: Enqueued(id, State(state), at))
_RERUN = Statement("rerun", lambda id, state, at, _: Enqueued(id, State(state), at))
_STANDING = Statement("standing", lambda id, state, holder: (id, None if state is None else State(state), holder))
_MATCHING = Statement("matching", lambda id: int(id))
_COUNT_MATCHING = Statement("count_matching", lambda n: int(n))
_NUMBER_EVENTS = Statement("number_events", lambda *_: None)
_LOCK_TIMEOUT = Statement("lock_timeout", lambda *_: None)
_PATIENCE = Statement("patience", lambda setting: str(setting))
_HOLD = Statement("hold", lambda id: int(id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Live jobs that a bulk act means: in these states, of one queue and task or of all."""

    states: frozenset[State]
    queue: str | None = None
    task: str | None = None

    def params(self) -> dict[str, Any]:
        """The parameters of the statements that use them."""
        return {"queue": self.queue, "task": self.task, "states": sorted(map(str, self.states))}


def matching(which: Matching, *, authority: Authority, before_id: int | None, limit: int) -> Verb[list[int]]:
    """Ids of these jobs, the newest first, below `before_id`."""
    require_staff(authority, "matching")
    rows: list[int] = yield _MATCHING.call(
        before_id=before_id, limit=limit, **which.params(), **reach_of(authority)
    )
    return rows


def count_matching(which: Matching, *, authority: Authority) -> Verb[int]:
    """How many these are now, exactly."""
    require_staff(authority, "matching")
    [n] = yield _COUNT_MATCHING.call(**which.params(), **reach_of(authority))
    return int(n)


def hold(job_ids: Sequence[int], *, authority: Authority) -> Verb[None]:
    """Lock live jobs until the open transaction ends, waiting for a bounded time. Raises Busy.

    Within a transaction only, before a verb on the same jobs.
    """
    reach = reach_of(authority)
    yield _LOCK_TIMEOUT.call(milliseconds=HOLD_MILLISECONDS)
    try:
        yield _HOLD.call(ids=list(job_ids), **reach)
    except (pg.LockNotAvailable, pg.DeadlockDetected):
        raise Busy("another transaction holds this job just now; try again") from None


def cancel(job_ids: Sequence[int], *, authority: Authority, cause: str = "user") -> Verb[Answer]:
    """End jobs: waiting and quarantined ones at once; of running ones the end is asked for.

    `Owner` may cancel its own jobs and those that it watches, but not quarantined ones.
    """
    return (yield from _act(states.Verb.CANCEL, _CANCEL, job_ids, authority, {"cause": cause}))


def cancel_one(job_id: int, *, authority: Authority) -> Verb[Answer]:
    """As `cancel`, and waits a moment for who has the job in hand, such as a heartbeat."""
    reach_of(authority)
    answer: Answer = yield Atomic(_cancel_held(job_id, authority))
    return answer


def _cancel_held(job_id: int, authority: Authority) -> Verb[Answer]:
    [patience] = yield _PATIENCE.call()
    yield from hold([job_id], authority=authority)
    answer = yield from cancel([job_id], authority=authority)
    # The transaction may be the caller's, who goes on with a patience of their own.
    yield _LOCK_TIMEOUT.call(milliseconds=patience)
    return answer


def expedite(job_ids: Sequence[int], *, authority: Authority, by: str) -> Verb[Answer]:
    """Make waiting jobs available before they are due. `by`: who did it, for the event."""
    return (yield from _operate(states.Verb.EXPEDITE, _EXPEDITE, job_ids, authority, by, {}))


def reinstate(
    job_ids: Sequence[int],
    *,
    authority: Authority,
    by: str,
    limits: Limits,
    held_for: QuarantineReason | None = None,
) -> Verb[Answer]:
    """Let quarantined jobs run again, with as many more attempts as `limits` says. A held key is named.

    `held_for`: only those that are held back for this reason.
    """
    params = {"reason": None if held_for is None else str(held_for), **limits.params()}
    return (yield from _operate(states.Verb.REINSTATE, _REINSTATE, job_ids, authority, by, params))


def discard(job_ids: Sequence[int], *, authority: Authority, held_seconds: float | None = None) -> Verb[Answer]:
    """Give quarantined jobs up for good; with `held_seconds` only those that have been held for longer."""
    require_staff(authority, states.Verb.DISCARD)
    params = {"seconds": held_seconds}
    return (yield from _act(states.Verb.DISCARD, _DISCARD_HELD, job_ids, authority, params))


def quarantine(job_ids: Sequence[int], *, authority: Authority, by: str) -> Verb[Answer]:
    """Hold waiting jobs back until somebody reinstates them."""
    return (yield from _operate(states.Verb.QUARANTINE, _HOLD_BACK, job_ids, authority, by, {}))


def hold_again(
    job_ids: Sequence[int], *, authority: Authority, by: str, since: datetime, reason: QuarantineReason
) -> Verb[Answer]:
    """Hold waiting jobs back again that were reinstated before `since` and that nobody has claimed after it."""
    params = {"since": since, "reason": str(reason)}
    return (yield from _operate(states.Verb.QUARANTINE, _HOLD_AGAIN, job_ids, authority, by, params))


def reprioritise(job_ids: Sequence[int], *, authority: Authority, by: str, priority: int) -> Verb[Answer]:
    """Give waiting jobs another priority, from -100 to 100, higher first. Raises InvalidJob."""
    if not -100 <= priority <= 100:
        raise InvalidJob(f"priority is a whole number from -100 to 100, not {priority}")
    params = {"priority": priority}
    return (yield from _operate(states.Verb.REPRIORITISE, _REPRIORITISE, job_ids, authority, by, params))


def reschedule(job_ids: Sequence[int], *, authority: Authority, by: str, due_at: datetime) -> Verb[Answer]:
    """Set when waiting jobs are due, an aware time. Raises InvalidJob."""
    if due_at.utcoffset() is None:
        raise InvalidJob("due_at must be an aware datetime: add a time zone")
    params = {"due_at": due_at}
    return (yield from _operate(states.Verb.RESCHEDULE, _RESCHEDULE, job_ids, authority, by, params))


def rerun(
    job_id: int, *, authority: Authority, limits: Limits, revision: TaskConfig | None = None
) -> Verb[Enqueued | Unchanged]:
    """Run a finished job once more, as a new job of the same owner and key, and with no watchers.

    By the configuration that it had, or by the `revision` given. Raises NotAllowed where the project's authorizer
    refuses.
    """
    require_staff(authority, states.Verb.RERUN)
    # What is read here of a job never changes.
    if guards_queues() and (job := (yield from read.job(authority=authority, job_id=job_id))) is not None:
        require_queue(authority=authority, queue=job.queue, task=job.task)
    wished = {
        "task": None if revision is None else revision.task,
        "revision": None if revision is None else revision.revision,
        "config": None if revision is None else revision.to_json(),
    }
    reach = reach_of(authority)
    rows: list[Enqueued] = yield _RERUN.call(id=job_id, **wished, **limits.params(), **reach)
    if rows:
        return rows[0]
    return (yield from _why_no_copy(job_id, reach, FINAL))


def edit(job_id: int, *, authority: Authority, args: str, limits: Limits) -> Verb[Enqueued | Unchanged]:
    """Run a finished or quarantined job as a new job with other arguments (a JSON text), as by `rerun`.

    The job itself stays as it is. Raises NotAllowed where the project's authorizer refuses.
    """
    require_staff(authority, "edit")
    if guards_queues() and (job := (yield from read.job(authority=authority, job_id=job_id))) is not None:
        require_queue(authority=authority, queue=job.queue, task=job.task)
    reach = reach_of(authority)
    rows: list[Enqueued] = yield _EDIT.call(id=job_id, args=args, **limits.params(), **reach)
    if rows:
        return rows[0]
    return (yield from _why_no_copy(job_id, reach, FINAL | {State.QUARANTINED}))


def _why_no_copy(job_id: int, reach: dict[str, Any], legal: AbstractSet[State]) -> Verb[Unchanged]:
    """Why no new job was made of one that may be copied in these states."""
    [standing] = yield _STANDING.call(ids=[job_id], **reach)
    _, state, holder = standing
    if state is None:
        return Unchanged(job_id, Why.MISSING)
    if state not in legal:
        return Unchanged(job_id, Why.STATE, state)
    return Unchanged(job_id, Why.BUSY if holder is None else Why.KEY_HELD, state, holder)


def _operate(
    verb: states.Verb,
    statement: Statement[Changed],
    job_ids: Sequence[int],
    authority: Authority,
    by: str,
    params: dict[str, Any],
) -> Verb[Answer]:
    """A verb that leaves events; whoever stores events of a job numbers them alone."""
    require_staff(authority, verb)
    params = {"by": by, "kind": verb.value, **params}
    answer: Answer = yield Atomic(_numbered(verb, statement, job_ids, authority, params))
    return answer


def _numbered(
    verb: states.Verb,
    statement: Statement[Changed],
    job_ids: Sequence[int],
    authority: Authority,
    params: dict[str, Any],
) -> Verb[Answer]:
    yield _NUMBER_EVENTS.call(ids=sorted(job_ids))
    return (yield from _act(verb, statement, job_ids, authority, params))


def _act(
    verb: states.Verb,
    statement: Statement[Changed],
    job_ids: Sequence[int],
    authority: Authority,
    params: dict[str, Any],
) -> Verb[Answer]:
    job_ids, reach = sorted(set(job_ids)), reach_of(authority)
    changed = yield from with_todays_partitions(lambda: _write(statement, job_ids, {**params, **reach}))
    left = sorted(set(job_ids) - {job.id for job in changed})
    standings = (yield _STANDING.call(ids=left, **reach)) if left else []
    unchanged = tuple(_unchanged(verb, reach["owner"], *standing) for standing in standings)
    return Answer(tuple(sorted(changed, key=lambda job: job.id)), unchanged)


def _write(statement: Statement[Changed], job_ids: Sequence[int], params: dict[str, Any]) -> Verb[list[Changed]]:
    """The jobs in one statement; halved where two of them want one key, until the loser is alone."""
    try:
        changed: list[Changed] = yield Atomic(_one(statement.call(ids=list(job_ids), **params)))
    except pg.UniqueViolation:
        if len(job_ids) == 1:
            return []
    else:
        return changed
    middle = len(job_ids) // 2
    first = yield from _write(statement, job_ids[:middle], params)
    return [*first, *(yield from _write(statement, job_ids[middle:], params))]


def _one(call: Call[Changed]) -> Verb[list[Changed]]:
    rows: list[Changed] = yield call
    return rows


def _unchanged(
    verb: states.Verb, owner: str | None, job_id: int, state: State | None, holder: int | None
) -> Unchanged:
    if state is None:
        return Unchanged(job_id, Why.MISSING)
    rule = TRANSITIONS.get((state, verb))
    # A verb of the same name may be a worker's: it discards a job that runs, an operator does not.
    if rule is None or (Actor.OWNER if owner is not None else Actor.OPERATOR) not in rule.by:
        return Unchanged(job_id, Why.STATE, state)
    # Its state allows the verb, and still it was not changed: its key is taken, or its row was locked.
    if holder is not None and verb in {states.Verb.REINSTATE, states.Verb.EXPEDITE}:
        return Unchanged(job_id, Why.KEY_HELD, state, holder)
    return Unchanged(job_id, Why.BUSY, state)
