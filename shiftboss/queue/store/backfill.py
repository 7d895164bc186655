"""Backfills: one task over many items, at most so many of its jobs live at once.

An item stands in the record before it has a job, so that a million of them load no queue. Whoever writes items
holds the row of their backfill. Safe in many processes at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from shiftboss.queue.authority import Authority, owner_of, reach_of, require_staff, require_system
from shiftboss.queue.authorizers import require_queue
from shiftboss.queue.errors import InvalidJob, NoSuchBackfill
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.store import operate
from shiftboss.queue.store.enqueue import note_revisions
from shiftboss.queue.store.operate import Limits, Why
from shiftboss.queue.store.statement import Atomic, Statement, Verb

ADD_ITEMS = 5_000
ADD_BYTES = 4_000_000
"""So many items, or so much of their arguments, are written at a time."""

CANCEL_BATCH = 2_000
MAX_CONCURRENCY = 10_000
MAX_NAME_LENGTH = 200
PAGE = 20
"""Backfills on one page of a list: each counts its items."""


class Standing(StrEnum):
    """What a backfill does."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBackfill:
    """A backfill to be. Raises InvalidJob where the record could not hold it."""

    name: str
    task: str
    queue: str
    priority: int
    concurrency: int
    failure_limit: int
    loss_limit: int
    revision: TaskConfig | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= MAX_NAME_LENGTH or not self.name.isprintable():
            raise InvalidJob(f"a backfill's name has 1 to {MAX_NAME_LENGTH} printable characters")
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InvalidJob(
                f"concurrency is a whole number from 1 to {MAX_CONCURRENCY:,}, not {self.concurrency}"
            )


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """A backfill and how far it is; each of its items is counted once.

    `live`: they have a job that waits or runs. `cancelled` and `discarded` ones, and those whose job is
    `quarantined`, are what `retry` runs again.
    """

    id: int
    name: str
    owner: str | None
    task: str
    queue: str
    priority: int
    concurrency: int
    created_at: datetime
    paused_at: datetime | None
    waiting: int
    live: int
    quarantined: int
    completed: int
    cancelled: int
    discarded: int

    @property
    def items(self) -> int:
        """All of them."""
        return self.waiting + self.live + self.failed + self.completed

    @property
    def failed(self) -> int:
        """Those that a retry would run again."""
        return self.quarantined + self.cancelled + self.discarded

    @property
    def state(self) -> Standing:
        """What it does: it is finished where nothing waits and nothing is live, and so it may go on again."""
        if not self.waiting and not self.live:
            return Standing.FINISHED
        return Standing.PAUSED if self.paused_at else Standing.RUNNING


@dataclass(frozen=True, slots=True)
class Retried:
    """What of a backfill is to run again: by new jobs, and by reinstating quarantined ones."""

    anew: int
    reinstated: int


@dataclass(frozen=True, slots=True)
class _Held:
    id: int
    name: str
    failure_limit: int
    loss_limit: int


_BEGIN = Statement("backfill_begin", lambda id, task: (id, task))
_NAMED = Statement("backfill_named", lambda id, task: (id, task))
_ADD = Statement("backfill_add", lambda n: int(n))
_OPEN = Statement("backfill_open", lambda id: int(id))
_HOLD = Statement("backfill_hold", _Held)
_LOCK = Statement("backfill_lock", lambda id: int(id))
_NOTE = Statement("backfill_note", lambda outcome: str(outcome))
_AGAIN = Statement("backfill_again", lambda id: int(id))
_REINSTATED = Statement("backfill_reinstated", lambda *_: None)
_BACKFILL = Statement("backfill", lambda id, _: int(id))
_PAUSE = Statement("backfill_pause", lambda id: int(id))
_RESUME = Statement("backfill_resume", lambda id: int(id))
_CANCEL = Statement("backfill_cancel", lambda one: int(one))
_LIVE = Statement("backfill_live", lambda id: int(id))
_RETRY = Statement("backfill_retry", lambda anew: bool(anew))
_BACKFILLS = Statement("backfills", BackfillRow)


def begin(new: NewBackfill, *, authority: Authority) -> Verb[int]:
    """The id of the backfill of this name of the authority's, which is made where there is none.

    One that is there keeps the options that it has. Raises NotAllowed where the project's authorizer refuses, and
    InvalidJob where it is of another task.
    """
    owner = owner_of(authority)
    require_queue(authority=authority, queue=new.queue, task=new.task)
    if new.revision is not None:
        yield from note_revisions({new.revision})
    rows = yield _BEGIN.call(
        name=new.name,
        owner=owner,
        task=new.task,
        queue=new.queue,
        priority=new.priority,
        concurrency=new.concurrency,
        failure_limit=new.failure_limit,
        loss_limit=new.loss_limit,
        revision_id=None if new.revision is None else new.revision.revision,
    )
    if not rows:
        rows = yield _NAMED.call(name=new.name, owner=owner)
    [(backfill_id, task)] = rows
    if task != new.task:
        raise InvalidJob(
            f"the backfill {new.name!r} is one of the task {task}, not of {new.task}: name it otherwise"
        )
    return int(backfill_id)


def add(backfill_id: int, items: Iterable[tuple[str, str]], *, authority: Authority) -> Verb[int]:
    """Add items, each by its key with the JSON text of a job's arguments; how many were not there yet.

    Written in pieces: outside a transaction each is kept as soon as it is written. Raises NoSuchBackfill.
    """
    owner = owner_of(authority)
    added = 0
    for piece in _pieces(items):
        rows = yield _ADD.call(
            id=backfill_id, owner=owner, items=[item for item, _ in piece], args=[args for _, args in piece]
        )
        if not rows:
            raise NoSuchBackfill(f"there is no backfill {backfill_id}")
        added += rows[0]
    return added


