"""The lives of a program in their order, with the times for which nobody watched. Plain functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shiftboss.queue.store.hosts import HostRow
from shiftboss.queue.store.processes import ProcessRow

JOBS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Gap:
    """A time for which nobody watched the host."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Told:
    """A life, or a gap in its place among them. `jobs`: the first of those in hand at the end; `more`: others."""

    life: ProcessRow | None = None
    gap: Gap | None = None

    @property
    def jobs(self) -> list[dict[str, str]]:
        """What its worker had in hand at its end."""
        return ((self.life.jobs if self.life else None) or [])[:JOBS_SHOWN]

    @property
    def more(self) -> int:
        """How many more there were."""
        return max(0, len((self.life.jobs if self.life else None) or []) - JOBS_SHOWN)


def told(lives: Sequence[ProcessRow], host: HostRow) -> list[Told]:
    """The lives, the newest first, and between them the last time for which nobody watched."""
    found = [Told(life=life) for life in lives]
    if host.gap_from is None or host.gap_until is None:
        return found
    later = sum(life.started_at >= host.gap_until for life in lives)
    if later == len(lives) and lives:
        return found  # it lies before all of these
    return [*found[:later], Told(gap=Gap(host.gap_from, host.gap_until)), *found[later:]]
