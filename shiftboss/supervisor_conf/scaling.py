"""How many workers of its pools a host runs: as many as were said last, and by itself as many as the jobs need."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shiftboss.conf import Pool
from shiftboss.queue.store.scales import PATIENCE_SECONDS, Pressure, ScaleRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a pool grows and shrinks by itself. A look is every `look_seconds`.

    It grows by one where jobs waited for too long in `long_looks` looks in a row, `grow_seconds` after the last
    change at the earliest: what was started then takes part by then. It shrinks by one where none waited for even
    half as long in `short_looks` looks in a row, `shrink_seconds` after the last change.
    """

    look_seconds: float = 3.0
    long_looks: int = 2
    short_looks: int = 20
    grow_seconds: float = 15.0
    shrink_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Streak:
    """In how many looks in a row jobs waited for too long, and for short only."""

    long: int = 0
    short: int = 0

    def with_one(self, oldest_seconds: float | None, bound: float) -> "Streak":
        """After one look more."""
        oldest = oldest_seconds or 0.0
        return Streak(
            long=self.long + 1 if oldest > bound else 0,
            short=self.short + 1 if oldest < bound / 2 else 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a pool of a host stands: the count that holds, and since when (None: it is that of the settings)."""

    host: str
    count: int
    changed_seconds: float | None
    pressure: Pressure


def decide(pool: Pool, standing: Standing, streak: Streak, pace: Pace) -> int:
    """The count that is right now: the present one, or one more, or one less.

    Of several hosts that have the pool, the one with the fewest workers grows, and the one with the most shrinks.
    """
    count, least, most = standing.count, pool.least_workers, pool.most_workers
    since = standing.changed_seconds
    if count < least:
        return count + 1
    if count > most:
        return count - 1
    if (
        count < most
        and streak.long >= pace.long_looks
        and (since is None or since >= pace.grow_seconds)
        and _first_to_grow(standing.pressure.workers) == standing.host
    ):
        return count + 1
    if (
        count > least
        and streak.short >= pace.short_looks
        and (since is None or since >= pace.shrink_seconds)
        and _first_to_shrink(standing.pressure.workers, least) == standing.host
    ):
        return count - 1
    return count


def _first_to_grow(workers: Mapping[str, tuple[int, int]]) -> str | None:
    return min(
        (host for host, (up, known) in workers.items() if up < known),
        key=lambda h: (workers[h][0], h),
        default=None,
    )


def _first_to_shrink(workers: Mapping[str, tuple[int, int]], least: int) -> str | None:
    return max(
        (host for host, (up, _) in workers.items() if up > least), key=lambda h: (workers[h][0], h), default=None
    )


def count_of(pool: Pool, row: ScaleRow | None) -> int:
    """How many workers are to run: as was said, unless the settings say another number since."""
    return row.count if holds(pool, row) else pool.workers


def holds(pool: Pool, row: ScaleRow | None) -> bool:
    """Whether what was said of a pool holds still."""
    return row is not None and row.workers == pool.workers


def is_a_persons(row: ScaleRow | None) -> bool:
    """Whether a person has said it, and lately."""
    return row is not None and not row.automatic and row.age_seconds < PATIENCE_SECONDS


def unsettled(
    pool: Pool, count: int, infos: Mapping[str, Mapping[str, Any]], prefix: str = ""
) -> tuple[list[str], list[str]]:
    """What supervisord has to start and to stop because it began anew, by the settings, since the count was said.

    Only what it has never started, and what it has started by itself: what a person has started or stopped stays.
    """
    start, stop = [], []
    for number in range(1, pool.most_workers + 1):
        name = f"{prefix}worker-{pool.name}-{number}"
        info = infos.get(name)
        if info is None:
            continue
        if number <= count and info["statename"] == "STOPPED" and not info["start"]:
            start.append(name)
        elif count < number <= pool.workers and info["pid"] and not info["stop"]:
            stop.append(name)
    return start, stop


@dataclass(slots=True)
class Memory:
    """The streaks of a host's pools. A new agent begins without any."""

    streaks: dict[str, Streak]
    pace: Pace

    def look(self, pool: Pool, standing: Standing) -> int:
        """Take in one look; the count that is right now."""
        bound = pool.scale_wait_seconds or 0.0
        streak = self.streaks.get(pool.name, Streak()).with_one(standing.pressure.oldest_seconds, bound)
        self.streaks[pool.name] = streak
        count = decide(pool, standing, streak, self.pace)
        if count != standing.count:
            self.streaks[pool.name] = replace(streak, long=0, short=0)
        return count
