"""What people do. Each act is a permission, a reason, an entry of the audit and a verb, in one transaction.

Console, API and command line call only these. Staff act as `System`, after the check; the person is recorded.
"""

import getpass
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction

from shiftboss import conf
from shiftboss.queue import registry
from shiftboss.queue.authority import System
from shiftboss.queue.errors import (
    Busy,
    InvalidJob,
    KeyHeld,
    MovedOn,
    NoSuchJob,
    NotAllowed,
    ReasonNeeded,
    RequestReused,
    UnknownTask,
)
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate, partitions, queues, read
from shiftboss.queue.store.operate import Answer, Limits, Matching, Unchanged, Why
from shiftboss.queue.store.statement import Verb, run

SYSTEM = System()
MAX_REASON_LENGTH = 1000
MAX_REQUEST_LENGTH = 100
BULK_BATCH = 2000
BULK_PASSES = 5
"""How often a bulk act comes back to jobs that somebody else had in hand."""


class Via(StrEnum):
    """Through which door an act came."""

    CONSOLE = "console"
    API = "api"
    CLI = "cli"
    CODE = "code"


class Act(StrEnum):
    """What a person can do; the one name of it in the audit, in addresses and on buttons."""

    CANCEL = "cancel"
    EXPEDITE = "expedite"
    RERUN = "rerun"
    REINSTATE = "reinstate"
    DISCARD = "discard"
    QUARANTINE = "quarantine"
    REPRIORITISE = "reprioritise"
    RESCHEDULE = "reschedule"
    PAUSE = "pause"
    RESUME = "resume"
    PURGE = "purge"


PERMISSIONS: dict[Act, str] = {
    Act.CANCEL: "shiftboss.cancel_job",
    Act.EXPEDITE: "shiftboss.expedite_job",
    Act.RERUN: "shiftboss.rerun_job",
    Act.REINSTATE: "shiftboss.reinstate_job",
    Act.DISCARD: "shiftboss.discard_job",
    Act.QUARANTINE: "shiftboss.quarantine_job",
    Act.REPRIORITISE: "shiftboss.reprioritise_job",
    Act.RESCHEDULE: "shiftboss.reschedule_job",
    Act.PAUSE: "shiftboss.pause_queue",
    Act.RESUME: "shiftboss.resume_queue",
    Act.PURGE: "shiftboss.purge_history",
}
VIEW = "shiftboss.view_job"
VIEW_AUDIT = "shiftboss.view_audit"

