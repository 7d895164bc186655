"""The workers as their page shows them: which ones, in which order, and what runs in each. Plain functions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from shiftboss.console.filters import BadFilter, queue_of
from shiftboss.console.verdict import is_late, is_lost, late_after
from shiftboss.permissions import Act, Person
from shiftboss.queue.store.read import RunningRow, WorkerRow

PAGE = 25
"""Workers on one page."""

ENDED = 50
"""Of those that have ended the latest are listed."""

RUNS_SHOWN = 3
"""Of what runs in a worker so much stands on the page of all; its own page has the rest."""

LARGEST_PAGE = 9999
OFFERED = 100
"""So many names are offered to choose from."""


def standing(worker: WorkerRow) -> str:
    """What a worker does, in one word: an order counts from when it was given, not from when it was heard."""
    if is_lost(worker):
        return "lost"
    if worker.state == "stopped":
        return "stopped"
    if worker.ordered == "stop":
        return "stopping"
    return "draining" if worker.ordered == "drain" else worker.state


STATES = ("running", "draining", "stopping", "late", "lost")
"""What can be asked for. A late one does what it does, and has missed heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFilter:
    """What the page is narrowed to; it lives in the address alone."""

    pool: str = ""
    host: str = ""
    queue: str = ""
    state: str = ""
    page: int = 1

    @property
    def query(self) -> str:
        """The filter as the query of an address, or nothing."""
        named = {"pool": self.pool, "host": self.host, "queue": self.queue, "state": self.state}
        given = {name: value for name, value in named.items() if value}
        if self.page > 1:
            given["page"] = str(self.page)
        return "?" + urlencode(given) if given else ""

    @property
    def narrows(self) -> bool:
        """Whether anything is left out."""
        return bool(self.pool or self.host or self.queue or self.state)

    def on_page(self, page: int) -> "WorkerFilter":
        """The same on another page."""
        return replace(self, page=page)

    def fits(self, worker: WorkerRow) -> bool:
        """Whether a worker is meant."""
        return (
            self.pool in ("", worker.pool)
            and self.host in ("", worker.host)
            and (not self.queue or self.queue in worker.queues)
            and (not self.state or (is_late(worker) if self.state == "late" else standing(worker) == self.state))
        )


def read(query: Mapping[str, str]) -> WorkerFilter:
    """The filter that an address asks for. Raises BadFilter."""
    state = query.get("state", "")
    if state and state not in STATES:
        raise BadFilter(f"a worker is {', '.join(STATES)}")
    page = query.get("page") or "1"
    if not (page.isascii() and page.isdigit() and 0 < len(page) <= 4 and int(page) >= 1):
        raise BadFilter(f"page must be a number from 1 to {LARGEST_PAGE}")
    pool, host = query.get("pool", ""), query.get("host", "")
    if "\x00" in pool or "\x00" in host:
        raise BadFilter("no name holds a NUL")
    queue = queue_of(query) if query.get("queue") else ""
    return WorkerFilter(pool=pool, host=host, queue=queue, state=state, page=int(page))


@dataclass(frozen=True, slots=True)
class Line:
    """One worker, and the longest-running of its jobs; `hidden` more run in it."""

    worker: WorkerRow
    standing: str
    runs: list[RunningRow]
    hidden: int

    @property
    def has_more(self) -> bool:
        """Whether there is anything to say below its row: what runs in it, or what ails it."""
        worker = self.worker
        return bool(self.runs) or (
            worker.alive and bool(worker.tainted or worker.dropped or worker.resources != "{}")
        )

    @property
    def worst_lag_seconds(self) -> float:
        """The worst lag since its start; its margin is `lag_margin_seconds`."""
        return self.worker.worst_lag_ms / 1000

    @property
    def lag_margin_seconds(self) -> float:
        """How late a heartbeat may be sent before the worker counts as late."""
        return max(0.0, late_after(self.worker) - self.worker.heartbeat_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """A page of the workers that fit, those in trouble first; `ended`: those that have said goodbye.

    `matching`: how many fit, on all pages. `pools`, `hosts` and `queues` are there to choose from.
    """

    wanted: WorkerFilter
    page: list[WorkerRow]
    matching: int
    ended: list[WorkerRow]
    pools: list[str]
    hosts: list[str]
    queues: list[str]

    @property
    def pages(self) -> int:
        """How many pages there are, at least one."""
        return max(1, -(-self.matching // PAGE))


def arrange(workers: Sequence[WorkerRow], wanted: WorkerFilter) -> Roster:
    """The page that is asked for; where it lies beyond the last one, that one."""
    fitting = [worker for worker in workers if wanted.fits(worker)]
    there = sorted((worker for worker in fitting if worker.state != "stopped"), key=_place)
    last = max(1, -(-len(there) // PAGE))
    wanted = wanted.on_page(min(wanted.page, last))
    start = (wanted.page - 1) * PAGE
    return Roster(
        wanted=wanted,
        page=there[start : start + PAGE],
        matching=len(there),
        ended=[worker for worker in fitting if worker.state == "stopped"][:ENDED],
        pools=sorted({worker.pool for worker in workers})[:OFFERED],
        hosts=sorted({worker.host for worker in workers})[:OFFERED],
        queues=sorted({queue for worker in workers for queue in worker.queues})[:OFFERED],
    )


def _place(worker: WorkerRow) -> tuple[int, str, int]:
    """What is in trouble comes first; then by pool, the oldest first."""
    trouble = 0 if is_late(worker) else 1 if is_lost(worker) else 2
    return trouble, worker.pool, worker.id


def lines(workers: Sequence[WorkerRow], runs: Iterable[RunningRow]) -> list[Line]:
    """The workers with what runs in them."""
    by_worker: dict[int, list[RunningRow]] = defaultdict(list)
    for one in runs:
        by_worker[one.worker_id].append(one)
    return [
        Line(
            worker=worker,
            standing=standing(worker),
            runs=(mine := by_worker[worker.id]),
            hidden=mine[0].jobs - len(mine) if mine else 0,
        )
        for worker in workers
    ]


def left_alone(worker: WorkerRow, workers: Iterable[WorkerRow]) -> list[str]:
    """The queues that nobody else serves: no other worker that lives and is to stay."""
    others = {
        queue
        for other in workers
        if other.id != worker.id and standing(other) == "running"
        for queue in other.queues
    }
    return [queue for queue in worker.queues if queue not in others]


def orders(worker: WorkerRow, *, to: Person) -> list[Act]:
    """What this person may order of a worker now."""
    if not worker.alive or worker.ordered == "stop":
        return []
    possible = [Act.STOP_WORKER] if worker.ordered else [Act.DRAIN_WORKER, Act.STOP_WORKER]
    return [act for act in possible if to.may(act)]
