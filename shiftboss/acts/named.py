"""One act on many jobs that somebody has chosen: one transaction, one entry of the audit, an answer for each."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError

from shiftboss.acts import attempts
from shiftboss.acts.attempts import Groups
from shiftboss.acts.performing import LARGEST_ID, MAX_REQUEST_LENGTH, SYSTEM, at_once, keep, permit
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue.errors import Busy, InvalidJob, RequestReused
from shiftboss.queue.states import FINAL, State
from shiftboss.queue.store import audit, many, operate
from shiftboss.queue.store.many import Standing
from shiftboss.queue.store.operate import Answer, Changed, Unchanged, Why
from shiftboss.queue.store.statement import Atomic, Verb, run

MOST = 1000
"""Jobs that one act on chosen ones takes."""

ON_MANY = (Act.REINSTATE, Act.RERUN, Act.EXPEDITE, Act.DISCARD, Act.CANCEL, Act.QUARANTINE)
"""The acts that can be done to many jobs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Many:
    """What an act did to many jobs, each of which is told once.

    `changed`: these were. `left`: these were left as they are, and why. `before` and `after` are how many of the
    changed ones were in which state. `new_jobs`: of a rerun, the new job of each. `operation` names the act in the
    audit; None where nothing was changed. `repeated`: the same request had done it before; not again now.
    """

    act: Act
    operation: UUID | None = None
    changed: tuple[int, ...] = ()
    left: tuple[Unchanged, ...] = ()
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    new_jobs: Mapping[int, int] = field(default_factory=dict)
    repeated: bool = False


def on_many(
    act: Act, job_ids: Iterable[int], *, by: Person, reason: str = "", request_id: str | None = None
) -> Many:
    """Do one of `ON_MANY` to up to `MOST` jobs, as it is done to one.

    What cannot be changed is left and told; a job that somebody has in hand is waited for, for a moment. Raises
    NotAllowed, ReasonNeeded, InvalidJob, RequestReused and Busy; then nothing was changed.
    """
    require(PERMISSIONS[act], by=by)
    ids = _checked(act, job_ids, request_id)
    reason = permit(act, by, reason)
    # Outside the transaction: tasks may be imported.
    runs_again = act in (Act.REINSTATE, Act.RERUN)
    again = attempts.groups(run(many.named(ids, authority=by.authority))) if runs_again else []
    operation = uuid4()
    try:
        with at_once():
            if request_id is not None:
                run(audit.hold_request(request_id, authority=SYSTEM, actor_kind=by.kind, actor_id=by.id))
                if (earlier := _earlier(act, ids, by, reason, request_id)) is not None:
                    return earlier
            answer, new_jobs = _done(act, ids, by, again)
            done = _told(act, answer, new_jobs, operation)
            if answer.changed:
                _keep(done, ids, by, reason, request_id)
    except IntegrityError:
        # An act of another kind was kept under this id meanwhile, and this one is undone.
        if (earlier := _earlier(act, ids, by, reason, request_id)) is None:
            raise
        return earlier
    return done


def verb_of(act: Act, *, by: Person, again: Groups) -> Callable[[Sequence[int]], Answer]:
    """How an act changes jobs that live. `again`: what a reinstatement wants to know of them."""

    def reinstate(ids: Sequence[int]) -> Answer:
        wanted = set(ids)
        answers = [
            run(
                operate.reinstate(
                    [one.id for one in jobs if one.id in wanted],
                    authority=by.authority,
                    by=by.name,
                    limits=limits,
                )
            )
            for jobs, limits in again
            if any(one.id in wanted for one in jobs)
        ]
        known = {one.id for jobs, _ in again for one in jobs}
        missing = tuple(Unchanged(id, Why.MISSING) for id in ids if id not in known)
        return _joined([*answers, Answer((), missing)])

    match act:
        case Act.REINSTATE:
            return reinstate
        case Act.EXPEDITE:
            return lambda ids: run(operate.expedite(ids, authority=by.authority, by=by.name))
        case Act.DISCARD:
            return lambda ids: run(operate.discard(ids, authority=by.authority))
        case Act.QUARANTINE:
            return lambda ids: run(operate.quarantine(ids, authority=by.authority, by=by.name))
        case Act.CANCEL:
            return lambda ids: run(operate.cancel(ids, authority=by.authority))
    raise InvalidJob(f"{act} is not done to many jobs at once")


def tally(states: Iterable[State]) -> dict[str, int]:
    """How many are in which state."""
    return dict(Counter(map(str, states)))


