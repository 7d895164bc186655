"""The lives of programs that supervisors run, as the hosts' agents note them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.statement import Statement, Verb

MOST_LIVES = 500
"""So many of each program of a host are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One life of a program, to be noted as it begins and again as it has ended. Times are seconds since 1970.

    `ending` is `code`, `signal` or `unknown`, and None while it lives. `is_fresh`: it ended so shortly ago that
    the leases of its worker still tell what it had in hand.
    """

    program: str
    launcher: int
    started: float
    pool: str | None = None
    pid: int | None = None
    ended: float | None = None
    ending: str | None = None
    code: int | None = None
    signal: int | None = None
    asked: bool = False
    uptime_seconds: float | None = None
    peak_memory_kb: int | None = None
    cpu_seconds: float | None = None
    log: str | None = None
    is_fresh: bool = False


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One life as it is noted. `jobs` is what its worker had in hand at the end; None where nobody knows."""

    id: int
    host: str
    program: str
    pool: str | None
    launcher: int
    pid: int | None
    started_at: datetime
    ended_at: datetime | None
    ending: str | None
    code: int | None
    signal: int | None
    asked: bool
    uptime_seconds: float | None
    peak_memory_kb: int | None
    cpu_seconds: float | None
    worker_id: int | None
    code_version: str | None
    log: str | None
    jobs: list[dict[str, Any]] | None
    noted_at: datetime


def _process(*row: Any) -> ProcessRow:
    values = list(row)
    values[18] = None if values[18] is None else json.loads(values[18])
    return ProcessRow(*values)


_NOTE = Statement("note_lives", lambda held, noted: (bool(held), noted))
_LIVES = Statement("lives", _process)
_FORGET = Statement("forget_lives", lambda of: of)


def note(lives: Sequence[Life], *, authority: Authority, host: str, fence: int) -> Verb[bool]:
    """Note lives, each program's in their order; False where the one who notes is not the host's agent any more.

    A life may be noted as often as one likes: what is noted of its end stays. Of several words on one life the
    last is taken.
    """
    require_system(authority, "note lives")
    last = {(life.program, life.launcher, life.started): asdict(life) for life in lives}
    [(held, _)] = yield _NOTE.call(host=host, fence=fence, lives=json.dumps(list(last.values())))
    return bool(held)


def lives(
    *,
    authority: Authority,
    host: str | None = None,
    program: str | None = None,
    pool: str | None = None,
    ended: bool | None = None,
    logs: bool = True,
    log_of: int | None = None,
    limit: int = 100,
) -> Verb[list[ProcessRow]]:
    """Lives, the newest first; of all, of a host, a program, a pool; those that have ended, or have not.

    Without `logs` their `log` is None, whatever is kept of it: each may be long. `log_of` is the id of the one
    whose log is told all the same; 0: of the last one of this program that nobody had asked to end.
    """
    require_system(authority, "lives")
    rows: list[ProcessRow] = yield _LIVES.call(
        host=host, program=program, pool=pool, ended=ended, logs=logs, log_of=log_of, limit=limit
    )
    return rows


def forget(*, authority: Authority, host: str, fence: int, keep: int = MOST_LIVES) -> Verb[int]:
    """Drop all but the newest lives of each program of a host; answers how many."""
    require_system(authority, "forget lives")
    rows: list[int] = yield _FORGET.call(host=host, fence=fence, keep=keep)
    return len(rows)
