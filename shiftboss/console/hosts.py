"""Hosts and their programs as pages show them: who is heard, what runs, in which version. Plain functions."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from shiftboss.console.figures import Sparkline
from shiftboss.console.filters import BadFilter
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.hosts import HostRow
from shiftboss.queue.store.programs import History
from shiftboss.queue.store.read import RunningRow, WorkerRow
from shiftboss.queue.store.samples import Rate

PAGE = 10
"""Hosts on one page."""

RUNS_SHOWN = 3
"""Of what a program has in hand so much stands on the page of all."""

HOURS = 24
GONE_SECONDS = 86_400.0
"""A host that has been silent for longer is folded away: it may be no more."""

GAP_TOLD_SECONDS = 86_400.0
"""For so long it is said that nobody watched a host for a while."""

LARGEST_PAGE = 9999
OFFERED = 100

STANDINGS = {
    "RUNNING": "running",
    "STARTING": "available",
    "STOPPING": "available",
    "BACKOFF": "lost",
    "FATAL": "lost",
    "UNKNOWN": "lost",
}
"""How a state of supervisord's is drawn; the others stand still."""

DOWN = frozenset({"STOPPED", "EXITED", "FATAL", "UNKNOWN"})
UNTOUCHABLE = frozenset({"listener", "postgres"})
"""Programs that their agent refuses to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFilter:
    """What the page is narrowed to; it lives in the address alone."""

    host: str = ""
    pool: str = ""
    page: int = 1

    @property
    def query(self) -> str:
        """The filter as the query of an address, or nothing."""
        given = {name: value for name, value in (("host", self.host), ("pool", self.pool)) if value}
        if self.page > 1:
            given["page"] = str(self.page)
        return "?" + urlencode(given) if given else ""

    @property
    def narrows(self) -> bool:
        """Whether anything is left out."""
        return bool(self.host or self.pool)

    def on_page(self, page: int) -> "HostFilter":
        """The same on another page."""
        return replace(self, page=page)

    def fits(self, host: HostRow) -> bool:
        """Whether a host is meant."""
        return self.host in ("", host.name) and (
            not self.pool or any(one.get("pool") == self.pool for one in host.programs)
        )


def read(query: Mapping[str, str]) -> HostFilter:
    """The filter that an address asks for. Raises BadFilter."""
    page = query.get("page") or "1"
    if not (page.isascii() and page.isdigit() and 0 < len(page) <= 4 and int(page) >= 1):
        raise BadFilter(f"page must be a number from 1 to {LARGEST_PAGE}")
    return HostFilter(host=query.get("host", ""), pool=query.get("pool", ""), page=int(page))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A program of a host: what supervisord said of it last, the worker that it is, and what that has in hand.

    `since`: from when on it has been in its state, in seconds since 1970; None where nobody knows. `hidden` more
    jobs are in its hand than are in `runs`. `memory_kb` and `cores`, those that it keeps busy now, are what all
    takes that it has started. `held_until`: it crashes in a loop and is held back.
    """

    host: str
    name: str
    state: str
    pid: int | None
    launcher: int | None
    since: float | None
    since_seconds: float | None
    pool: str | None
    memory_kb: int | None
    cores: float | None
    trouble: str | None
    version: str | None
    worker: WorkerRow | None
    runs: list[RunningRow]
    hidden: int
    history: History | None
    is_seen: bool
    is_mixed: bool = False
    held_until: datetime | None = None

    @property
    def standing(self) -> str:
        """How its state is drawn; what nobody sees now is drawn as nothing."""
        return STANDINGS.get(self.state, "stopped") if self.is_seen else "past"

    @property
    def is_up(self) -> bool:
        """Whether a process of it was there."""
        return self.launcher is not None

    @property
    def sparkline(self) -> Sparkline:
        """Its ends by hour; what nobody wanted stands on top."""
        hours = self.history.hours if self.history else []
        counted = [Rate(self.name, hour.hours_ago, hour.ends - hour.wrong, hour.wrong) for hour in hours]
        return Sparkline.of(counted, minutes=HOURS)