def _pieces(items: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    piece: list[tuple[str, str]] = []
    size = 0
    for item, args in items:
        piece.append((item, args))
        size += len(args)
        if len(piece) >= ADD_ITEMS or size >= ADD_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def feed(*, authority: Authority) -> Verb[int]:
    """Enqueue what backfills have room for, and note what became of their jobs; how many were enqueued.

    A backfill that somebody else has in hand is left to them.
    """
    require_system(authority, "backfill")
    fed = 0
    for backfill_id in (yield _OPEN.call()):
        fed += yield Atomic(_feed(backfill_id, authority))
    return fed


def _feed(backfill_id: int, authority: Authority) -> Verb[int]:
    held = yield _HOLD.call(id=backfill_id)
    if not held:
        return 0
    yield _NOTE.call(id=backfill_id)
    yield from _reinstate(held[0], authority)
    rows = yield _BACKFILL.call(id=backfill_id)
    return len(rows)


def _reinstate(held: _Held, authority: Authority) -> Verb[None]:
    job_ids = yield _AGAIN.call(id=held.id)
    if not job_ids:
        return
    limits = Limits(failures=held.failure_limit, losses=held.loss_limit, by_task={})
    answer = yield from operate.reinstate(
        job_ids, authority=authority, by=f"the backfill {held.name}", limits=limits
    )
    busy = {job.id for job in answer.unchanged if job.why is Why.BUSY}
    yield _REINSTATED.call(id=held.id, ids=[job_id for job_id in job_ids if job_id not in busy])


def pause(backfill_id: int, *, authority: Authority) -> Verb[bool]:
    """Enqueue no more of its items; jobs that it has go on. False where it is paused. Raises NoSuchBackfill."""
    paused: bool = yield Atomic(_pause(backfill_id, authority))
    return paused


def _pause(backfill_id: int, authority: Authority) -> Verb[bool]:
    yield from _lock(backfill_id, authority)
    return bool((yield _PAUSE.call(id=backfill_id)))


def resume(backfill_id: int, *, authority: Authority) -> Verb[bool]:
    """Go on; False where it is not paused. Raises NoSuchBackfill."""
    resumed: bool = yield Atomic(_resume(backfill_id, authority))
    return resumed


def _resume(backfill_id: int, authority: Authority) -> Verb[bool]:
    yield from _lock(backfill_id, authority)
    return bool((yield _RESUME.call(id=backfill_id)))


def cancel(backfill_id: int, *, authority: Authority) -> Verb[int]:
    """Enqueue no more of its items and cancel the jobs that it has; how many items that changes.

    Its running jobs are asked to end. What is cancelled can be run by `retry`. Raises NoSuchBackfill, and Busy
    where somebody has one of the jobs in hand; then nothing was changed.
    """
    changed: int = yield Atomic(_cancel(backfill_id, authority))
    return changed


def _cancel(backfill_id: int, authority: Authority) -> Verb[int]:
    yield from _lock(backfill_id, authority)
    yield _NOTE.call(id=backfill_id)
    changed = len((yield _CANCEL.call(id=backfill_id)))
    live = yield _LIVE.call(id=backfill_id)
    for start in range(0, len(live), CANCEL_BATCH):
        batch = live[start : start + CANCEL_BATCH]
        yield from operate.hold(batch, authority=authority)
        answer = yield from operate.cancel(batch, authority=authority)
        changed += len(answer.changed)
    yield _NOTE.call(id=backfill_id)
    return changed


def retry(backfill_id: int, *, authority: Authority) -> Verb[Retried]:
    """Run again what failed: cancelled and discarded items by new jobs, quarantined jobs by reinstating them.

    Both as there is room, and not while it is paused. Raises NoSuchBackfill.
    """
    retried: Retried = yield Atomic(_retry(backfill_id, authority))
    return retried


def _retry(backfill_id: int, authority: Authority) -> Verb[Retried]:
    yield from _lock(backfill_id, authority)
    yield _NOTE.call(id=backfill_id)
    rows: list[Any] = yield _RETRY.call(id=backfill_id)
    return Retried(anew=sum(rows), reinstated=len(rows) - sum(rows))


def _lock(backfill_id: int, authority: Authority) -> Verb[None]:
    require_staff(authority, "backfill")
    if not (yield _LOCK.call(id=backfill_id, **reach_of(authority))):
        raise NoSuchBackfill(f"there is no backfill {backfill_id}")


def backfills(*, authority: Authority, before_id: int | None = None, limit: int = PAGE) -> Verb[list[BackfillRow]]:
    """Backfills with how far they are, the newest first; `Owner` sees its own, `Scoped` those within it."""
    return (yield from _backfills(authority, None, before_id, limit))


def backfill(backfill_id: int, *, authority: Authority) -> Verb[BackfillRow | None]:
    """One backfill; None where there is none that the authority may see."""
    rows = yield from _backfills(authority, backfill_id, None, 1)
    return rows[0] if rows else None


def _backfills(
    authority: Authority, backfill_id: int | None, before_id: int | None, limit: int
) -> Verb[list[BackfillRow]]:
    rows: list[BackfillRow] = yield _BACKFILLS.call(
        id=backfill_id, before_id=before_id, limit=limit, **reach_of(authority)
    )
    return rows
