"""Jobs that complete themselves in their own transactions, while keepers, executors and backends are killed.

Handlers say where they stand and wait there (`tests.faults.ledger.tasks.stand`), so that a kill hits the point
that it was meant for: between BEGIN and COMMIT, or between the commit and its report.
"""

import json
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from django.db import connection

import shiftboss
from tests.faults.ledger import TABLE, tasks
from tests.processes import runs
from tests.runtime.programs import House, Program
from tests.waiting import wait_for

SETTINGS: dict[str, Any] = {
    "LEASE_SECONDS": 3,
    "HEARTBEAT_SECONDS": 0.5,
    # Keepers stage and reap at a tenth of these rates, and nobody else does here.
    "STAGE_SECONDS": 0.02,
    "REAP_SECONDS": 0.03,
    "BACKOFF_SECONDS": 0.05,
    "BACKOFF_CAP_SECONDS": 0.5,
}


@dataclass(frozen=True, slots=True)
class Blow:
    """One kill to come: of whom, and where his handler stands then."""

    victim: str
    point: str


@dataclass(slots=True)
class Storm:
    """`jobs` jobs on `workers` workers, and the blows that fall on them."""

    house: House
    jobs: int
    blows: list[Blow]
    workers: int = 2
    processes: int = 2
    threads: int = 4
    struck: Counter[Blow] = field(default_factory=Counter)
    missed: int = 0
    _programs: list[Program] = field(default_factory=list)
    _plan: dict[int, Blow] = field(default_factory=dict)

    def run(self, *, seconds: float) -> None:
        """Enqueue, kill, start again, until all jobs are completed and no blow is left to fall.

        A handler that has committed and dies by a blow that was meant for his neighbour never stands again: his
        own blow is missed.
        """
        self._points.mkdir()
        with connection.cursor() as cursor:
            cursor.execute(TABLE)
        marked = random.Random(7).sample(range(self.jobs), len(self.blows))
        self._plan = dict(zip(marked, self.blows, strict=True))
        shiftboss.enqueue_many(
            tasks.enter.with_arguments(number, self._plan[number].point if number in self._plan else None)
            for number in range(self.jobs)
        )
        with connection.cursor() as cursor:
            # Kills are nobody's fault: nothing is to end in the quarantine.
            cursor.execute("update shiftboss_job set failure_limit = 1000000, loss_limit = 1000000")
        self._programs = [self._worker() for _ in range(self.workers)]
        wait_for(self._weather, seconds=seconds, every=0.01)

    @property
    def _points(self) -> Path:
        return self.house.folder / "points"

    def _worker(self) -> Program:
        return self.house.worker(
            processes=self.processes,
            threads=self.threads,
            wait=False,
            apps="tests.runtime,tests.faults.ledger",
            **SETTINGS,
        )

    def _weather(self) -> bool:
        """One look round; whether all is over."""
        for place, program in enumerate(self._programs):
            if program.process.poll() is not None:
                self._programs[place] = self._worker()
        for here in sorted(self._points.glob("*.here")):
            self._strike(json.loads(here.read_text()), here)
        if self.completed() < self.jobs:
            return False
        left = [number for number in self._plan if not (self._points / f"{number}.struck").exists()]
        self.missed = len(left)
        return not any(_alive(self._went(number)) for number in left)

    def _strike(self, facts: dict[str, Any], here: Path) -> None:
        blow = self._plan[facts["number"]]
        here.unlink(missing_ok=True)
        if not self._stands(facts):
            return  # he fell with another; the next attempt will stand there again
        match blow.victim:
            case "backend":
                with connection.cursor() as cursor:
                    cursor.execute("select pg_terminate_backend(%s)", [facts["backend"]])
                    assert cursor.fetchone() == (True,)
            case "executor":
                os.kill(facts["executor"], signal.SIGKILL)
            case "keeper":
                os.kill(facts["keeper"], signal.SIGKILL)
        if blow.victim != "backend":
            # Whoever stood in the same process has fallen too, though not by a blow that was meant for him.
            wait_for(lambda: not _alive(facts["executor"]), seconds=20, every=0.002)
        (self._points / f"{facts['number']}.struck").touch()
        self.struck[blow] += 1

    def _stands(self, facts: dict[str, Any]) -> bool:
        """Whether the handler waits where it says, in a process that lives, its work committed or not yet."""
        mine = any(program.pid == facts["keeper"] for program in self._programs)
        if not mine or not _alive(facts["executor"]) or not _alive(facts["keeper"]):
            return False
        with connection.cursor() as cursor:
            cursor.execute("select count(*) from ledger where number = %s", [facts["number"]])
            return cursor.fetchone() == (int(facts["point"] == "committed"),)

    def _went(self, number: int) -> int:
        """The process of the run that was last about to commit."""
        return int((self._points / f"{number}.going").read_text())

    def completed(self) -> int:
        """Jobs that the record holds as completed."""
        with connection.cursor() as cursor:
            cursor.execute("select exists (select from shiftboss_job where state = 'quarantined')")
            assert cursor.fetchone() == (False,), "a job is quarantined and will never be completed"
            cursor.execute("select count(*) from shiftboss_finished where state = 'completed'")
            return int(cursor.fetchone()[0])

    def account(self) -> dict[str, int]:
        """What the user's table and the record hold, counted in both of them."""
        with connection.cursor() as cursor:
            cursor.execute(
                "select (select count(*) from ledger) as effects,"
                " (select count(distinct number) from ledger) as numbers,"
                " (select count(*) from shiftboss_finished f where state = 'completed') as completions,"
                " (select count(*) from shiftboss_finished f join ledger l on l.job = f.id and l.fence = f.fence"
                "   and f.result = to_jsonb(l.number)) as agreeing,"
                " (select count(*) from shiftboss_job) as live,"
                " (select count(*) from shiftboss_attempt) as cut_short"
            )
            names = [column.name for column in cursor.description]
            return dict(zip(names, cursor.fetchone(), strict=True))

    def kills(self) -> dict[str, int]:
        """Blows that fell, by victim and by point."""
        found: Counter[str] = Counter()
        for blow, number in self.struck.items():
            found[blow.victim] += number
            found[blow.point] += number
        return dict(found)


def _alive(pid: int) -> bool:
    try:
        return runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False
