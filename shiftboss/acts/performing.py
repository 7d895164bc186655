"""How every act is done: a permission, a reason, an entry of the audit and a verb, in one transaction."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, OperationalError, connections, transaction
from psycopg import errors as pg

from shiftboss import conf
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act, Person, require
from shiftboss.queue.authority import System
from shiftboss.queue.errors import (
    Busy,
    HostSilent,
    InvalidJob,
    KeyHeld,
    MovedOn,
    NoSuchJob,
    OrderRefused,
    ReasonNeeded,
    RequestReused,
    RollRefused,
)
from shiftboss.queue.store import audit
from shiftboss.queue.store.enqueue import check_queue
from shiftboss.queue.store.operate import HOLD_MILLISECONDS
from shiftboss.queue.store.statement import run

SYSTEM = System()
LARGEST_ID = 2**63 - 1
MAX_REASON_LENGTH = 1000
MAX_REQUEST_LENGTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What an act did. `new_job_id`: of a rerun. `repeated`: the same request had done it before; not again now.

    `before` and `after` are states of a job, or "paused" and "running" of a queue or a backfill, or "running",
    "draining" and "stopping" of a worker. `command_id`: of what is asked of a host. `roll_id`: of a rolling
    restart. `items`: how many of a backfill were cancelled, asked to end, or are to run again; how many workers a
    rolling restart is of.
    """

    act: Act
    job_id: int | None = None
    queue: str | None = None
    before: str | None = None
    after: str | None = None
    new_job_id: int | None = None
    backfill_id: int | None = None
    worker_id: int | None = None
    command_id: int | None = None
    roll_id: int | None = None
    items: int | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What was done, in facts for the audit: what they were, and what they are now. `jobs`: how many changed."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 0


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
    reason = permit(act, by, reason)
    if request_id is not None and not (1 <= len(request_id) <= MAX_REQUEST_LENGTH and request_id.isprintable()):
        raise InvalidJob(f"a request id has 1 to {MAX_REQUEST_LENGTH} printable characters")
    if job_id is not None and not 0 < job_id <= LARGEST_ID:
        raise NoSuchJob(f"there is no job {job_id}")
    if queue is not None:
        check_queue(queue)
    wish = _Wish(act=act, job_id=job_id, queue=queue, reason=reason, asked=dict(asked or {}))
    try:
        with at_once():
            deed = do()
            keep(
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
    except (MovedOn, KeyHeld, NoSuchJob, OrderRefused, RollRefused, HostSilent, Busy, IntegrityError):
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
    worker_id, command_id = wish.asked.get("worker_id"), after.get("command_id")
    roll_id = after.get("roll_id", wish.asked.get("roll_id"))
    return Acted(
        act=Act(wish.act),
        job_id=wish.job_id,
        queue=wish.queue,
        before=before.get("state"),
        after=after.get("state"),
        new_job_id=None if new_job_id is None else int(new_job_id),
        backfill_id=None if backfill_id is None else int(backfill_id),
        worker_id=None if worker_id is None else int(worker_id),
        command_id=None if command_id is None else int(command_id),
        roll_id=None if roll_id is None else int(roll_id),
        items=after.get("items"),
        repeated=repeated,
    )


@contextmanager
def at_once() -> Iterator[None]:
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


def permit(act: Act, by: Person, reason: str) -> str:
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


def keep(
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
