"""What people ask of the programs of a host. The host's agent does it, once, and says what became of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.statement import Statement, Verb

EXPIRE_SECONDS = 30.0
"""What no agent has taken by then is not done any more."""

FOLLOW_SECONDS = 600.0
"""Whoever has asked for a log may look at it again for so long; the audit has that once."""

REACH = 2000
"""Of all commands so many of the newest are looked through for those of one program."""

MOST_AT_ONCE = 10
MAX_PROGRESS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is asked: `start`, `drain`, `stop`, `kill`, `restart`, `tail` of a program, or `scale` of a pool."""

    host: str
    verb: str
    program: str | None = None
    pool: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking. `id` is None where nothing was asked, and the rest says why."""

    id: int | None
    is_known: bool
    is_alive: bool
    knows: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A command that the agent has taken."""

    id: int
    verb: str
    program: str | None
    pool: str | None
    count: int | None


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command and what became of it. `state`: waiting, claimed, done, failed, expired or lost."""

    id: int
    host: str
    verb: str
    program: str | None
    pool: str | None
    count: int | None
    asked_by: str
    asked_at: datetime
    state: str
    progress: str | None
    result: dict[str, Any] | None
    claimed_at: datetime | None
    ended_at: datetime | None


def _command(*row: Any) -> CommandRow:
    values = list(row)
    values[10] = None if values[10] is None else json.loads(values[10])
    return CommandRow(*values)


def _first(value: Any) -> Any:
    return value


_ASK = Statement("ask_host", Asked)
_CLAIM = Statement("claim_commands", Claim)
_TAIL_AGAIN = Statement("tail_again", _first)
_SAY = Statement("say_command", _first)
_END = Statement("end_command", _first)
_COMMANDS = Statement("commands", _command)
_OF_PROGRAM = Statement("program_commands", _command)
_FORGET = Statement("forget_commands", _first)


def ask(order: Order, *, authority: Authority, by: str, seconds: float = EXPIRE_SECONDS) -> Verb[Asked]:
    """Ask something of a host, for so many seconds."""
    require_system(authority, "ask a host")
    rows: list[Asked] = yield _ASK.call(
        host=order.host,
        verb=order.verb,
        program=order.program,
        pool=order.pool,
        count=order.count,
        by=by,
        seconds=seconds,
    )
    return rows[0]


def tail_again(command_id: int, *, authority: Authority, by: str) -> Verb[bool]:
    """Have a log read again by the command that asked for it; False for one too old, another's, or under way."""
    require_system(authority, "ask a host")
    rows: list[int] = yield _TAIL_AGAIN.call(
        command_id=command_id, by=by, within_seconds=FOLLOW_SECONDS, expire_seconds=EXPIRE_SECONDS
    )
    return bool(rows)


def claim(*, authority: Authority, host: str, fence: int, limit: int = MOST_AT_ONCE) -> Verb[list[Claim]]:
    """Take what is asked of a host, the oldest first; nothing for who is not its agent."""
    require_system(authority, "claim commands")
    rows: list[Claim] = yield _CLAIM.call(host=host, fence=fence, limit=limit)
    return sorted(rows, key=lambda claim: claim.id)


def say(command_id: int, *, authority: Authority, fence: int, progress: str) -> Verb[bool]:
    """Say how far a command has come; False where it is not ours, or has ended."""
    require_system(authority, "say of a command")
    rows: list[int] = yield _SAY.call(command_id=command_id, fence=fence, progress=progress[:MAX_PROGRESS])
    return bool(rows)


def end(
    command_id: int, *, authority: Authority, fence: int, failed: bool, result: Mapping[str, Any]
) -> Verb[bool]:
    """Say what became of a command; False where it is not ours, or has ended."""
    require_system(authority, "end a command")
    rows: list[int] = yield _END.call(
        command_id=command_id, fence=fence, failed=failed, result=json.dumps(dict(result))
    )
    return bool(rows)


def command(command_id: int, *, authority: Authority) -> Verb[CommandRow | None]:
    """One command; None where it was never asked or is forgotten."""
    require_system(authority, "a command")
    rows: list[CommandRow] = yield _COMMANDS.call(command_id=command_id, host=None, limit=1)
    return rows[0] if rows else None


def commands(*, authority: Authority, host: str | None = None, limit: int = 50) -> Verb[list[CommandRow]]:
    """Commands of a host, or of all, the newest first."""
    require_system(authority, "commands")
    rows: list[CommandRow] = yield _COMMANDS.call(command_id=None, host=host, limit=limit)
    return rows


def asked_of(
    program: str, *, authority: Authority, host: str, pool: str | None, limit: int = 20
) -> Verb[list[CommandRow]]:
    """What was asked of a program of a host or of its pool, but for its log, the newest first."""
    require_system(authority, "commands")
    rows: list[CommandRow] = yield _OF_PROGRAM.call(
        host=host, program=program, pool=pool, reach=REACH, limit=limit
    )
    return rows


def forget_commands(*, authority: Authority, host: str, fence: int) -> Verb[int]:
    """Drop commands of a host that are older than a week; answers how many."""
    require_system(authority, "forget commands")
    rows: list[int] = yield _FORGET.call(host=host, fence=fence)
    return len(rows)
