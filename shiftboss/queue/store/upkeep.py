"""What the maintainer does, and keepers at a low rate: stage, reap, partitions. Safe in many processes at once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeVar

from psycopg import errors as pg

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.states import State
from shiftboss.queue.store.statement import Statement, Verb

R = TypeVar("R")
PARTITIONED = ("shiftboss_finished", "shiftboss_attempt", "shiftboss_event")


@dataclass(frozen=True, slots=True)
class Reaped:
    """A job taken from an expired lease, with the lease that it had."""

    id: int
    state: State
    fence: int
    worker_id: int


@dataclass(frozen=True, slots=True)
class Partitions:
    """Day partitions made now, and those that a lock kept from being made: to be tried again soon."""

    made: tuple[tuple[str, date], ...]
    pending: tuple[tuple[str, date], ...]


def _first(value: Any, *_: Any) -> Any:
    return value


_STAGE = Statement("stage", _first)
_REAP = Statement("reap", lambda id, state, fence, worker_id: Reaped(id, State(state), fence, worker_id))
_QUARANTINE_UNKNOWN = Statement("quarantine_unknown", _first)
_TODAY = Statement("today", _first)
_PARTITIONS = Statement("partitions", lambda parent, day: (parent, day))
_MAKE_PARTITION = Statement("make_partition", _first)


def stage(*, authority: Authority, limit: int = 5000) -> Verb[int]:
    """Make due jobs available, at most `limit`; answers how many."""
    require_system(authority, "stage")
    rows = yield _STAGE.call(limit=limit)
    return len(rows)


def reap(*, authority: Authority, limit: int = 1000) -> Verb[list[Reaped]]:
    """Take jobs from expired leases: retryable at once, or quarantined at the loss limit."""
    require_system(authority, "reap")
    return (yield from with_todays_partitions(lambda: _reap(limit)))


def _reap(limit: int) -> Verb[list[Reaped]]:
    rows: list[Reaped] = yield _REAP.call(limit=limit)
    return rows


def quarantine_unknown(*, authority: Authority, seconds: float, limit: int = 1000) -> Verb[int]:
    """Hold back jobs whose task no live worker of their queue has known for `seconds`; answers how many."""
    require_system(authority, "quarantine")
    rows = yield _QUARANTINE_UNKNOWN.call(seconds=seconds, limit=limit)
    return len(rows)


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
            [is_new] = yield _MAKE_PARTITION.call(parent=parent, day=day)
        except (pg.LockNotAvailable, pg.DeadlockDetected):
            pending.append((parent, day))
        except (pg.DuplicateTable, pg.DuplicateObject, pg.UniqueViolation, pg.InvalidObjectDefinition):
            pass  # another process was faster
        else:
            if is_new:
                made.append((parent, day))
    return Partitions(made=tuple(made), pending=tuple(pending))
