"""Acts on one job."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NoReturn

from shiftboss import conf
from shiftboss.acts.performing import LARGEST_ID, Acted, Deed, perform
from shiftboss.permissions import PERMISSIONS, Act, Person, require
from shiftboss.queue import registry, states
from shiftboss.queue.errors import Busy, InvalidJob, KeyHeld, MovedOn, NoSuchJob, UnknownTask
from shiftboss.queue.keys import read_key
from shiftboss.queue.payload import args_digest
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import FINAL, TRANSITIONS, Actor, State
from shiftboss.queue.store import operate, read
from shiftboss.queue.store.operate import Answer, Limits, Unchanged, Why
from shiftboss.queue.store.read import JobDetail
from shiftboss.queue.store.statement import Verb, run
from shiftboss.queue.tasks import NO_OPTIONS, attempts_of, config_of


class Revision(StrEnum):
    """By which configuration of its task a rerun is done: that of the job, or the present one."""

    SAME = "same"
    CURRENT = "current"


def legal(state: State) -> list[Act]:
    """What a person may do to a job in this state, as far as the state machine goes."""
    allowed = {
        verb for (before, verb), rule in TRANSITIONS.items() if before is state and Actor.OPERATOR in rule.by
    }
    if state in FINAL:
        allowed.add(states.Verb.RERUN)
    may_edit = state in FINAL or state is State.QUARANTINED
    return [act for act in Act if act.value in allowed or (act is Act.EDIT and may_edit)]


def cancel(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """End a job: at once where it waits or is held, else its handler is asked to end."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.cancel(ids, authority=by.authority)

    return _on_job(Act.CANCEL, job_id, by, reason, request_id, verb)


