"""How many workers of a pool run on a host: as a person said, or as its agent found that the jobs need."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.statement import Statement, Verb

PATIENCE_SECONDS = 600.0
"""For so long after a person has said a count, no agent says another one."""

ITSELF = "autoscaling"
"""In whose name an agent changes a count."""


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """A count that is kept. It holds as long as the settings say `workers`, as they did when it was set."""

    host: str
    pool: str
    count: int
    workers: int
    set_by: str
    set_at: datetime
    automatic: bool
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Pressure:
    """`oldest_seconds`: how long a job waits that one more worker could take; None where none waits.

    `workers`: how many workers of the pool run on each host that lives and has it, and how many could.
    """

    oldest_seconds: float | None
    workers: Mapping[str, tuple[int, int]]


def _first(value: Any) -> Any:
    return value


def _pressure(oldest: float | None, workers: str) -> Pressure:
    return Pressure(oldest, {host: (up, known) for host, (up, known) in json.loads(workers).items()})


_KEEP = Statement("keep_scale", _first)
_BY_ITSELF = Statement("scale_by_itself", _first)
_SCALES = Statement("scales", ScaleRow)
_PRESSURE = Statement("pressure", _pressure)


def keep(command_id: int, *, authority: Authority, fence: int, workers: int) -> Verb[bool]:
    """Keep the count that a command asks for; False where the command is not in hand under this fence.

    `workers`: how many of the pool the settings say.
    """
    require_system(authority, "keep a count of workers")
    rows: list[int] = yield _KEEP.call(command_id=command_id, fence=fence, workers=workers)
    return bool(rows)


def by_itself(
    pool: str,
    *,
    authority: Authority,
    host: str,
    fence: int,
    before: int,
    count: int,
    workers: int,
    why: str,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Verb[int | None]:
    """Set another count as the host's agent: the id of a command that tells of it, in hand already.

    None where the count is not `before` any more, a person has said one lately, or the lease is over.
    """
    require_system(authority, "scale by itself")
    rows: list[int] = yield _BY_ITSELF.call(
        host=host,
        fence=fence,
        pool=pool,
        before=before,
        count=count,
        workers=workers,
        by=ITSELF,
        why=why,
        patience_seconds=patience_seconds,
    )
    return rows[0] if rows else None


def scales(*, authority: Authority, host: str | None = None) -> Verb[list[ScaleRow]]:
    """The counts that are kept, of a host or of all."""
    require_system(authority, "counts of workers")
    rows: list[ScaleRow] = yield _SCALES.call(host=host)
    return rows


def pressure(pool: str, queues: Sequence[str], *, authority: Authority) -> Verb[Pressure]:
    """How much a pool that serves these queues is needed, and how much of it there is."""
    require_system(authority, "pressure")
    rows: list[Pressure] = yield _PRESSURE.call(pool=pool, queues=list(queues))
    return rows[0]
