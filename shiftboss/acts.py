"""What people do. Each act is a permission, a reason, an entry of the audit and a verb, in one transaction.

Console, API and command line call only these. Staff act as `System`, after the check; the person is recorded.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, NoReturn
from uuid import UUID, uuid4

from django.db import IntegrityError, OperationalError, connections, transaction
from psycopg import errors as pg

from shiftboss import conf
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act, Person, require
from shiftboss.queue import registry, states
from shiftboss.queue.authority import System, read_key
from shiftboss.queue.errors import (
    Busy,
    InvalidJob,
    KeyHeld,
    MovedOn,
    NoSuchBackfill,
    NoSuchJob,
    ReasonNeeded,
    RequestReused,
    UnknownTask,
)
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import FINAL, TRANSITIONS, Actor, State
from shiftboss.queue.store import audit, backfill, operate, partitions, queues, read
from shiftboss.queue.store.enqueue import check_queue
from shiftboss.queue.store.operate import HOLD_MILLISECONDS, Answer, Limits, Matching, Unchanged, Why
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.read import JobDetail
from shiftboss.queue.store.statement import Verb, run
from shiftboss.queue.tasks import NO_OPTIONS, attempts_of, config_of

SYSTEM = System()
LARGEST_ID = 2**63 - 1
MAX_REASON_LENGTH = 1000
MAX_REQUEST_LENGTH = 100
BULK_BATCH = 2000
BULK_PASSES = 5
"""How often a bulk act comes back to jobs that somebody else had in hand."""


class Revision(StrEnum):
    """By which configuration of its task a rerun is done: that of the job, or the present one."""

    SAME = "same"
    CURRENT = "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What an act did. `new_job_id`: of a rerun. `repeated`: the same request had done it before; not again now.

    `before` and `after` are states of a job, or "paused" and "running" of a queue or a backfill. `items`: how many
    of a backfill were cancelled, asked to end, or are to run again.
    """

    act: Act
    job_id: int | None = None
    queue: str | None = None
    before: str | None = None
    after: str | None = None
    new_job_id: int | None = None
    backfill_id: int | None = None
    items: int | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What was done, in facts for the audit: what they were, and what they are now. `jobs`: how many changed."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 0


def legal(state: State) -> list[Act]:
    """What a person may do to a job in this state, as far as the state machine goes."""
    allowed = {
        verb for (before, verb), rule in TRANSITIONS.items() if before is state and Actor.OPERATOR in rule.by
    }
    if state in FINAL:
        allowed.add(states.Verb.RERUN)
    return [act for act in Act if act.value in allowed]


