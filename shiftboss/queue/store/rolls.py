"""Rolling restarts: workers drained, stopped and started one after the other, over all hosts.

The agents of the hosts do it, each the steps of its own host. Whatever an agent needs to go on with a step stands
in the record, so that the next one goes on where this one died.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.statement import Statement, Verb

SILENT_SECONDS = 60.0
"""A roll stops where nobody has heard for so long of the host that is next."""

MOST_STEPS = 1000

IN_HAND = frozenset({"draining", "starting", "proving"})
"""States of a worker whose turn it is."""
MAX_WHY = 1000


@dataclass(frozen=True, slots=True)
class Begun:
    """What came of beginning. `id` is None where nothing was begun: `running` is the roll that runs, if any.

    `silent`: hosts whose workers stay as they are, because no agent answers there.
    """

    id: int | None
    steps: int
    running: int | None
    silent: list[str]


@dataclass(frozen=True, slots=True)
class Step:
    """What an agent has to do next, and what the record knows of it.

    `launcher` is of the life that is to end, `launcher_after` of the one that the agent has started. `life` and
    what follows are of that one, as it is noted: `ending` is None while it lives. The worker is the one that this
    life has registered: it `beats` once it has said so again, and `claims` where it has a job in hand or has found
    none; `waits`: there are jobs in its queues.

    `fallen`: a worker that this roll has restarted before, and that has ended since though nobody asked it to;
    then the life is that one's.
    """

    roll_id: int
    number: int
    program: str
    pool: str
    state: str
    code_wanted: str | None
    seconds: float
    launcher: int | None
    launcher_after: int | None
    life: int | None
    ending: str | None
    code: int | None
    signal: int | None
    log: str | None
    worker_id: int | None
    code_version: str | None
    beats: bool
    claims: bool
    waits: bool
    fallen: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A step's next state, and what is known with it."""

    to: str
    launcher: int | None = None
    launcher_after: int | None = None
    worker_id: int | None = None
    code_version: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class RollRow:
    """A roll. `state`: running, done, stopped (`why` says why) or cancelled. `silent`: hosts that it left out.

    `silent_seconds`: the roll waits for a host whose agent has been silent for so long; None where it does not.
    """

    id: int
    pool: str | None
    reason: str
    asked_by: str
    asked_at: datetime
    code_wanted: str | None
    state: str
    why: str | None
    silent: list[str]
    ended_at: datetime | None
    steps: int
    done: int
    code_before: list[str] | None
    code_after: list[str] | None
    silent_seconds: float | None


@dataclass(frozen=True, slots=True)
class StepRow:
    """One worker of a roll. `state`: waiting, draining, starting, proving, done, or failed (`why` says why)."""

    number: int
    host: str
    program: str
    pool: str
    state: str
    launcher: int | None
    launcher_after: int | None
    worker_after: int | None
    code_before: str | None
    code_after: str | None
    began_at: datetime | None
    moved_at: datetime | None
    why: str | None


def _first(value: Any, *_: Any) -> Any:
    return value


_BEGIN = Statement("begin_roll", Begun)
_STEP = Statement("step", Step)
_MOVE = Statement("move_step", lambda number, ended: (number, ended))
_STOP_SILENT = Statement("stop_silent_roll", _first)
_STOP = Statement("stop_roll", _first)
_CANCEL = Statement("cancel_roll", lambda state, cancelled: (state, cancelled))
_ROLLS = Statement("rolls", RollRow)
_STEPS = Statement("steps", StepRow)
_FORGET = Statement("forget_rolls", _first)


def begin(
    pool: str | None, *, authority: Authority, by: str, reason: str, code_wanted: str | None = None
) -> Verb[Begun]:
    """Begin to restart the workers of a pool that run, or of all pools, one after the other.

    `code_wanted`: the roll stops at a worker that comes up with another code version.
    """
    require_system(authority, "roll")
    rows: list[Begun] = yield _BEGIN.call(pool=pool, by=by, reason=reason, code_wanted=code_wanted)
    return rows[0]


def step(*, authority: Authority, host: str) -> Verb[Step | None]:
    """What is next to be done on a host; None where nothing is, or another host is next."""
    require_system(authority, "a roll's step")
    rows: list[Step] = yield _STEP.call(host=host)
    return rows[0] if rows else None


def move(of: Step, to: Move, *, authority: Authority, host: str, fence: int) -> Verb[bool]:
    """Bring a step into its next state, and with the last one, or one that fails, the roll to its end.

    False where the step is not in the state that `of` tells any more, the roll has ended before it began, or the
    one who moves it is not the host's agent any more.
    """
    require_system(authority, "move a roll's step")
    rows: list[tuple[int, str | None]] = yield _MOVE.call(
        roll_id=of.roll_id,
        number=of.number,
        state=of.state,
        host=host,
        fence=fence,
        to=to.to,
        launcher=to.launcher,
        launcher_after=to.launcher_after,
        worker_after=to.worker_id,
        code_after=to.code_version,
        why=None if to.why is None else to.why[:MAX_WHY],
    )
    return bool(rows)


def stop(of: Step, *, authority: Authority, host: str, fence: int, why: str) -> Verb[bool]:
    """Stop a roll before its next worker; False where it does not run, or the agent is the host's no more."""
    require_system(authority, "stop a roll")
    rows: list[int] = yield _STOP.call(roll_id=of.roll_id, host=host, fence=fence, why=why[:MAX_WHY])
    return bool(rows)


def stop_silent(
    *, authority: Authority, host: str, fence: int, seconds: float = SILENT_SECONDS
) -> Verb[int | None]:
    """Stop the roll that waits for another host of which nobody has heard for so long; its id."""
    require_system(authority, "stop a roll")
    rows: list[int] = yield _STOP_SILENT.call(host=host, fence=fence, seconds=seconds)
    return rows[0] if rows else None


def cancel(roll_id: int, *, authority: Authority) -> Verb[tuple[str, bool] | None]:
    """End a roll before its next worker: the state that it was in, and whether it ended by this.

    None where there is no such roll. The worker that it has in hand comes back.
    """
    require_system(authority, "cancel a roll")
    rows: list[tuple[str, bool]] = yield _CANCEL.call(roll_id=roll_id)
    return rows[0] if rows else None


def roll(roll_id: int, *, authority: Authority) -> Verb[RollRow | None]:
    """One roll; None where there was none, or it is forgotten."""
    require_system(authority, "a roll")
    rows: list[RollRow] = yield _ROLLS.call(roll_id=roll_id, limit=1)
    return rows[0] if rows else None


def rolls(*, authority: Authority, limit: int = 20) -> Verb[list[RollRow]]:
    """Rolls, the newest first."""
    require_system(authority, "rolls")
    rows: list[RollRow] = yield _ROLLS.call(roll_id=None, limit=limit)
    return rows


def steps(roll_id: int, *, authority: Authority) -> Verb[list[StepRow]]:
    """The workers of a roll, in their order."""
    require_system(authority, "a roll's steps")
    rows: list[StepRow] = yield _STEPS.call(roll_id=roll_id, limit=MOST_STEPS)
    return rows


def forget_rolls(*, authority: Authority, host: str, fence: int) -> Verb[int]:
    """Drop rolls that ended more than 30 days ago; answers how many."""
    require_system(authority, "forget rolls")
    rows: list[int] = yield _FORGET.call(host=host, fence=fence)
    return len(rows)
