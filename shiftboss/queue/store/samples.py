"""What the whole looks like, looked at once for everybody: the maintainer looks, pages read what it saw.

Each part has its own pace: it is looked at again at the earliest after `EVERY_SECONDS`, and not before `REST`
times as long as the last look took. So no part takes more than a small share of the database, however large the
record is and however many maintainers there are; a slow part is an old one, and says how old it is.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.states import State
from shiftboss.queue.store.statement import Statement, Verb

EVERY_SECONDS = 2.0
"""How often a part that takes no time is looked at."""

REST = 50.0
"""For each second that a look took, a part is left alone for so many: a part takes 2 % of a core at most."""

FINISHED_CAP = 100_000
"""Finished jobs looked at for counts: the newest ones. A count that reached it is marked as capped."""

WAITS_CAP = 1000
"""So many available jobs of a queue are counted at each look; of more the full count tells."""

RATES_BUDGET = 10_000
"""So many of the newest jobs of each table are looked at for those that came within the last minute."""

STUCK_SECONDS = 5.0
"""A lease that is over for longer is stuck: reapers come by more often."""

MOST_HOLDS = 20
"""Of so many programs it is told that they are held back."""

MINUTES = 30
"""How far back the throughput is seen minute by minute."""


class Part(StrEnum):
    """A part of the whole, looked at by itself."""

    COUNTS = "counts"
    FINISHED = "finished"
    WAITS = "waits"
    WORKERS = "workers"
    LEASES = "leases"
    QUARANTINE = "quarantine"
    RATES = "rates"
    MINUTES = "minutes"


PAUSES, HOSTS, HOLDS = "pauses", "hosts", "holds"
"""Nobody looks at these for others: they are read with the samples. A host is forgotten after a day of silence."""

LIGHT = (Part.WAITS, Part.WORKERS, Part.LEASES, Part.RATES)
"""Parts that take little time in any record; alarms live on them."""

HEAVY = (Part.MINUTES, Part.COUNTS, Part.QUARANTINE, Part.FINISHED)
"""Parts whose time grows with the record."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many jobs of a queue are in a state, and since when the oldest of them waits to run.

    `oldest_seconds` is the age of the longest-waiting due time among available jobs, of the longest
    running attempt among running ones, None elsewhere. `capped`: there are at least this many. `estimated`: there
    are about this many.
    """

    queue: str
    state: State
    jobs: int
    oldest_seconds: float | None
    capped: bool
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    """Jobs that left a queue within the last minutes, by outcome, for one minute counted back from now."""

    queue: str
    minutes_ago: int
    completed: int
    not_completed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen of a part, when, how long ago that is, and how long the look took."""

    part: str
    at: datetime
    age_seconds: float
    took_ms: int
    seen: Any

    @property
    def pace_seconds(self) -> float:
        """How old it becomes before it is looked at again."""
        return max(EVERY_SECONDS, REST * self.took_ms / 1000)


def _part(part: str) -> str:
    return part


_LOOKS = {
    Part.COUNTS: Statement("sample_counts", _part),
    Part.FINISHED: Statement("sample_finished", _part),
    Part.WAITS: Statement("sample_waits", _part),
    Part.WORKERS: Statement("sample_workers", _part),
    Part.LEASES: Statement("sample_leases", _part),
    Part.QUARANTINE: Statement("sample_quarantine", _part),
    Part.RATES: Statement("sample_rates", _part),
    Part.MINUTES: Statement("sample_minutes", _part),
}
_DUE = Statement("samples_due", Part)
_SAMPLES = Statement("samples", lambda part, at, age, took, seen: Sample(part, at, age, took, json.loads(seen)))


def look(part: Part, *, authority: Authority) -> Verb[bool]:
    """Look at a part and keep what is seen; False where the last look is too fresh, or somebody is at it."""
    require_system(authority, "look")
    asked = {"part": str(part), "every_seconds": EVERY_SECONDS, "rest": REST}
    rows: list[str] = yield _LOOKS[part].call(**asked, **_bounds(part))
    return bool(rows)


def _bounds(part: Part) -> dict[str, float]:
    match part:
        case Part.FINISHED:
            return {"cap": FINISHED_CAP}
        case Part.WAITS:
            return {"cap": WAITS_CAP}
        case Part.LEASES:
            return {"grace_seconds": STUCK_SECONDS}
        case Part.RATES:
            return {"budget": RATES_BUDGET}
        case Part.MINUTES:
            return {"minutes": MINUTES}
    return {}


def due(parts: Sequence[Part], *, authority: Authority) -> Verb[list[Part]]:
    """Those of the parts that are to be looked at now."""
    require_system(authority, "due")
    rows: list[Part] = yield _DUE.call(parts=[str(part) for part in parts], every_seconds=EVERY_SECONDS, rest=REST)
    return rows


def samples(*, authority: Authority) -> Verb[dict[str, Sample]]:
    """What was last seen of each part that was ever looked at; the pauses, hosts and holds of now. System only."""
    require_system(authority, "samples")
    rows: list[Sample] = yield _SAMPLES.call(holds=MOST_HOLDS)
    return {row.part: row for row in rows}