@dataclass(frozen=True, slots=True)
class Share:
    """A pool on a host: how many of its workers are up there, of how many that there may be."""

    host: str
    pool: str
    up: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A host with its programs and pools."""

    row: HostRow
    seats: list[Seat]
    shares: list[Share]

    @property
    def silent_seconds(self) -> float | None:
        """For how long nothing was heard of it; None of one that is heard."""
        return None if self.row.alive else self.row.heartbeat_age_seconds

    @property
    def is_old(self) -> bool:
        """Whether what is shown of its programs is how they were, and need not be so any more."""
        return not self.row.alive or self.row.trouble is not None

    @property
    def gap(self) -> tuple[datetime, datetime] | None:
        """The last time for which nobody watched it, where that is not long ago."""
        row = self.row
        if row.gap_from is None or row.gap_until is None:
            return None
        recent = datetime.now(UTC) - row.gap_until < timedelta(seconds=GAP_TOLD_SECONDS)
        return (row.gap_from, row.gap_until) if recent else None


@dataclass(frozen=True, slots=True)
class Mixture:
    """A pool whose live workers run more than one version, with how many run each."""

    pool: str
    versions: list[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A page of the hosts that fit, those in trouble first; `gone`: those that have been silent for long.

    `matching`: how many fit, on all pages. `names` and `pools` are there to choose from.
    """

    wanted: HostFilter
    page: list[HostRow]
    matching: int
    gone: list[HostRow]
    names: list[str]
    pools: list[str]

    @property
    def pages(self) -> int:
        """How many pages there are, at least one."""
        return max(1, -(-self.matching // PAGE))


def arrange(hosts: Sequence[HostRow], wanted: HostFilter) -> Fleet:
    """The page that is asked for; where it lies beyond the last one, that one."""
    fitting = [host for host in hosts if wanted.fits(host)]
    there = [host for host in arranged(fitting) if not _is_gone(host)]
    wanted = wanted.on_page(min(wanted.page, max(1, -(-len(there) // PAGE))))
    start = (wanted.page - 1) * PAGE
    pools = {str(one["pool"]) for host in hosts for one in host.programs if one.get("pool")}
    return Fleet(
        wanted=wanted,
        page=there[start : start + PAGE],
        matching=len(there),
        gone=[host for host in fitting if _is_gone(host)][:OFFERED],
        names=[host.name for host in hosts][:OFFERED],
        pools=sorted(pools)[:OFFERED],
    )


def arranged(hosts: Iterable[HostRow]) -> list[HostRow]:
    """Those in trouble first, then those that are fine, then those that are silent for long; each by name."""
    return sorted(hosts, key=_place)


def _is_gone(host: HostRow) -> bool:
    return not host.alive and host.heartbeat_age_seconds > GONE_SECONDS


def _place(host: HostRow) -> tuple[int, list[tuple[str, int]]]:
    place = 2 if _is_gone(host) else 1 if host.alive and not host.trouble else 0
    return place, in_order(host.name)


def in_order(name: str) -> list[tuple[str, int]]:
    """By this a tenth program comes after a second one."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,9})", name)]


def workers_of(hosts: Iterable[HostRow], workers: Iterable[WorkerRow]) -> dict[tuple[str, str], WorkerRow]:
    """Which worker of the record a program of a host is, by host and program: the one of the same machine and pid.

    A pid is given again: the newest of those that live is meant.
    """
    living = sorted((one for one in workers if one.alive), key=lambda one: one.id)
    by_process = {(one.host, one.pid): one for one in living}
    return {
        (host.name, str(program["name"])): by_process[host.hostname, program["pid"]]
        for host in hosts
        for program in host.programs
        if program.get("pool") and (host.hostname, program.get("pid")) in by_process
    }


def mixtures(workers: Iterable[WorkerRow]) -> list[Mixture]:
    """The pools in which workers of several versions live side by side, the version of most workers first."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for worker in workers:
        if worker.alive:
            found[worker.pool][worker.code_version or ""] += 1
    return [Mixture(pool, counted.most_common()) for pool, counted in sorted(found.items()) if len(counted) > 1]


def standings(
    hosts: Sequence[HostRow],
    *,
    workers: Mapping[tuple[str, str], WorkerRow],
    runs: Iterable[RunningRow],
    histories: Iterable[History],
    mixed: Iterable[Mixture],
    holds: Iterable[HoldRow] = (),
) -> list[Standing]:
    """The hosts with all that is known of their programs; `holds`: those that are open."""
    by_worker: dict[int, list[RunningRow]] = defaultdict(list)
    for one in runs:
        by_worker[one.worker_id].append(one)
    fared = {(one.host, one.program): one for one in histories}
    several, now = {one.pool for one in mixed}, time.time()
    held = {(one.host, one.program): one.until for one in holds if one.released_at is None}
    found = []
    for host in hosts:
        seats = [
            replace(
                _seat(host, program, workers.get(key), fared.get(key), by_worker, several, now),
                held_until=held.get(key),
            )
            for program in host.programs
            for key in [(host.name, str(program["name"]))]
        ]
        seats.sort(key=lambda seat: in_order(seat.name))
        found.append(Standing(row=host, seats=seats, shares=_shares(host.name, seats)))
    return found


def _seat(
    host: HostRow,
    program: Mapping[str, Any],
    worker: WorkerRow | None,
    history: History | None,
    by_worker: Mapping[int, list[RunningRow]],
    several: set[str],
    now: float,
) -> Seat:
    runs = by_worker.get(worker.id, []) if worker else []
    since, pool = program.get("since"), program.get("pool")
    is_up = program.get("launcher") is not None
    version = worker.code_version if worker else history.code_version if history else None
    return Seat(
        host=host.name,
        name=str(program["name"]),
        state=str(program["state"]),
        pid=program.get("pid"),
        launcher=program.get("launcher"),
        since=float(since) if since else None,
        since_seconds=max(0.0, now - since) if since else None,
        pool=pool,
        memory_kb=program.get("memory_kb"),
        cores=program.get("cores"),
        trouble=program.get("trouble"),
        version=version if is_up else None,
        worker=worker,
        runs=runs,
        hidden=runs[0].jobs - len(runs) if runs else 0,
        history=history,
        is_seen=host.alive and host.trouble is None,
        is_mixed=is_up and pool in several,
    )


def _shares(host: str, seats: Iterable[Seat]) -> list[Share]:
    pools: dict[str, list[Seat]] = defaultdict(list)
    for seat in seats:
        if seat.pool:
            pools[seat.pool].append(seat)
    return [
        Share(host, pool, sum(seat.is_up for seat in of_it), len(of_it)) for pool, of_it in sorted(pools.items())
    ]
