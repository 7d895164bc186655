"""What the maintainer does, and keepers at a low rate: stage, reap, end what is late.

Safe in many processes at once.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import errors as pg

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.states import State
from shiftboss.queue.store import operate, queues
from shiftboss.queue.store.partitions import with_todays_partitions
from shiftboss.queue.store.statement import Atomic, Statement, Verb

KEY_MILLISECONDS = 200
"""How long a follow-up waits for a transaction that is about to take its key."""


@dataclass(frozen=True, slots=True)
class Reaped:
    """A job taken from an expired lease, with the lease that it had."""

    id: int
    state: State
    fence: int
    worker_id: int


def _first(value: Any, *_: Any) -> Any:
    return value


_STAGE = Statement("stage", _first)
_REAP = Statement("reap", lambda id, state, fence, worker_id, *_: Reaped(id, State(state), fence, worker_id))
_QUARANTINE_UNKNOWN = Statement("quarantine_unknown", _first)
_EXPIRE = Statement("expire", _first)
_FOLLOW_UPS = Statement("follow_ups", _first)
_STAGE_FOLLOW_UP = Statement("stage_follow_up", _first)
_LOCK_TIMEOUT = Statement("lock_timeout", lambda *_: None)
_HELD_TOO_LONG = Statement("held_too_long", _first)


def stage(*, authority: Authority, limit: int = 5000) -> Verb[int]:
    """Make due jobs available, and follow-ups whose key is free; at most `limit`. Answers how many."""
    require_system(authority, "stage")
    rows = yield _STAGE.call(limit=limit)
    return len(rows) + (yield from _stage_follow_ups(limit))


def reap(*, authority: Authority, limit: int = 1000) -> Verb[list[Reaped]]:
    """Take jobs from expired leases, told by id: retryable at once, or quarantined at the loss limit.

    Then the slots of limited queues are settled, so that none stays with a run that is over.
    """
    require_system(authority, "reap")
    reaped: list[Reaped] = yield from with_todays_partitions(lambda: _reap(limit))
    if (yield from queues.settle()):
        yield from queues.adopt()
    return reaped


def _reap(limit: int) -> Verb[list[Reaped]]:
    rows: list[Reaped] = yield _REAP.call(limit=limit)
    return sorted(rows, key=lambda row: row.id)


def quarantine_unknown(*, authority: Authority, seconds: float, limit: int = 1000) -> Verb[int]:
    """Hold back jobs whose task no live worker of their queue has known for `seconds`; answers how many."""
    require_system(authority, "quarantine")
    rows = yield _QUARANTINE_UNKNOWN.call(seconds=seconds, limit=limit)
    return len(rows)


def _stage_follow_ups(limit: int) -> Verb[int]:
    staged = 0
    for job_id in (yield _FOLLOW_UPS.call(limit=limit)):
        try:
            staged += yield Atomic(_stage_follow_up(job_id))
        except (pg.UniqueViolation, pg.LockNotAvailable):
            pass  # somebody has taken, or is about to take, the key: it waits on
    return staged


def _stage_follow_up(job_id: int) -> Verb[int]:
    yield _LOCK_TIMEOUT.call(milliseconds=KEY_MILLISECONDS)
    return len((yield _STAGE_FOLLOW_UP.call(id=job_id)))


def expire(*, authority: Authority, limit: int = 1000) -> Verb[int]:
    """Cancel jobs that still wait after their deadline, at most `limit`; answers how many."""
    require_system(authority, "expire")
    return (yield from with_todays_partitions(lambda: _expire(limit)))


def _expire(limit: int) -> Verb[int]:
    rows = yield _EXPIRE.call(limit=limit)
    return len(rows)


def discard_held_too_long(*, authority: Authority, seconds: float, limit: int = 1000) -> Verb[int]:
    """Discard jobs that have been quarantined for longer than `seconds`; answers how many."""
    require_system(authority, "discard")
    ids = yield _HELD_TOO_LONG.call(seconds=seconds, limit=limit)
    answer = yield from operate.discard(ids, authority=authority, held_seconds=seconds)
    return len(answer.changed)
