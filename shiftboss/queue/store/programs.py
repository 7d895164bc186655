"""How the programs of hosts fared, for those who look at them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.statement import Statement, Verb


@dataclass(frozen=True, slots=True)
class Hour:
    """How often a program ended within one hour counted back from now; `wrong` of them unasked and no success."""

    hours_ago: int
    ends: int
    wrong: int


@dataclass(frozen=True, slots=True)
class History:
    """What became of a program of a host: its last version and last end, and its ends within the last day.

    What nobody knows is None; `hours` has no member for an hour without an end.
    """

    host: str
    program: str
    code_version: str | None
    ended_at: datetime | None
    ending: str | None
    code: int | None
    signal: int | None
    asked: bool | None
    uptime_seconds: float | None
    hours: list[Hour]


def _history(*row: Any) -> History:
    values = list(row)
    values[9] = [Hour(*hour) for hour in json.loads(values[9] or "[]")]
    return History(*values)


_HISTORY = Statement("program_history", _history)


def history(programs: Sequence[tuple[str, str]], *, authority: Authority) -> Verb[list[History]]:
    """How each of these fared: hosts with programs of theirs, a few hundred at most."""
    require_system(authority, "the history of programs")
    rows: list[History] = yield _HISTORY.call(
        hosts=[host for host, _ in programs], programs=[program for _, program in programs]
    )
    return rows