def _checked(act: Act, job_ids: Iterable[int], request_id: str | None) -> list[int]:
    if act not in ON_MANY:
        raise InvalidJob(f"{act} is not done to many jobs at once")
    ids = sorted(set(job_ids))
    if not 1 <= len(ids) <= MOST:
        raise InvalidJob(f"choose 1 to {MOST:,} jobs, not {len(ids):,}")
    if not (ids[0] > 0 and ids[-1] <= LARGEST_ID):
        raise InvalidJob("an id is a whole number from 1 on")
    if request_id is not None and not (1 <= len(request_id) <= MAX_REQUEST_LENGTH and request_id.isprintable()):
        raise InvalidJob(f"a request id has 1 to {MAX_REQUEST_LENGTH} printable characters")
    return ids


def _done(act: Act, ids: Sequence[int], by: Person, again: Groups) -> tuple[Answer, dict[int, int]]:
    if act is Act.RERUN:
        return _rerun(ids, by, again)
    do = verb_of(act, by=by, again=again)
    answer = do(ids)
    busy = [one.id for one in answer.unchanged if one.why is Why.BUSY]
    if not busy:
        return answer, {}
    try:
        run(_waited_for(busy, by))
    except Busy:
        return answer, {}
    rest = tuple(one for one in answer.unchanged if one.why is not Why.BUSY)
    return _joined([Answer(answer.changed, rest), do(busy)]), {}


def _waited_for(ids: Sequence[int], by: Person) -> Verb[None]:
    # Its own savepoint: what was changed stays where the wait is in vain.
    yield Atomic(operate.hold(ids, authority=by.authority))


def _rerun(ids: Sequence[int], by: Person, again: Groups) -> tuple[Answer, dict[int, int]]:
    made = [
        row
        for jobs, limits in again
        if (over := [one for one in jobs if one.state in FINAL])
        for row in run(many.rerun(over, authority=by.authority, limits=limits))
    ]
    new_jobs = {old: new for old, new, _ in made}
    changed = tuple(Changed(old, state, State.AVAILABLE) for old, _, state in made)
    rest = [id for id in ids if id not in new_jobs]
    left = run(many.named(rest, authority=by.authority)) if rest else []
    return Answer(changed, tuple(map(_not_rerun, left))), new_jobs


def _not_rerun(one: Standing) -> Unchanged:
    if one.state is None:
        return Unchanged(one.id, Why.MISSING)
    if one.state not in FINAL:
        return Unchanged(one.id, Why.STATE, one.state)
    return Unchanged(one.id, Why.BUSY if one.holder is None else Why.KEY_HELD, one.state, one.holder)


def _joined(answers: Sequence[Answer]) -> Answer:
    changed = [one for answer in answers for one in answer.changed]
    unchanged = [one for answer in answers for one in answer.unchanged]
    return Answer(tuple(sorted(changed, key=lambda one: one.id)), tuple(sorted(unchanged, key=lambda one: one.id)))


def _told(act: Act, answer: Answer, new_jobs: dict[int, int], operation: UUID) -> Many:
    return Many(
        act=act,
        operation=operation if answer.changed else None,
        changed=tuple(one.id for one in answer.changed),
        left=answer.unchanged,
        before=tally(one.before for one in answer.changed),
        after=tally(one.after for one in answer.changed),
        new_jobs=new_jobs,
    )


def _keep(done: Many, ids: Sequence[int], by: Person, reason: str, request_id: str | None) -> None:
    assert done.operation is not None
    left = [[one.id, str(one.why), one.state and str(one.state), one.holder] for one in done.left]
    after = {**done.after, "ids": list(done.changed)}
    if left:
        after["left"] = left
    if done.new_jobs:
        after["new"] = [list(pair) for pair in done.new_jobs.items()]
    keep(
        done.act,
        by,
        reason,
        operation=done.operation,
        jobs=len(done.changed),
        request_id=request_id,
        asked={"ids": list(ids)},
        before=done.before,
        after=after,
    )


def _earlier(act: Act, ids: Sequence[int], by: Person, reason: str, request_id: str | None) -> Many | None:
    """What the same request did when it came first. Raises RequestReused where it asked for something else."""
    if request_id is None:
        return None
    row = run(audit.audited(request_id, authority=SYSTEM, actor_kind=by.kind, actor_id=by.id))
    if row is None:
        return None
    if (row.act, row.reason, json.loads(row.asked)) != (act, reason, {"ids": list(ids)}):
        raise RequestReused(f"the request id {request_id!r} was used before, for something else")
    after: dict[str, Any] = json.loads(row.after)
    changed, left, new = after.pop("ids"), after.pop("left", []), after.pop("new", [])
    return Many(
        act=act,
        operation=row.operation,
        changed=tuple(changed),
        left=tuple(
            Unchanged(id, Why(why), None if state is None else State(state), holder)
            for id, why, state, holder in left
        ),
        before=json.loads(row.before),
        after=after,
        new_jobs=dict(new),
        repeated=True,
    )
