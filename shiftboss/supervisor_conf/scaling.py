"""How many workers of its pools a host runs: as many as were said last, and by itself as many as the jobs need."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from shiftboss.conf import Pool
from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection
from shiftboss.queue.store import scales
from shiftboss.queue.store.commands import Claim
from shiftboss.queue.store.scales import PATIENCE_SECONDS, Pressure, ScaleRow
from shiftboss.supervisor_conf import control
from shiftboss.supervisor_conf.orders import OrderFailed, Orders

log = logging.getLogger("shiftboss.listener")

SYSTEM = System()


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


PACE = Pace()


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
    turns = sorted((up, host) for host, (up, known) in workers.items() if up < known)
    return turns[0][1] if turns else None


def _first_to_shrink(workers: Mapping[str, tuple[int, int]], least: int) -> str | None:
    turns = sorted((up, host) for host, (up, _) in workers.items() if up > least)
    return turns[-1][1] if turns else None


def count_of(pool: Pool, row: ScaleRow | None) -> int:
    """How many workers are to run: as was said, unless the settings say another number since."""
    return row.count if row is not None and holds(pool, row) else pool.workers


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


class Scaling:
    """Keeps a host's pools at the counts that were said, and says other ones where the settings let it."""

    def __init__(
        self, connection: Connection, *, host: str, orders: Orders, pools: Mapping[str, Pool], pace: Pace = PACE
    ) -> None:
        self._connection = connection
        self._host = host
        self._orders = orders
        self._pools = pools
        self._pace = pace
        self._streaks: dict[str, Streak] = {}

    async def run_once(self, fence: int | None, *, held: Collection[str], scaled: Collection[str]) -> list[Claim]:
        """One look at each pool under the lease of the host's agent; what is to be carried out, and is in hand.

        Programs that are `held` back are not started, and pools that are being `scaled` left alone until that is
        done: a worker that drains cannot be started.
        """
        if fence is None:
            self._streaks.clear()
            return []
        rows = await self._connection.run(scales.scales(authority=SYSTEM, host=self._host))
        said = {row.pool: row for row in rows}
        idle = {name: pool for name, pool in self._pools.items() if name not in scaled}
        kept = {name: pool for name, pool in idle.items() if holds(pool, said.get(name))}
        if kept:
            wanted = [(pool, said[name].count) for name, pool in kept.items()]
            await asyncio.to_thread(self._settle, wanted, held)
        claims = []
        for name, pool in idle.items():
            if pool.scale_wait_seconds is not None:
                claims += await self._look(pool, said.get(name), fence)
        return claims

    async def keep(self, claim: Claim, fence: int) -> bool:
        """Keep the count that a person asks for; False where the command is not ours any more."""
        pool = self._pools[claim.pool or ""]
        keeping = scales.keep(claim.id, authority=SYSTEM, fence=fence, workers=pool.workers)
        return await self._connection.run(keeping)

    async def _look(self, pool: Pool, row: ScaleRow | None, fence: int) -> list[Claim]:
        pressure = await self._connection.run(scales.pressure(pool.name, pool.queues, authority=SYSTEM))
        bound = pool.scale_wait_seconds or 0.0
        streak = self._streaks.get(pool.name, Streak()).with_one(pressure.oldest_seconds, bound)
        self._streaks[pool.name] = streak
        since = row.age_seconds if row and holds(pool, row) else None
        standing = Standing(host=self._host, count=count_of(pool, row), changed_seconds=since, pressure=pressure)
        count = decide(pool, standing, streak, self._pace)
        if count == standing.count or is_a_persons(row):
            return []
        self._streaks[pool.name] = Streak()
        why = _why(pressure.oldest_seconds, bound)
        number = await self._connection.run(
            scales.by_itself(
                pool.name,
                authority=SYSTEM,
                host=self._host,
                fence=fence,
                before=standing.count,
                count=count,
                workers=pool.workers,
                why=why,
            )
        )
        if number is None:
            return []
        fields = {"pool": pool.name, "before": standing.count, "count": count, "why": why}
        log.info("pool.scaled", extra=fields)
        return [Claim(number, "scale", None, pool.name, count)]

    def _settle(self, wanted: Sequence[tuple[Pool, int]], held: Collection[str]) -> None:
        with suppress(control.SupervisorUnreachable, control.SupervisorRefused, OrderFailed):
            infos = control.programs(self._orders.socket, self._orders.prefix)
            for pool, count in wanted:
                start, stop = unsettled(pool, count, infos, self._orders.prefix)
                start = [name for name in start if name not in held]
                for name in start:
                    self._orders.begin_start(name)
                for name in stop:
                    self._orders.begin_stop(name)
                if start or stop:
                    fields = {"pool": pool.name, "count": count, "started": start, "stopped": stop}
                    log.info("pool.settled", extra=fields)


def _why(oldest_seconds: float | None, bound: float) -> str:
    if oldest_seconds is None:
        return "no job waits"
    return f"the oldest job waits for {oldest_seconds:.0f} s; {bound:g} s are to be borne"