NEED_REASON = frozenset({Act.CANCEL, Act.DISCARD, Act.QUARANTINE, Act.PAUSE, Act.PURGE})
"""Acts that stop or destroy something: they are not done without a reason."""

ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset({VIEW}),
    "operator": frozenset({VIEW, VIEW_AUDIT, *PERMISSIONS.values()} - {PERMISSIONS[Act.PURGE]}),
    "admin": frozenset(
        {
            VIEW,
            VIEW_AUDIT,
            *PERMISSIONS.values(),
            "shiftboss.view_token",
            "shiftboss.add_token",
            "shiftboss.change_token",
            "shiftboss.delete_token",
        }
    ),
}
"""Permissions by role; `shiftboss_roles` makes a group of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who acts, through which door, and what is permitted to them. `id` is a text; none for the system."""

    kind: str
    id: str | None
    name: str
    via: Via
    allows: Callable[[str], bool]

    @classmethod
    def of_user(cls, user: Any, *, via: Via, token: str | None = None) -> "Person":
        """A user of Django's; with `token`, the name of the API token by which they act."""
        name = user.get_username() + (f" (token {token})" if token else "")
        kind = "token" if token else "user"
        return cls(kind=kind, id=str(user.pk), name=name, via=via, allows=user.has_perm)

    @classmethod
    def of_shell(cls) -> "Person":
        """Whoever runs this process: they hold the database's password, so everything is permitted to them."""
        try:
            name = getpass.getuser()
        except (KeyError, OSError):  # a uid without a name
            name = str(os.getuid())
        name = f"os:{name}@{socket.gethostname()}"
        return cls(kind="os", id=str(os.getuid()), name=name, via=Via.CLI, allows=lambda _: True)

    def may(self, act: Act) -> bool:
        """Whether this act is permitted to them."""
        return self.allows(PERMISSIONS[act])


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What an act did. `new_job_id`: of a rerun. `repeated`: the same request had done it before; not again now.

    `before` and `after` are states of a job, or "paused" and "running" of a queue.
    """

    act: Act
    job_id: int | None = None
    queue: str | None = None
    before: str | None = None
    after: str | None = None
    new_job_id: int | None = None
    repeated: bool = False


def require(permission: str, *, by: Person) -> None:
    """Refuse who lacks a permission. Raises NotAllowed, which names it."""
    if not by.allows(permission):
        raise NotAllowed(f"{by.name} lacks the permission {permission}")


def cancel(job_id: int, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """End a job: at once where it waits or is held, else its handler is asked to end."""
    return _on_job(Act.CANCEL, job_id, by, reason, request_id, lambda ids: operate.cancel(ids, authority=SYSTEM))


def expedite(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Make a waiting job available before it is due."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.expedite(ids, authority=SYSTEM, by=by.name)

    return _on_job(Act.EXPEDITE, job_id, by, reason, request_id, verb)


def reinstate(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a quarantined job run again, with as many attempts as its task has."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reinstate(ids, authority=SYSTEM, by=by.name, limits=_limits_of(job_id))

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

    return _on_job(Act.REPRIORITISE, job_id, by, reason, request_id, verb, {"priority": priority})


def reschedule(
    job_id: int, *, by: Person, due_at: datetime, reason: str = "", request_id: str | None = None
) -> Acted:
    """Set when a waiting job is due, an aware time."""

    def verb(ids: list[int]) -> Verb[Answer]:
        return operate.reschedule(ids, authority=SYSTEM, by=by.name, due_at=due_at)

    return _on_job(Act.RESCHEDULE, job_id, by, reason, request_id, verb, {"due_at": due_at.isoformat()})


def rerun(job_id: int, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Run a finished job once more, as a new job; `new_job_id` is its id."""

    def do() -> Acted:
        answer = run(operate.rerun(job_id, authority=SYSTEM, limits=_limits_of(job_id)))
        if isinstance(answer, Unchanged):
            _refuse(Act.RERUN, answer)
        return Acted(act=Act.RERUN, job_id=job_id, after=str(answer.state), new_job_id=answer.id)

    return _perform(Act.RERUN, by, reason, request_id, do, job_id=job_id)


def pause(queue: str, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Stop a queue from being claimed. A queue that is paused already stays so, with the first reason."""

    def do() -> Acted:
        new = run(queues.pause(queue, authority=SYSTEM, by=by.name, reason=reason))
        return Acted(act=Act.PAUSE, queue=queue, before="running" if new else "paused", after="paused")

    return _perform(Act.PAUSE, by, reason, request_id, do, queue=queue)


def resume(queue: str, *, by: Person, reason: str = "", request_id: str | None = None) -> Acted:
    """Let a queue be claimed again."""

    def do() -> Acted:
        was_paused = run(queues.resume(queue, authority=SYSTEM))
        return Acted(act=Act.RESUME, queue=queue, before="paused" if was_paused else "running", after="running")

    return _perform(Act.RESUME, by, reason, request_id, do, queue=queue)


def purge(before: date, *, by: Person, reason: str, request_id: str | None = None) -> Acted:
    """Order that the history before a day (UTC) be dropped; the maintainer does it within a minute or two."""

    def do() -> Acted:
        run(partitions.purge(before, authority=SYSTEM))
        return Acted(act=Act.PURGE)

    return _perform(Act.PURGE, by, reason, request_id, do, asked={"before": before.isoformat()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How far a bulk act is: jobs ended, running jobs whose end was asked for, and jobs left as they were."""

    operation: UUID
    ended: int = 0
    requested: int = 0
    left: int = 0


def cancel_matching(which: Matching, *, by: Person, reason: str) -> Iterator[Swept]:
    """Cancel all jobs that match now, in batches, each a transaction with its entry of the audit.

    Yields how far it is after each batch; who stops asking stops the act. From the newest down, away from where
    workers claim; jobs that somebody else has in hand are come back to.
    """
    _permit(Act.CANCEL, by, reason)
    operation = uuid4()
    so_far = Swept(operation=operation)
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
    yield Swept(operation=operation, ended=so_far.ended, requested=so_far.requested, left=so_far.left + len(busy))


def _sweep(ids: list[int], which: Matching, by: Person, reason: str, so_far: Swept) -> tuple[Swept, list[int]]:
    """One batch; how far the act is then, and the jobs to come back to."""
    with transaction.atomic(using=conf.get().database):
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
    asked: dict[str, Any] | None = None,
) -> Acted:
    def do() -> Acted:
        run(operate.hold([job_id], authority=SYSTEM))
        answer = run(verb([job_id]))
        if answer.unchanged:
            _refuse(act, answer.unchanged[0])
        [changed] = answer.changed
        return Acted(act=act, job_id=job_id, before=str(changed.before), after=str(changed.after))

    return _perform(act, by, reason, request_id, do, job_id=job_id, asked=asked)


