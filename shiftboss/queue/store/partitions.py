"""The days of the history: partitions made ahead of time, and dropped whole when retention has passed.

Safe in many processes at once, beside inserts and beside readers that hold a snapshot.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg import sql

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.store.statement import Atomic, Statement, Verb

R = TypeVar("R")
PARTITIONED = ("shiftboss_finished", "shiftboss_attempt", "shiftboss_event")
NAMES_A_JOB = ("shiftboss_attempt", "shiftboss_event")
"""Tables whose rows belong to jobs that may still live."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """Day partitions made now, and those that a lock kept from being made: to be tried again soon."""

    made: tuple[tuple[str, date], ...]
    pending: tuple[tuple[str, date], ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Day partitions dropped now, and kept because a live job has a row in them.

    Pending ones wait for a lock or for a reader's snapshot; the next pass goes on with them. Failed ones could not
    be dropped for the reason given: something of somebody else's depends on them.
    """

    dropped: tuple[tuple[str, date], ...]
    kept: tuple[tuple[str, date], ...]
    pending: tuple[tuple[str, date], ...]
    failed: tuple[tuple[str, date, str], ...] = ()


def _first(value: Any, *_: Any) -> Any:
    return value


def _day(digits: str) -> date | None:
    """The day that a partition's name ends in; None where somebody has named a table like one."""
    try:
        return date.fromisoformat(digits)
    except ValueError:
        return None


_TODAY = Statement("today", _first)
_PARTITIONS = Statement("partitions", lambda parent, day: (parent, _day(day)))
_MAKE_PARTITION = Statement("make_partition", _first)
_OLD_PARTITIONS = Statement("old_partitions", lambda parent, day, standing: (parent, _day(day), standing))
_MARK = Statement("mark_partition", lambda *_: None)
_HAS_LIVE = Statement("has_live", _first)
_DETACH = Statement("detach", lambda *_: None)
_FINALIZE = Statement("finalize", lambda *_: None)
_DROP = Statement("drop_partition", lambda *_: None)
_PURGE = Statement("purge", lambda before: before)
_PRUNE_BEFORE = Statement("prune_before", _first)


def make_partitions(*, authority: Authority, days_ahead: int) -> Verb[Partitions]:
    """Make the day partitions from today to `days_ahead` days from now that are missing."""
    require_system(authority, "partitions")
    return (yield from _make_missing(days_ahead))


def with_todays_partitions(write: Callable[[], Verb[R]]) -> Verb[R]:
    """Run a verb; where it meets a day without a partition, make today's and tomorrow's and run it once more."""
    try:
        return (yield from write())
    except pg.CheckViolation as error:
        if not met_missing_day(error):
            raise
    yield from _make_missing(1)
    return (yield from write())


def met_missing_day(error: Exception) -> bool:
    """Whether a write failed because no partition takes its row."""
    # A CHECK has a name, a missing partition has none; the server's words depend on its language.
    return isinstance(error, pg.CheckViolation) and error.diag.constraint_name is None


def _make_missing(days_ahead: int) -> Verb[Partitions]:
    [today] = yield _TODAY.call()
    existing = set((yield _PARTITIONS.call()))
    days = [today + timedelta(days=ahead) for ahead in range(days_ahead + 1)]
    missing = [(parent, day) for day in days for parent in PARTITIONED if (parent, day) not in existing]
    return (yield from _make(missing))


def _make(missing: Iterable[tuple[str, date]]) -> Verb[Partitions]:
    made, pending = [], []
    for parent, day in missing:
        try:
            is_new: bool = yield Atomic(_make_one(parent, day))
        except (pg.LockNotAvailable, pg.DeadlockDetected):
            pending.append((parent, day))
        except (pg.DuplicateTable, pg.DuplicateObject, pg.UniqueViolation, pg.InvalidObjectDefinition):
            pass  # another process was faster
        else:
            if is_new:
                made.append((parent, day))
    return Partitions(made=tuple(made), pending=tuple(pending))


def _make_one(parent: str, day: date) -> Verb[bool]:
    [is_new] = yield _MAKE_PARTITION.call(parent=parent, day=day)
    return bool(is_new)


def purge(before: date, *, authority: Authority) -> Verb[None]:
    """Order that the history before a day (UTC) be dropped; the maintainer does it within a minute.

    Raises InvalidJob for a day that has not begun: its partitions are being written.
    """
    require_system(authority, "purge")
    rows = yield _PURGE.call(before=before)
    if not rows:
        raise InvalidJob(f"only history before today (UTC) can be purged, not before {before}")


def prune(*, authority: Authority, retention_days: float) -> Verb[Pruned]:
    """Drop the day partitions that lie wholly before the retention, or before the latest purge.

    On a connection in autocommit mode only. Nothing waits long: what a lock or an old snapshot holds up is
    pending, and the next pass goes on from there, whatever step this one reached.
    """
    require_system(authority, "prune")
    [before] = yield _PRUNE_BEFORE.call(days=retention_days)
    dropped: list[tuple[str, date]] = []
    kept: list[tuple[str, date]] = []
    pending: list[tuple[str, date]] = []
    failed: list[tuple[str, date, str]] = []
    stuck: set[str] = set()
    for parent, day, standing in (yield _OLD_PARTITIONS.call(before=before)):
        if day is None:
            continue
        if parent in stuck:
            # A table can have one pending detach at a time.
            pending.append((parent, day))
            continue
        try:
            gone = yield from _drop(parent, day, standing)
        except (pg.LockNotAvailable, pg.QueryCanceled, pg.DeadlockDetected, pg.ObjectNotInPrerequisiteState):
            stuck.add(parent)
            pending.append((parent, day))
        except (pg.UndefinedTable, pg.UndefinedObject):
            pass  # another process was faster
        except psycopg.Error as error:
            # Such as a view that reads this day: one that cannot go must not keep the others.
            failed.append((parent, day, str(error).strip().partition("\n")[0]))
        else:
            (dropped if gone else kept).append((parent, day))
    return Pruned(tuple(dropped), tuple(kept), tuple(pending), tuple(failed))


def _drop(parent: str, day: date, standing: str) -> Verb[bool]:
    """Detach, finish a detach that was begun, drop: whichever are left to do. False where a live job has a row."""
    names = {"parent": sql.Identifier(parent), "partition": sql.Identifier(f"{parent}_{day:%Y%m%d}")}
    if standing == "attached":
        if parent in NAMES_A_JOB:
            [live] = yield _HAS_LIVE.call(**names)
            if live:
                return False
        yield _MARK.call(**names)
        yield _DETACH.call(**names)
    elif standing == "pending":
        yield _FINALIZE.call(**names)
    yield _DROP.call(**names)
    return True