def cancel(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """End a job: at once where it waits or is held, else its handler is asked to end."""
    return _on_job(Act.CANCEL, job_id, by, reason, request_id, lambda ids: operate.cancel(ids, authority=SYSTEM))


def expedite(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Make a waiting job available before it is due."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.expedite(ids, authority=SYSTEM, by=by.name)

    return _on_job(Act.EXPEDITE, job_id, by, reason, request_id, verb)


def reinstate(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a quarantined job run again, with as many more attempts as its task has."""
    require(PERMISSIONS[Act.REINSTATE], by=by)
    limits = _limits_of(_job(job_id))

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reinstate(ids, authority=SYSTEM, by=by.name, limits=limits)

    return _on_job(Act.REINSTATE, job_id, by, reason, request_id, verb)


def discard(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Give a quarantined job up for good."""
    return _on_job(Act.DISCARD, job_id, by, reason, request_id, lambda ids: operate.discard(ids, authority=SYSTEM))


def quarantine(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Hold a waiting job back until somebody reinstates it."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.quarantine(ids, authority=SYSTEM, by=by.name)

    return _on_job(Act.QUARANTINE, job_id, by, reason, request_id, verb)


def reprioritise(
    job_id: int, *, by: Person, priority: int, reason: str = "", request_id: str | None = None
) -> Acted:
    """Give a waiting job another priority, from -100 to 100."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reprioritise(ids, authority=SYSTEM, by=by.name, priority=priority)

    asked = {"priority": priority}
    return _on_job(Act.REPRIORITISE, job_id, by, reason, request_id, verb, asked, lambda job: job.priority)


def reschedule(
    job_id: int, *, by: Person, due_at: datetime, reason: str = "", request_id: str | None = None
) -> Acted:
    """Set when a waiting job is due, an aware time."""
    moment = _moment(due_at)

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reschedule(ids, authority=SYSTEM, by=by.name, due_at=moment)

    asked = {"due_at": moment.isoformat()}
    return _on_job(
        Act.RESCHEDULE, job_id, by, reason, request_id, verb, asked, lambda job: _moment(job.due_at).isoformat()
    )


def rerun(
    job_id: int,
    *,
    by: Person,
    revision: str = Revision.SAME,
    reason: str = "",
    request_id: str | None = None,
) -> Acted:
    """Run a finished job once more, as a new job; `new_job_id` is its id. `revision`: a `Revision`."""
    require(PERMISSIONS[Act.RERUN], by=by)
    if revision not in tuple(Revision):
        raise InvalidJob(f"revision is {' or '.join(Revision)}, not {revision!r}")
    job = _job(job_id)
    limits = _limits_of(job)
    config = _present_config(job) if job and revision == Revision.CURRENT else None
    asked = {"revision": str(revision)} if revision == Revision.CURRENT else {}

    def do() -> Deed:
        answer = run(operate.rerun(job_id, authority=SYSTEM, limits=limits, revision=config))
        if isinstance(answer, Unchanged):
            _refuse(Act.RERUN, answer)
        before = {"state": str(job.state)} if job and job.state in FINAL else {}
        after = {"state": str(answer.state), "new_job_id": str(answer.id)}
        return Deed(before=before, after=after, jobs=1)

    return perform(Act.RERUN, do, by=by, reason=reason, request_id=request_id, job_id=job_id, asked=asked)


def pause(queue: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Stop a queue from being claimed. A queue that is paused already stays so, with the first reason."""

    def do() -> Deed:
        new = run(queues.pause(queue, authority=SYSTEM, by=by.name, reason=reason.strip()))
        return Deed(before={"state": "running" if new else "paused"}, after={"state": "paused"})

    return perform(Act.PAUSE, do, by=by, reason=reason, request_id=request_id, queue=queue)


def resume(queue: str, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a queue be claimed again."""

    def do() -> Deed:
        was_paused = run(queues.resume(queue, authority=SYSTEM))
        return Deed(before={"state": "paused" if was_paused else "running"}, after={"state": "running"})

    return perform(Act.RESUME, do, by=by, reason=reason, request_id=request_id, queue=queue)


class LimitWord(StrEnum):
    """A limit that is no number: none at all, one job at a time in strict order, or what the settings say."""

    NONE = "none"
    SEQUENTIAL = "sequential"
    SETTINGS = "settings"


def limit(queue: str, *, by: Person, limit: int | LimitWord, reason: str, request_id: str | None = None) -> Acted:
    """Say how many jobs of a queue run at once over all workers; stands against the settings until it is reset.

    `before` and `after` are the number, `sequential` or `unlimited`. Jobs that run already go on, and count.
    """
    given = _limit(queue, limit)
    reset = limit == LimitWord.SETTINGS

    def do() -> Deed:
        verb = queues.limit(queue, given, authority=SYSTEM, by=None if reset else by.name, reset=reset)
        before = run(verb) or given
        return Deed(before={"state": before.word}, after={"state": given.word})

    asked = {"limit": limit}
    return perform(Act.LIMIT, do, by=by, reason=reason, request_id=request_id, queue=queue, asked=asked)


def _limit(queue: str, limit: int | LimitWord) -> Limit:
    """Raises InvalidJob for a number that cannot be one."""
    match limit:
        case LimitWord.NONE:
            return Limit()
        case LimitWord.SEQUENTIAL:
            return Limit(1, sequential=True)
        case LimitWord.SETTINGS:
            return Limit.of(conf.get().queues.get(queue))
    return Limit(limit)


def pause_backfill(backfill_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Enqueue no more items of a backfill; jobs that it has go on. One that is paused already stays so."""

    def do() -> Deed:
        new = run(backfill.pause(backfill_id, authority=SYSTEM))
        return Deed(before={"state": "running" if new else "paused"}, after={"state": "paused"})

    return _on_backfill(Act.PAUSE_BACKFILL, backfill_id, by, reason, request_id, do)


def resume_backfill(backfill_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a backfill go on."""

    def do() -> Deed:
        was_paused = run(backfill.resume(backfill_id, authority=SYSTEM))
        return Deed(before={"state": "paused" if was_paused else "running"}, after={"state": "running"})

    return _on_backfill(Act.RESUME_BACKFILL, backfill_id, by, reason, request_id, do)


def retry_backfill(backfill_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Run again what failed of a backfill, and nothing else."""

    def do() -> Deed:
        retried = run(backfill.retry(backfill_id, authority=SYSTEM))
        return Deed(after={"items": retried.anew + retried.reinstated})

    return _on_backfill(Act.RETRY_BACKFILL, backfill_id, by, reason, request_id, do)


def cancel_backfill(backfill_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """End a backfill: no more of its items are enqueued, its jobs are cancelled, running ones asked to end."""

    def do() -> Deed:
        return Deed(after={"items": run(backfill.cancel(backfill_id, authority=SYSTEM))})

    return _on_backfill(Act.CANCEL_BACKFILL, backfill_id, by, reason, request_id, do)


def _on_backfill(
    act: Act, backfill_id: int, by: Person, reason: str, request_id: str | None, do: Callable[[], Deed]
) -> Acted:
    require(PERMISSIONS[act], by=by)
    if not 0 < backfill_id <= LARGEST_ID:
        raise NoSuchBackfill(f"there is no backfill {backfill_id}")
    asked = {"backfill_id": str(backfill_id)}
    return perform(act, do, by=by, reason=reason, request_id=request_id, asked=asked)


def purge(before: date, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Order that the history before a day (UTC) be dropped; the maintainer does it within a minute or two."""

    def do() -> Deed:
        run(partitions.purge(before, authority=SYSTEM))
        return Deed()

    asked = {"before": before.isoformat()}
    return perform(Act.PURGE, do, by=by, reason=reason, request_id=request_id, asked=asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How far a bulk act is: jobs ended, running jobs whose end was asked for, and jobs left as they were."""

    operation: UUID
    ended: int = 0
    requested: int = 0
    left: int = 0


def cancel_matching(which: Matching, *, by: Person, reason: str) -> Iterator[Swept]:
    """Cancel all jobs that match now, in batches, each a transaction with its entry of the audit.

    Refuses at once what is not permitted. Yields how far it is after each batch; who stops asking stops the act.
    From the newest down, away from where workers claim; jobs that somebody else has in hand are come back to. A
    job that has been claimed since it matched is asked to end, as by `cancel`.
    """
    reason = _permit(Act.CANCEL, by, reason)
    if which.queue is not None:
        check_queue(which.queue)
    if which.task is not None and not which.task.isprintable():
        raise InvalidJob("a task's name is made of printable characters")
    return _sweeps(which, by, reason)


def _sweeps(which: Matching, by: Person, reason: str) -> Iterator[Swept]:
    so_far = Swept(operation=uuid4())
    before_id: int | None = None
    busy: list[int] = []
    while ids := run(operate.matching(which, authority=SYSTEM, before_id=before_id, limit=BULK_BATCH)):
        before_id = ids[-1]
        so_far, again = _sweep(ids, which, by, reason, so_far)
        busy += again
        yield so_far
    for _ in range(BULK_PASSES):
        ids, busy = busy, []
        for start in range(0, len(ids), BULK_BATCH):
            so_far, again = _sweep(ids[start : start + BULK_BATCH], which, by, reason, so_far)
            busy += again
            yield so_far
    yield replace(so_far, left=so_far.left + len(busy))


def _sweep(ids: list[int], which: Matching, by: Person, reason: str, so_far: Swept) -> tuple[Swept, list[int]]:
    """One batch; how far the act is then, and the jobs to come back to."""
    with _at_once():
        answer = run(operate.cancel(ids, authority=SYSTEM))
        requested = sum(1 for job in answer.changed if job.after is State.RUNNING)
        if answer.changed:
            _write(
                Act.CANCEL,
                by,
                reason,
                operation=so_far.operation,
                queue=which.queue,
                jobs=len(answer.changed),
                asked={"task": which.task, "states": sorted(map(str, which.states))},
                before=_tally(job.before for job in answer.changed),
                after=_tally(job.after for job in answer.changed),
            )
    busy = [job.id for job in answer.unchanged if job.why is Why.BUSY]
    swept = Swept(
        operation=so_far.operation,
        ended=so_far.ended + len(answer.changed) - requested,
        requested=so_far.requested + requested,
        left=so_far.left + len(answer.unchanged) - len(busy),
    )
    return swept, busy


def _tally(states: Iterator[State]) -> dict[str, int]:
    tally: dict[str, int] = {}
    for state in states:
        tally[str(state)] = tally.get(str(state), 0) + 1
    return tally


def _on_job(
    act: Act,
    job_id: int,
    by: Person,
    reason: str,
    request_id: str | None,
    verb: Callable[[list[int]], Verb[Answer]],
    asked: Mapping[str, Any] | None = None,
    present: Callable[[JobDetail], Any] | None = None,
) -> Acted:
    """An act on a job that lives. `present` reads what the one thing asked for is before, for the audit."""
    asked = asked or {}

    def do() -> Deed:
        run(operate.hold([job_id], authority=SYSTEM))
        # What is held cannot change between this look and the verb.
        job = run(read.job(authority=SYSTEM, job_id=job_id)) if present else None
        answer = run(verb([job_id]))
        if answer.unchanged:
            _refuse(act, answer.unchanged[0])
        [changed] = answer.changed
        was = {name: present(job) for name in asked} if present and job else {}
        return Deed(
            before={"state": str(changed.before), **was},
            after={"state": str(changed.after), **asked},
            jobs=1,
        )

    return perform(act, do, by=by, reason=reason, request_id=request_id, job_id=job_id, asked=asked)


def _refuse(act: Act, unchanged: Unchanged) -> NoReturn:
    job_id, state = unchanged.id, unchanged.state
    match unchanged.why:
        case Why.MISSING:
            raise NoSuchJob(f"there is no job {job_id}")
        case Why.STATE:
            raise MovedOn(job_id, act, str(state))
        case Why.KEY_HELD:
            assert unchanged.holder is not None
            raise KeyHeld(_key_of(job_id), unchanged.holder, "wait for its end, or cancel it first")
        case Why.BUSY:
            raise Busy(f"job {job_id} is being changed by somebody else just now; try again")


def _key_of(job_id: int) -> str:
    """The key as its enqueuer wrote it."""
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    text = (job and job.key) or ""
    with suppress(ValueError):
        return read_key(text).key
    return text


def perform(
    act: Act,
    do: Callable[[], Deed],
    *,
    by: Person,
    reason: str,
    request_id: str | None = None,
    job_id: int | None = None,
    queue: str | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Acted:
    """Check, do and keep in one transaction. A request that was done before answers as it did then.

    `asked`: what else was wished for, in JSON's types; a repeat wishes for the same. Raises NotAllowed,
    ReasonNeeded, InvalidJob, NoSuchJob, RequestReused, Busy and what `do` raises; then nothing was changed.
    """
    reason = _permit(act, by, reason)
    if request_id is not None and not (1 <= len(request_id) <= MAX_REQUEST_LENGTH and request_id.isprintable()):
        raise InvalidJob(f"a request id has 1 to {MAX_REQUEST_LENGTH} printable characters")
    if job_id is not None and not 0 < job_id <= LARGEST_ID:
        raise NoSuchJob(f"there is no job {job_id}")
    if queue is not None:
        check_queue(queue)
    wish = _Wish(act=act, job_id=job_id, queue=queue, reason=reason, asked=dict(asked or {}))
    try:
        with _at_once():
            deed = do()
            _write(
                act,
                by,
                reason,
                operation=uuid4(),
                job_id=job_id,
                queue=queue,
                jobs=deed.jobs,
                request_id=request_id,
                asked=wish.asked,
                before=deed.before,
                after=deed.after,
            )
    except (MovedOn, KeyHeld, NoSuchJob, Busy, IntegrityError):
        # The first of two equal requests has changed what the second one found.
        if request_id is None or (earlier := _earlier(request_id, by, wish)) is None:
            raise
        return earlier
    return _acted(wish, deed.before, deed.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What a request asks for; two with the same id are the same one where their wishes are equal."""

    act: str
    job_id: int | None
    queue: str | None
    reason: str
    asked: dict[str, Any]


def _acted(wish: _Wish, before: Mapping[str, Any], after: Mapping[str, Any], *, repeated: bool = False) -> Acted:
    new_job_id, backfill_id = after.get("new_job_id"), wish.asked.get("backfill_id")
    return Acted(
        act=Act(wish.act),
        job_id=wish.job_id,
        queue=wish.queue,
        before=before.get("state"),
        after=after.get("state"),
        new_job_id=None if new_job_id is None else int(new_job_id),
        backfill_id=None if backfill_id is None else int(backfill_id),
        items=after.get("items"),
        repeated=repeated,
    )


@contextmanager
def _at_once() -> Iterator[None]:
    """All or nothing, and no long wait for a lock; within a caller's transaction a part of it. Raises Busy."""
    alias = conf.get().database
    connection = connections[alias]
    try:
        with transaction.atomic(using=alias):
            with connection.cursor() as cursor:
                cursor.execute("select current_setting('lock_timeout')")
                [patience] = cursor.fetchone()
                cursor.execute("select set_config('lock_timeout', %s, true)", [str(HOLD_MILLISECONDS)])
            yield
            # Where the transaction is the caller's it goes on, and with the caller's own patience.
            with connection.cursor() as cursor:
                cursor.execute("select set_config('lock_timeout', %s, true)", [patience])
    except OperationalError as error:
        if isinstance(error.__cause__, (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)):
            raise Busy("another transaction holds what this act needs just now; try again") from None
        raise


def _permit(act: Act, by: Person, reason: str) -> str:
    """The reason as it is kept. Raises NotAllowed and ReasonNeeded."""
    require(PERMISSIONS[act], by=by)
    reason = reason.strip()
    if act in NEED_REASON and not reason:
        raise ReasonNeeded(f"{act} wants a reason: say in a few words why, for the audit")
    if len(reason) > MAX_REASON_LENGTH:
        raise ReasonNeeded(f"a reason has at most {MAX_REASON_LENGTH} characters, not {len(reason)}")
    if any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in reason):
        raise ReasonNeeded("a reason holds no NUL and no lone surrogate: PostgreSQL cannot keep them")
    return reason


def _earlier(request_id: str, by: Person, wish: _Wish) -> Acted | None:
    row = run(audit.audited(request_id, authority=SYSTEM, actor_kind=by.kind, actor_id=by.id))
    if row is None:
        return None
    asked = json.loads(row.asked)
    if wish != _Wish(act=row.act, job_id=row.job_id, queue=row.queue, reason=row.reason, asked=asked):
        raise RequestReused(f"the request id {request_id!r} was used before, for something else")
    return _acted(wish, json.loads(row.before), json.loads(row.after), repeated=True)


def _write(
    act: Act,
    by: Person,
    reason: str,
    *,
    operation: UUID,
    asked: Mapping[str, Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    job_id: int | None = None,
    queue: str | None = None,
    jobs: int = 0,
    request_id: str | None = None,
) -> None:
    entry = audit.Entry(
        actor_kind=by.kind,
        actor_id=by.id,
        actor_name=by.name,
        via=by.via,
        act=act,
        reason=reason,
        operation=operation,
        job_id=job_id,
        queue=queue,
        jobs=jobs,
        request_id=request_id,
        asked=json.dumps(dict(asked)),
        before=json.dumps(dict(before)),
        after=json.dumps(dict(after)),
    )
    run(audit.write(entry, authority=SYSTEM))


def _moment(time: datetime) -> datetime:
    """The same instant in UTC, so that equal wishes are equal. Raises InvalidJob."""
    if time.utcoffset() is None:
        raise InvalidJob("due_at must be an aware datetime: add a time zone")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InvalidJob("due_at must be between the years 1 and 9999, in UTC too") from None


def _job(job_id: int) -> JobDetail | None:
    return run(read.job(authority=SYSTEM, job_id=job_id)) if 0 < job_id <= LARGEST_ID else None


def _present_config(job: JobDetail) -> TaskConfig:
    """The configuration of the job's task as its code says now. Raises InvalidJob where there is none."""
    try:
        return config_of(registry.resolve(job.task), job.queue)
    except UnknownTask as problem:
        raise InvalidJob(f"there is no current revision: {problem}; rerun it by the same one") from problem


def _limits_of(job: JobDetail | None) -> Limits:
    """How often the job's task may fail and be lost, as its code says now; else as the settings say.

    Outside a transaction: the task's module may be imported here for the first time.
    """
    config = conf.get()
    failures = config.max_attempts
    if job is not None:
        try:
            failures = attempts_of(registry.resolve(job.task), job.queue)
        except UnknownTask:
            failures = config.queues.get(job.queue, NO_OPTIONS).max_attempts or failures
    return Limits(failures=failures, losses=config.max_losses, by_task={})
