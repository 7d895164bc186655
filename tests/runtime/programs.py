"""Real workers and maintainers for tests, and what their handlers say they did."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import psutil
from django.db import connection
from psycopg.conninfo import conninfo_to_dict

from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.enqueue import NewJob, enqueue
from shiftboss.queue.store.statement import run
from tests.processes import command_line, runs
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"LEASE_SECONDS": 3, "HEARTBEAT_SECONDS": 0.5, "DRAIN_SECONDS": 5}
START_SECONDS = 90.0


class Line(NamedTuple):
    """One line of a handler's log."""

    pid: int
    kind: str
    name: str
    at: float


class Program:
    """One process under test, with its output in a file."""

    def __init__(self, command: list[str], *, folder: Path, dsn: str, settings: dict[str, Any], apps: str) -> None:
        address = conninfo_to_dict(dsn)
        name = address.pop("dbname")
        folder.mkdir(exist_ok=True)
        self.log = folder / f"{command[0]}-{len(list(folder.iterdir()))}.out"
        environment = {
            **os.environ,
            "DATABASE_URL": f"postgresql:///{name}?{urlencode(address)}",
            "DJANGO_SETTINGS_MODULE": "tests.runtime.settings",
            "PYTHONPATH": str(ROOT),
            "SHIFTBOSS_RUN_FOLDER": str(folder / "run"),
            "TEST_APPS": apps,
            "TEST_LOG": str(folder),
            "TEST_SHIFTBOSS": json.dumps(settings),
        }
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "django", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process: for a worker, its keeper."""
        return self.process.pid

    def says(self, words: str) -> bool:
        """Whether its output holds the words. AssertionError with the output where it has ended without them."""
        output = self.log.read_text()
        assert words in output or self.process.poll() is None, output
        return words in output

    def children(self, words: str) -> list[psutil.Process]:
        """Living children whose command line holds the words."""
        return [p for p in psutil.Process(self.pid).children() if words in " ".join(command_line(p)) and runs(p)]

    def executors(self) -> list[psutil.Process]:
        """A worker's executors."""
        return self.children("shiftboss_executor")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to this process alone."""
        os.kill(self.pid, number)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.kill(signal.SIGTERM)
        return self.process.wait(30)

    def end(self) -> None:
        """Leave nothing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(30)


class House:
    """Starts programs on one database and reads what happened."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self._programs: list[Program] = []

    def _start(self, *command: str, settings: dict[str, Any], apps: str = "tests.runtime") -> Program:
        self._programs.append(
            Program(list(command), folder=self.folder, dsn=self.dsn, settings=settings, apps=apps)
        )
        return self._programs[-1]

    def worker(
        self,
        *,
        processes: int = 1,
        threads: int = 8,
        queues: tuple[str, ...] = ("default",),
        wait: bool = True,
        apps: str = "tests.runtime",
        **settings: Any,
    ) -> Program:
        """A worker of the default pool; by default it is waited for until all its executors are ready."""
        pool = {"processes": processes, "threads": threads, "queues": queues}
        given = {**QUICK, "POOLS": {"default": pool}, **settings}
        program = self._start("shiftboss_worker", settings=given, apps=apps)
        if wait:
            wait_for(
                lambda: (
                    program.says("keeper.started") and program.log.read_text().count("executor.ready") == processes
                ),
                seconds=START_SECONDS,
            )
        return program

    def maintainer(self, *, wait: bool = True, **settings: Any) -> Program:
        """A maintainer; by default it is waited for."""
        program = self._start("shiftboss_maintainer", settings={**QUICK, **settings})
        if wait:
            wait_for(lambda: program.says("maintainer.started"), seconds=START_SECONDS)
        return program

    def end(self) -> None:
        """End all programs."""
        for program in self._programs:
            program.end()

    def lines(self) -> list[Line]:
        """What all handlers wrote, in the order of time."""
        found = []
        for path in self.folder.glob("*.log"):
            for line in path.read_text().splitlines():
                kind, name, at = line.rsplit(" ", 2)
                found.append(Line(int(path.stem), kind, name, float(at)))
        return sorted(found, key=lambda line: line.at)

    def wrote(self, kind: str) -> Counter[str]:
        """How often each name was written with this kind."""
        return Counter(line.name for line in self.lines() if line.kind == kind)

    def wait_for_lines(self, kind: str, number: int, *, seconds: float = 20) -> None:
        """Until so many different names were written with this kind."""
        wait_for(lambda: len(self.wrote(kind)) >= number, seconds=seconds)


def totals() -> Counter[State]:
    """Jobs by state, over all queues."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select state, count(*) from (select state from shiftboss_job union all"
            " select state from shiftboss_finished) jobs group by state"
        )
        return Counter({State(state): jobs for state, jobs in cursor.fetchall()})


def job(job_id: str | int) -> read.JobDetail:
    """A job by its id."""
    found = run(read.job(authority=System(), job_id=int(job_id)))
    assert found is not None
    return found


def attempts(job_id: str | int) -> list[read.AttemptRow]:
    """Its attempts that did not succeed."""
    return run(read.attempts(authority=System(), job_id=int(job_id)))


def wait_for_state(job_id: str | int, *states: State, seconds: float = 20) -> read.JobDetail:
    """The job, once it is in one of these states."""
    wait_for(lambda: job(job_id).state in states, seconds=seconds)
    return job(job_id)


def enqueued_before(task: str, args: str) -> int:
    """A job of this task as another version of it was enqueued, with arguments that may no longer fit."""
    new = NewJob(queue="default", task=task, args=args, failure_limit=5, loss_limit=3)
    return run(enqueue(new, authority=System())).id


def copies_of(job_id: str | int, number: int) -> None:
    """Copies of a job that was just enqueued, with 1, 2, … as their argument; thousands of calls take long."""
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into shiftboss_job (queue, task, args, state, priority, failure_limit, loss_limit)"
            " select queue, task, jsonb_set(args, '{args,0}', to_jsonb(n)), state, priority, failure_limit,"
            " loss_limit"
            " from shiftboss_job, generate_series(1, %s) n where id = %s",
            [number, job_id],
        )
