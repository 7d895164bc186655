"""The day: workers, a client that enqueues all along, faults of chance, and the verdict in the end.

>>> day = Day(stage, jobs=20_000, seconds=180, seed=1)
>>> assert day.run() == []
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from shiftboss.queue.store import queues
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.statement import Verb, arun
from shiftboss.supervisor_conf.postgres import Postgres
from tests.faults.audit import Finding, audit
from tests.faults.chaos import verdict
from tests.faults.chaos.faults import DOWN, FAULTS, LIMITS, Fault
from tests.faults.chaos.kinds import LIMITED, LINE, QUEUES, SYSTEM, Client, plan
from tests.faults.ledger import TABLE
from tests.faults.stage import UNFINISHED, Stage
from tests.runtime.programs import Program
from tests.waiting import wait_for

APPS = "tests.runtime,tests.faults.witness,tests.faults.chaos"
OPTIONS = ("-c", "fsync=off", "-c", "max_connections=200")
LEASE_SECONDS = 4.5
SETTINGS: dict[str, Any] = {
    "LEASE_SECONDS": LEASE_SECONDS,
    "HEARTBEAT_SECONDS": 1.5,
    "REAP_SECONDS": 0.3,
    "STAGE_SECONDS": 0.1,
    "GRACE_SECONDS": 1.0,
    "DRAIN_SECONDS": 4,
    "BACKOFF_SECONDS": 0.1,
    "BACKOFF_CAP_SECONDS": 1.0,
}
END_SECONDS = 90.0
"""How long a worker may take to end that was told to, whatever else befalls it."""

AGAIN_SECONDS = 3.0
"""Between two workers in one place: one that finds no database ends at once."""


class House(Stage):
    """A stage with room for the connections of all handlers."""

    def serve(self, server: Postgres | None = None) -> None:
        """Start the server."""
        self.server = server or self.server
        self._stack.enter_context(self.server.serving(log=self.log, options=OPTIONS))


@contextmanager
def stage_of(folder: Path) -> Iterator[Stage]:
    """A server and the road to it; nobody works there yet."""
    with House.set(folder, workers=0, **SETTINGS) as stage:
        yield stage


class Day:
    """`jobs` jobs on `workers` workers within so many seconds, `without` some kinds; a fault of the deck each
    `gap` seconds or so.

    `happened`: faults by kind. `frozen`: executors that stood still. `cancelled`: jobs whom somebody may have
    cancelled. `findings`: what was wrong, known after `run`.
    """

    lease_seconds = LEASE_SECONDS

    def __init__(
        self,
        stage: Stage,
        *,
        jobs: int,
        seconds: float,
        seed: int,
        workers: int = 4,
        gap: float = 4.0,
        faults: Collection[str] = tuple(FAULTS),
        without: Collection[str] = (),
        tell: Callable[[str], None] = print,
    ) -> None:
        self.stage, self.dice = stage, random.Random(seed)
        self.happened: Counter[str] = Counter()
        self.frozen: set[int] = set()
        self.cancelled: set[int] = set()
        self.findings: list[Finding] = []
        self.held = verdict.Held({}, {}, [])
        self.dsn = make_conninfo(stage.dsn, options="-c statement_timeout=5s", application_name="chaos")
        assert stage.maintainer is not None
        self.maintainer = stage.maintainer
        self._seconds, self._workers, self._gap = seconds, workers, gap
        self._faults, self._tell = faults, tell
        self._client = Client(
            stage.road.dsn,
            plan(jobs, self.dice, without=without),
            seconds=0.9 * seconds,
            dice=random.Random(seed + 1),
        )
        self._endings: list[tuple[float, Callable[[], object]]] = []
        self._places: list[Program] = []
        self._hired: dict[int, float] = {}
        self._leaving: list[tuple[float, Program]] = []
        self._began = time.monotonic()

    # -- what faults use -----------------------------------------------------------------------------------

    def any_worker(self) -> Program:
        """One of those that are there, if any is."""
        alive = [worker for worker in self._places if worker.process.poll() is None]
        return self.dice.choice(alive or self._places)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do it in so many seconds, or when the faults end."""
        self._endings.append((time.monotonic() + seconds, act))

    def replace(self, worker: Program) -> None:
        """Tell it to end; another one takes its place."""
        worker.process.send_signal(signal.SIGTERM)  # to nobody where it has ended
        if worker.process.poll() is None:
            self._leaving.append((time.monotonic() + END_SECONDS, worker))
            self._hire(self._places.index(worker))

    def execute(self, order: str) -> None:
        """Run a statement, if the database lets us."""
        with suppress(psycopg.Error), psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(order)

    def act(self, verb: Verb[Any]) -> None:
        """As somebody does who cannot know whether the database is there."""

        async def go() -> None:
            async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection:
                await arun(verb, connection)

        with suppress(*DOWN):
            asyncio.run(go())

    # -- the day -------------------------------------------------------------------------------------------

    def run(self, *, drain_seconds: float = 600) -> list[Finding]:
        """All of it; what is wrong."""
        self.stage.execute(TABLE)
        self.act(queues.limit(LIMITED, Limit(max(LIMITS)), authority=SYSTEM, by="chaos"))
        self.act(queues.limit(LINE, Limit(1, sequential=True), authority=SYSTEM, by="chaos"))
        for place in range(self._workers):
            self._hire(place)
        wait_for(lambda: all(one.says("executor.ready") for one in self._places), seconds=120)
        self._began = time.monotonic()
        with self._client.going_on():
            self._storm()
            self._calm(drain_seconds)
        self._judge()
        return self.findings

    def _storm(self) -> None:
        deck: list[str] = []
        ends_at = self._began + self._seconds
        next_at, tell_at = self._began + self._gap, self._began + 10
        while (now := time.monotonic()) < ends_at:
            if now >= next_at:
                deck = deck or self._deck()
                self._strike(deck.pop())
                next_at = now + self.dice.uniform(0.3, 1.7) * self._gap
            self._end(now)
            self._mend()
            if now >= tell_at:
                self.tell()
                tell_at = now + 10
            time.sleep(0.05)  # the pace of the dealer; nothing is waited for

    def _deck(self) -> list[str]:
        deck = [name for name, (often, _) in FAULTS.items() for _ in range(often) if name in self._faults]
        self.dice.shuffle(deck)
        return deck

    def _strike(self, name: str) -> None:
        fault: Fault = FAULTS[name][1]
        fault(self)
        self.happened[name] += 1

    def _end(self, now: float) -> None:
        due = [ending for ending in self._endings if ending[0] <= now]
        self._endings = [ending for ending in self._endings if ending[0] > now]
        for _, act in due:
            act()

    def _calm(self, seconds: float) -> None:
        """No more faults; wait until all has ended."""
        self._end(float("inf"))
        self.stage.road.lift()
        self.stage.road.delay(0)
        self.stage.road.reset()
        for queue in QUEUES:
            self.act(queues.resume(queue, authority=SYSTEM))
        deadline, tell_at = time.monotonic() + seconds, time.monotonic() + 10
        while time.monotonic() < deadline:
            self._mend()
            if self._client.done and not self._left():
                break
            if time.monotonic() >= tell_at:
                self.tell()
                tell_at = time.monotonic() + 10
            time.sleep(0.1)  # how often it is looked, until all has ended or time is up

    def _left(self) -> int:
        return int(self.stage.ask(UNFINISHED))

    def _judge(self) -> None:
        self.stage.house.end()
        lines = self.stage.house.lines()
        self.held = verdict.read(self.stage.dsn)
        self.findings += audit(lines, self.stage.dsn, self._client.committed, frozen=self.frozen)
        self.findings += verdict.judge(
            lines, self.held, committed=self._client.committed, cancelled=self.cancelled, frozen=self.frozen
        )

    # -- workers -------------------------------------------------------------------------------------------

    def _hire(self, place: int) -> None:
        worker = self.stage.house.worker(apps=APPS, threads=4, queues=QUEUES, wait=False, **SETTINGS)
        self._places[place : place + 1] = [worker]
        self._hired[place] = time.monotonic()

    def _mend(self) -> None:
        """Another one in the place of each that has ended, and a look at how it has."""
        now = time.monotonic()
        for place, worker in enumerate(self._places):
            if worker.process.poll() is not None and now > self._hired[place] + AGAIN_SECONDS:
                self._look_at(worker)
                self._hire(place)
        if self.maintainer.process.poll() is not None:
            self._look_at(self.maintainer)
            self.maintainer = self.stage.house.maintainer(wait=False, **SETTINGS)
        for until, worker in [*self._leaving]:
            if worker.process.poll() is not None:
                self._leaving.remove((until, worker))
                self._look_at(worker)
            elif now > until:
                self._leaving.remove((until, worker))
                self.findings.append(Finding("stuck", 0, 0, f"worker {worker.pid} has not ended: {worker.log}"))

    def _look_at(self, program: Program) -> None:
        """It may end for want of a database before it has started, never by an error of its own after that."""
        code = program.process.returncode
        self.happened[f"(a program ended with {code})"] += 1
        output = program.log.read_text(errors="replace")
        if code > 0 and ".started" in output:
            self.findings.append(Finding("crash", 0, 0, f"it ended with {code}: {output[-1500:]}"))

    # -- telling -------------------------------------------------------------------------------------------

    def tell(self) -> None:
        """One line of how it goes."""
        counts = "?"
        with suppress(psycopg.Error), psycopg.connect(self.dsn, autocommit=True, connect_timeout=2) as connection:
            counts = " ".join(
                f"{state} {jobs}"
                for state, jobs in connection.execute(
                    "select state, count(*) from shiftboss_job group by 1"
                    " union all select 'ended', count(*) from shiftboss_finished order by 1"
                )
            )
        took = round(time.monotonic() - self._began)
        faults = sum(number for name, number in self.happened.items() if not name.startswith("("))
        self._tell(f"{took:5} s  {len(self._client.committed)} enqueued; {counts}; {faults} faults")

    def table(self) -> Iterator[str]:
        """Faults by kind, jobs by end, attempts by outcome, and what the client met."""
        for title, counted in (
            ("faults", self.happened),
            ("jobs", self.held.ends),
            ("attempts", self.held.outcomes),
            ("met by the client", self._client.met),
        ):
            yield f"{title}: {sum(counted.values())}"
            yield from (f"  {name:45} {number:8}" for name, number in sorted(counted.items()))
