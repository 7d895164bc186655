"""Programs that crash in a loop, and are held back: a row with an end, which the host's next agent takes up too.

An agent owes the program of an open hold something: its stop while the hold is in force, its start once that is
over. So a program is not left down because an agent has died.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.partitions import with_todays_partitions
from shiftboss.queue.store.statement import Atomic, Statement, Verb

MOST_HOLDS = 50
"""So many of each program of a host are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looping:
    """A program that crashes in a loop, as its agent judges it.

    `step`: how often it was held back in a row, with this time. `evidence`: why, in JSON's types. `after`: the id
    of the last hold of it that was known to the judge, 0 where none was.
    """

    host: str
    program: str
    pool: str | None
    step: int
    seconds: float
    evidence: Mapping[str, Any]
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """The one job that a program had in hand at each of its deaths; `fence` and `worker_id` are of the last."""

    job_id: int
    fence: int
    worker_id: int
    message: str


@dataclass(frozen=True, slots=True)
class OpenHold:
    """What is owed to a program: to be down while the hold `is_in_force`, and then its start."""

    id: int
    program: str
    is_in_force: bool
    was_stopped: bool
    seconds_left: float


@dataclass(frozen=True, slots=True)
class HoldRow:
    """A hold, and why; `released_as` is `time`, `release`, `start`, `stop`, `others` or `poison`."""

    id: int
    host: str
    program: str
    pool: str | None
    step: int
    held_at: datetime
    until: datetime
    evidence: dict[str, Any]
    poison_job: int | None
    stopped_at: datetime | None
    released_at: datetime | None
    released_as: str | None
    released_by: str | None
    taken_up_at: datetime | None
    is_in_force: bool


@dataclass(frozen=True, slots=True)
class Released:
    """A hold that a person has ended."""

    id: int
    step: int
    until: datetime


def _hold(*row: Any) -> HoldRow:
    values = list(row)
    values[7] = json.loads(values[7])
    return HoldRow(*values)


def _first(value: Any, *_: Any) -> Any:
    return value


_HOLD = Statement("hold_program", _first)
_QUARANTINE = Statement("quarantine_poison", _first)
_TAKE_BACK = Statement("take_back", _first)
_NUMBER_EVENTS = Statement("number_events", lambda *_: None)
_OPEN = Statement("open_holds", OpenHold)
_STOPPED = Statement("stopped_hold", _first)
_TAKE_UP = Statement("take_up_hold", _first)
_RELEASE = Statement("release_hold", Released)
_HOLDS = Statement("holds", _hold)
_FORGET = Statement("forget_holds", _first)


def hold(looping: Looping, *, authority: Authority, fence: int) -> Verb[int | None]:
    """Hold a program back; None where whoever asks is not the host's agent, or has judged by an old picture."""
    require_system(authority, "hold a program")
    rows: list[int] = yield _HOLD.call(
        **_facts(looping), step=looping.step, seconds=looping.seconds, after=looping.after, fence=fence
    )
    return rows[0] if rows else None


def poison(looping: Looping, poison: Poison, *, authority: Authority, fence: int) -> Verb[bool]:
    """Quarantine a job in the place of holding the program back, and keep why.

    False, and nothing is changed, where somebody has claimed the job since or it has ended, where its row is
    locked, and where `hold` would answer None.
    """
    require_system(authority, "quarantine")
    held: bool = yield from with_todays_partitions(lambda: _poison(looping, poison, fence))
    return held


def _poison(looping: Looping, poison: Poison, fence: int) -> Verb[bool]:
    held: bool = yield Atomic(_numbered(looping, poison, fence))
    return held


def _numbered(looping: Looping, poison: Poison, fence: int) -> Verb[bool]:
    yield _NUMBER_EVENTS.call(ids=[poison.job_id])
    rows: list[int] = yield _QUARANTINE.call(
        **_facts(looping),
        after=looping.after,
        fence=fence,
        job_id=poison.job_id,
        of=poison.fence,
        worker_id=poison.worker_id,
        message=poison.message,
        kind="quarantine",
        by=f"the agent of {looping.host}",
    )
    return bool(rows)


def take_back(
    process_id: int,
    returning_in: Mapping[int, float],
    *,
    authority: Authority,
    host: str,
    fence: int,
    worker_id: int,
    message: str,
) -> Verb[list[int]]:
    """Take jobs back from a worker of which this process has ended; each is due again in so many seconds.

    It counts against none. Answers which: not those that somebody else has by now, or whose rows are locked.
    """
    require_system(authority, "reap")
    params = {
        "process_id": process_id,
        "ids": list(returning_in),
        "seconds": list(returning_in.values()),
        "host": host,
        "fence": fence,
        "worker_id": worker_id,
        "message": message,
    }
    taken: list[int] = yield from with_todays_partitions(lambda: _take_back(params))
    return taken


def _take_back(params: dict[str, Any]) -> Verb[list[int]]:
    rows: list[int] = yield _TAKE_BACK.call(**params)
    return sorted(rows)


def _facts(looping: Looping) -> dict[str, Any]:
    return {
        "host": looping.host,
        "program": looping.program,
        "pool": looping.pool,
        "evidence": json.dumps({"program": looping.program, **looping.evidence}),
    }


def open_holds(*, authority: Authority, host: str) -> Verb[list[OpenHold]]:
    """What is owed to programs of a host, by program."""
    require_system(authority, "holds")
    rows: list[OpenHold] = yield _OPEN.call(host=host)
    return rows


def stopped(hold_id: int, *, authority: Authority, fence: int) -> Verb[bool]:
    """Say that a program is down; False where one is not its host's agent any more, or it was said."""
    require_system(authority, "stop a program that is held")
    rows: list[int] = yield _STOPPED.call(id=hold_id, fence=fence)
    return bool(rows)


def take_up(hold_id: int, *, authority: Authority, fence: int, by_others: bool = False) -> Verb[bool]:
    """Say that nothing is owed to a program any more; `by_others`: somebody has started it before its time.

    False where one is not its host's agent any more, where it was said, and where the hold is still in force.
    """
    require_system(authority, "take up a hold")
    rows: list[int] = yield _TAKE_UP.call(id=hold_id, fence=fence, by_others=by_others)
    return bool(rows)


def release(host: str, program: str, *, authority: Authority, how: str, by: str) -> Verb[Released | None]:
    """End the hold of a program by a person: `release` and `start` want it started, `stop` does not.

    None where it is not held back, or somebody has ended that already.
    """
    require_system(authority, "release a program")
    rows: list[Released] = yield _RELEASE.call(host=host, program=program, how=how, by=by)
    return rows[0] if rows else None


def holds(
    *,
    authority: Authority,
    host: str | None = None,
    program: str | None = None,
    only_open: bool = False,
    limit: int = 100,
) -> Verb[list[HoldRow]]:
    """Holds, the newest first; of all, of a host, of a program; all of them, or the open ones."""
    require_system(authority, "holds")
    rows: list[HoldRow] = yield _HOLDS.call(host=host, program=program, only_open=only_open, limit=limit)
    return rows


def forget_holds(*, authority: Authority, host: str, fence: int, keep: int = MOST_HOLDS) -> Verb[int]:
    """Drop all but the newest holds of each program of a host; answers how many."""
    require_system(authority, "forget holds")
    rows: list[int] = yield _FORGET.call(host=host, fence=fence, keep=keep)
    return len(rows)