def expedite(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Make a waiting job available before it is due."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.expedite(ids, authority=by.authority, by=by.name)

    return _on_job(Act.EXPEDITE, job_id, by, reason, request_id, verb)


def reinstate(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a quarantined job run again, with as many more attempts as its task has."""
    require(PERMISSIONS[Act.REINSTATE], by=by)
    limits = _limits_of(_job(job_id, by))

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reinstate(ids, authority=by.authority, by=by.name, limits=limits)

    return _on_job(Act.REINSTATE, job_id, by, reason, request_id, verb)


def discard(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Give a quarantined job up for good."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.discard(ids, authority=by.authority)

    return _on_job(Act.DISCARD, job_id, by, reason, request_id, verb)


def quarantine(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Hold a waiting job back until somebody reinstates it."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.quarantine(ids, authority=by.authority, by=by.name)

    return _on_job(Act.QUARANTINE, job_id, by, reason, request_id, verb)


def reprioritise(
    job_id: int, *, by: Person, priority: int, reason: str = "", request_id: str | None = None
) -> Acted:
    """Give a waiting job another priority, from -100 to 100."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reprioritise(ids, authority=by.authority, by=by.name, priority=priority)

    asked = {"priority": priority}
    return _on_job(Act.REPRIORITISE, job_id, by, reason, request_id, verb, asked, lambda job: job.priority)


def reschedule(
    job_id: int, *, by: Person, due_at: datetime, reason: str = "", request_id: str | None = None
) -> Acted:
    """Set when a waiting job is due, an aware time."""
    moment = _moment(due_at)

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reschedule(ids, authority=by.authority, by=by.name, due_at=moment)

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
    job = _job(job_id, by)
    limits = _limits_of(job)
    config = _present_config(job) if job and revision == Revision.CURRENT else None
    asked = {"revision": str(revision)} if revision == Revision.CURRENT else {}

    def do() -> Deed:
        answer = run(operate.rerun(job_id, authority=by.authority, limits=limits, revision=config))
        if isinstance(answer, Unchanged):
            _refuse(Act.RERUN, answer, by)
        before = {"state": str(job.state)} if job and job.state in FINAL else {}
        after = {"state": str(answer.state), "new_job_id": str(answer.id)}
        return Deed(before=before, after=after, jobs=1)

    return perform(Act.RERUN, do, by=by, reason=reason, request_id=request_id, job_id=job_id, asked=asked)


def edit(job_id: int, *, by: Person, args: str, reason: str = "", request_id: str | None = None) -> Acted:
    """Run a finished or quarantined job as a new job with other arguments, a JSON text; `new_job_id` is its id.

    The job itself stays as it is. `args` is `{"args": […], "kwargs": {…}}` as the record stores it. Raises
    InvalidJob.
    """
    require(PERMISSIONS[Act.EDIT], by=by)
    text = arguments(args)
    job = _job(job_id, by)
    limits = _limits_of(job)

    def do() -> Deed:
        answer = run(operate.edit(job_id, authority=by.authority, args=text, limits=limits))
        if isinstance(answer, Unchanged):
            _refuse(Act.EDIT, answer, by)
        # No arguments in the audit: who may read it need not be one who may see them.
        before = {"state": str(job.state), "args_sha256": args_digest(job.args)} if job else {}
        return Deed(before=before, after={"state": str(answer.state), "new_job_id": str(answer.id)}, jobs=1)

    asked = {"args_sha256": args_digest(text)}
    return perform(Act.EDIT, do, by=by, reason=reason, request_id=request_id, job_id=job_id, asked=asked)


def reveal(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Keep in the audit that somebody looks at the arguments of a job; who has been let may read them then."""

    def do() -> Deed:
        if _job(job_id, by) is None:
            raise NoSuchJob(f"there is no job {job_id}")
        return Deed()

    return perform(Act.REVEAL, do, by=by, reason=reason, request_id=request_id, job_id=job_id)


def reveal_in_lists(*, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Keep in the audit that somebody looks at arguments of jobs in lists, and searches in them."""
    asked = {"of": "lists"}
    return perform(Act.REVEAL, Deed, by=by, reason=reason, request_id=request_id, asked=asked)


def arguments(text: str) -> str:
    """Arguments that somebody has typed, as a JSON text that the record can hold. Raises InvalidJob."""
    if len(text.encode(errors="replace")) > (limit := conf.get().max_args_bytes):
        raise InvalidJob(f"the arguments are more than {limit:,} bytes of JSON")
    try:
        typed = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidJob("the arguments are nested too deeply for JSON") from None
    except ValueError as problem:
        raise InvalidJob(f"the arguments are no JSON: {problem}") from None
    if not (
        isinstance(typed, dict)
        and typed.keys() == {"args", "kwargs"}
        and isinstance(typed["args"], list)
        and isinstance(typed["kwargs"], dict)
    ):
        raise InvalidJob('the arguments are {"args": […], "kwargs": {…}}: a list and an object')
    if "\\u0000" in text or any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in text):
        raise InvalidJob("the arguments hold a NUL or a lone surrogate: PostgreSQL cannot keep them")
    return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON's")


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
        run(operate.hold([job_id], authority=by.authority))
        # What is held cannot change between this look and the verb.
        job = run(read.job(authority=by.authority, job_id=job_id)) if present else None
        answer = run(verb([job_id]))
        if answer.unchanged:
            _refuse(act, answer.unchanged[0], by)
        [changed] = answer.changed
        was = {name: present(job) for name in asked} if present and job else {}
        return Deed(
            before={"state": str(changed.before), **was},
            after={"state": str(changed.after), **asked},
            jobs=1,
        )

    return perform(act, do, by=by, reason=reason, request_id=request_id, job_id=job_id, asked=asked)


def _refuse(act: Act, unchanged: Unchanged, by: Person) -> NoReturn:
    job_id, state = unchanged.id, unchanged.state
    match unchanged.why:
        case Why.MISSING:
            raise NoSuchJob(f"there is no job {job_id}")
        case Why.STATE:
            raise MovedOn(job_id, act, str(state))
        case Why.KEY_HELD:
            assert unchanged.holder is not None
            raise KeyHeld(_key_of(job_id, by), unchanged.holder, "wait for its end, or cancel it first")
        case Why.BUSY:
            raise Busy(f"job {job_id} is being changed by somebody else just now; try again")


def _key_of(job_id: int, by: Person) -> str:
    """The key as its enqueuer wrote it."""
    job = _job(job_id, by)
    text = (job and job.key) or ""
    with suppress(ValueError):
        return read_key(text).key
    return text


def _moment(time: datetime) -> datetime:
    """The same instant in UTC, so that equal wishes are equal. Raises InvalidJob."""
    if time.utcoffset() is None:
        raise InvalidJob("due_at must be an aware datetime: add a time zone")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InvalidJob("due_at must be between the years 1 and 9999, in UTC too") from None


def _job(job_id: int, by: Person) -> JobDetail | None:
    return run(read.job(authority=by.authority, job_id=job_id)) if 0 < job_id <= LARGEST_ID else None


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