def _refuse(act: Act, unchanged: Unchanged) -> None:
    job_id, state = unchanged.id, unchanged.state
    match unchanged.why:
        case Why.MISSING:
            raise NoSuchJob(f"there is no job {job_id}")
        case Why.STATE:
            raise MovedOn(job_id, act, str(state))
        case Why.KEY_HELD:
            assert unchanged.holder is not None
            raise KeyHeld(f"of job {job_id}", unchanged.holder, "wait for its end, or cancel it first")
        case Why.BUSY:
            raise Busy(f"job {job_id} is being changed by somebody else just now; try again")


def _perform(
    act: Act,
    by: Person,
    reason: str,
    request_id: str | None,
    do: Callable[[], Acted],
    *,
    job_id: int | None = None,
    queue: str | None = None,
    asked: dict[str, Any] | None = None,
) -> Acted:
    """Check, do and keep in one transaction. A request that was done before answers as it did then."""
    reason = reason.strip()
    _permit(act, by, reason)
    if request_id is not None and not 1 <= len(request_id) <= MAX_REQUEST_LENGTH:
        raise InvalidJob(f"a request id has 1 to {MAX_REQUEST_LENGTH} characters")
    wish = {**(asked or {}), "job_id": job_id, "queue": queue}
    try:
        with transaction.atomic(using=conf.get().database):
            acted = do()
            _write(
                act,
                by,
                reason,
                operation=uuid4(),
                job_id=job_id,
                queue=queue,
                jobs=1 if job_id is not None else 0,
                request_id=request_id,
                asked=wish,
                before={"state": acted.before},
                after={"state": acted.after, "new_job_id": acted.new_job_id},
            )
    except (MovedOn, KeyHeld, NoSuchJob, Busy, IntegrityError):
        # The first of two equal requests has changed what the second one found.
        if request_id is None or (earlier := _earlier(request_id, act, by, wish)) is None:
            raise
        return earlier
    return acted


def _permit(act: Act, by: Person, reason: str) -> None:
    require(PERMISSIONS[act], by=by)
    if act in NEED_REASON and not reason.strip():
        raise ReasonNeeded(f"{act} wants a reason: say in a few words why, for the audit")
    if len(reason) > MAX_REASON_LENGTH or "\x00" in reason:
        raise ReasonNeeded(f"a reason has at most {MAX_REASON_LENGTH} characters and no NUL")


def _earlier(request_id: str, act: Act, by: Person, wish: dict[str, Any]) -> Acted | None:
    row = run(audit.audited(request_id, authority=SYSTEM, actor_kind=by.kind, actor_id=by.id))
    if row is None:
        return None
    if row.act != act or json.loads(row.asked) != wish:
        raise RequestReused(f"the request id {request_id!r} was used before, for another act")
    before, after = json.loads(row.before), json.loads(row.after)
    return Acted(
        act=act,
        job_id=row.job_id,
        queue=row.queue,
        before=before.get("state"),
        after=after.get("state"),
        new_job_id=after.get("new_job_id"),
        repeated=True,
    )


def _write(
    act: Act,
    by: Person,
    reason: str,
    *,
    operation: UUID,
    asked: dict[str, Any],
    before: dict[str, Any],
    after: dict[str, Any],
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
        asked=json.dumps(asked),
        before=json.dumps(before),
        after=json.dumps(after),
    )
    run(audit.write(entry, authority=SYSTEM))


def _limits_of(job_id: int) -> Limits:
    """How often the job's task may fail and be lost, as its code says now; else as the settings say."""
    config = conf.get()
    by_task: dict[str, tuple[int, int]] = {}
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    if job is not None:
        with suppress(UnknownTask):
            own = getattr(registry.resolve(job.task), "max_attempts", None)
            by_task[job.task] = (own or config.max_attempts, config.max_losses)
    return Limits(failures=config.max_attempts, losses=config.max_losses, by_task=by_task)
