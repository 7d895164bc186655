"""A PostgreSQL of the test's own with workers on it, and a client that goes on enqueueing whatever happens."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg

from shiftboss.queue.authority import System
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.store import upkeep
from shiftboss.queue.store.enqueue import NewJob, enqueue
from shiftboss.queue.store.statement import Verb, arun
from shiftboss.supervisor_conf.postgres import Postgres
from tests.faults.audit import audit
from tests.faults.proxy import Proxy
from tests.processes import runs
from tests.runtime.programs import ROOT, House, Program
from tests.waiting import wait_for

R = TypeVar("R")
OPTIONS = ("-c", "fsync=off", "-c", "max_connections=40")
"""What is written survives the death of a server, though not that of the machine."""

WITNESS = "tests.runtime,tests.faults.witness"
UNFINISHED = "select count(*) from shiftboss_job where state <> 'quarantined'"
ENDED = "select count(*) from shiftboss_finished"


def work(seconds: float, gate: str | None = None, *, queue: str = "default") -> NewJob:
    """A job that the handlers witness."""
    return NewJob(
        queue=queue,
        task="tests.faults.witness.tasks.work",
        args=json.dumps({"args": [seconds, gate], "kwargs": {}}),
        failure_limit=5,
        loss_limit=1_000_000,  # faults are nobody's fault
    )


class Load:
    """A client that goes on enqueueing, whatever the database does, and knows which jobs were committed."""

    def __init__(self, dsn: str, *, queue: str = "default") -> None:
        self._dsn = dsn
        self._queue = queue
        self._stop = threading.Event()
        self._numbers = itertools.count(1)
        self.committed: set[int] = set()
        self.refused = 0
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                asyncio.run(self._enqueue())
            except (psycopg.Error, StoreUnavailable, TimeoutError):
                self.refused += 1
                self._stop.wait(0.05)

    async def _enqueue(self) -> None:
        async with await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, connect_timeout=2, application_name="load"
        ) as connection:
            while not self._stop.is_set():
                # Some take a while, so that the fault finds them running.
                seconds = 0.5 if next(self._numbers) % 8 == 0 else 0.0
                enqueued = arun(enqueue(work(seconds, queue=self._queue), authority=System()), connection)
                self.committed.add((await asyncio.wait_for(enqueued, 3)).id)
                self._stop.wait(0.005)

    def stop(self) -> None:
        """Enqueue no more."""
        self._stop.set()

    @contextmanager
    def going_on(self) -> Iterator["Load"]:
        """Enqueue for the length of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self.stop()
            self._thread.join(20)


class Stage:
    """A server in a folder of its own, the road to it, and the house whose programs come by that road."""

    def __init__(self, house: Path) -> None:
        self._stack = ExitStack()
        self.server = Postgres.of(self._folder())
        self.server.initialise()
        self.log = house.with_suffix(".log")
        self.road = Proxy(self.server.url())
        self.house = House(house, self.road.dsn)
        self.workers: list[Program] = []
        self.maintainer: Program | None = None
        self.settings: dict[str, Any] = {}
        self._gates = itertools.count(1)

    @classmethod
    @contextmanager
    def set(cls, house: Path, *, workers: int = 2, **settings: Any) -> Iterator["Stage"]:
        """All of it for the length of the block."""
        stage = cls(house)
        with stage._stack:
            stage.serve()
            stage.server.create_database()
            stage._stack.enter_context(stage.road.open())
            migrate(stage.dsn)
            house.mkdir()
            stage.settings = settings
            stage.house.dsn = stage.road.dsn  # its port is known now
            stage._stack.callback(stage.house.end)
            for _ in range(workers):
                stage.hire()
            stage.maintainer = stage.house.maintainer(**settings)
            for worker in stage.workers:
                wait_for(lambda one=worker: one.says("executor.ready"), seconds=60)
            yield stage

    def hire(self) -> Program:
        """One more worker, which is not waited for."""
        self.workers.append(self.house.worker(apps=WITNESS, threads=4, wait=False, **self.settings))
        return self.workers[-1]

    @property
    def dsn(self) -> str:
        """The address of the database itself."""
        return self.server.url()

    def serve(self, server: Postgres | None = None) -> None:
        """Start the server, or one that takes its place."""
        self.server = server or self.server
        self._stack.enter_context(self.server.serving(log=self.log, options=OPTIONS))

    def follow(self) -> Postgres:
        """A server that follows this one from a base backup of it, and is to be served beside it."""
        standby = Postgres.of(self._folder())
        whose = ["-h", str(self.server.sockets), "-U", "postgres"]
        standby._run("pg_basebackup", "-D", str(standby.data), "-R", "-c", "fast", *whose)
        return standby

    def _folder(self) -> Path:
        # Not below pytest's folders, which are closed to the server's account.
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="shiftboss-tests-"))
        Path(folder).chmod(0o711)
        return Path(folder)

    def end_server(self, number: int) -> None:
        """End the server by a signal, and wait until it has."""
        pid = self.server.pid()
        assert pid is not None
        os.kill(pid, number)
        try:
            os.waitpid(pid, 0)  # else its number stays taken, and the next server believes that it lives
        except ChildProcessError:
            pass

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """None of the server's processes does anything for the length of the block."""
        postmaster = psutil.Process(self.server.pid())
        postmaster.suspend()  # first: no new ones then
        try:
            self._send(postmaster, signal.SIGSTOP)
            yield
        finally:
            self._send(postmaster, signal.SIGCONT)
            postmaster.resume()

    @staticmethod
    def _send(postmaster: psutil.Process, number: int) -> None:
        for process in postmaster.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def ask(self, question: str, *params: Any, dsn: str | None = None) -> Any:
        """The one value of a question, by a connection of the test's own."""
        with psycopg.connect(dsn or self.dsn, autocommit=True, application_name="test") as connection:
            row = connection.execute(question, params).fetchone()
            return row and row[0]

    def execute(self, order: str) -> None:
        """Run a statement outside of a transaction."""
        with psycopg.connect(self.dsn, autocommit=True, application_name="test") as connection:
            connection.execute(order)

    def executors(self) -> list[psutil.Process]:
        """Those of all workers."""
        return [executor for worker in self.workers for executor in worker.executors()]

    def enqueue(self, seconds: float, gate: str | None = None) -> int:
        """A job that takes so long, or until the gate is opened; its id."""

        return self._run(enqueue(work(seconds, gate), authority=System())).id

    def reap(self) -> list[int]:
        """The ids of the jobs that are taken from expired leases now."""
        return [reaped.id for reaped in self._run(upkeep.reap(authority=System()))]

    def _run(self, verb: Verb[R]) -> R:
        async def go() -> R:
            async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection:
                return await arun(verb, connection)

        return asyncio.run(go())

    def begun(self, job: int, fence: int) -> None:
        """Wait until the handler has begun this attempt or a later one: a claim without an answer is one too."""

        def fences() -> list[int]:
            names = (name.partition(".") for name in self.house.wrote("began"))
            return [int(number) for one, _, number in names if one == str(job) and int(number) >= fence]

        wait_for(fences, seconds=120, every=0.005)

    @contextmanager
    def long_run(self) -> Iterator[int]:
        """A job that runs in one worker when the block begins, and may end after it."""
        gate = f"gate-{next(self._gates)}"
        job = self.enqueue(600, gate)
        self.begun(job, 1)
        yield job
        (self.house.folder / gate).touch()

    def hears(self, words: str) -> Callable[[], bool]:
        """Whether each of the workers has said the words since now."""
        before = {worker.pid: worker.log.read_text().count(words) for worker in self.workers}
        return lambda: all(worker.log.read_text().count(words) > before[worker.pid] for worker in self.workers)

    def progress(self, load: Load) -> None:
        """Wait until jobs are both enqueued and ended again."""
        committed, ended = len(load.committed), self.ask(ENDED)
        wait_for(lambda: len(load.committed) > committed + 40, seconds=60)
        wait_for(lambda: self.ask(ENDED) > ended + 20, seconds=60)

    def survives(self, fault: Callable[[Load], None], *, queue: str = "default") -> None:
        """Let it happen under load. Then work goes on, and in the end the auditor finds nothing."""
        for log in self.house.folder.glob("*.log"):
            log.unlink()  # of jobs whose history may be gone
        with Load(self.road.dsn, queue=queue).going_on() as load:
            self.progress(load)
            fault(load)
            self.progress(load)
            load.stop()
            wait_for(lambda: not self.ask(UNFINISHED), seconds=60)
        assert all(runs(psutil.Process(worker.pid)) for worker in self.workers)
        findings = audit(self.house.lines(), self.dsn, load.committed)
        assert not findings, findings[:20]


def migrate(dsn: str) -> None:
    """Make the record in an empty database."""
    environment = {**os.environ, "DATABASE_URL": dsn, "DJANGO_SETTINGS_MODULE": "tests.runtime.settings"}
    command = [sys.executable, "-P", "-m", "django", "migrate", "--verbosity=0"]
    subprocess.run(command, env=environment | {"PYTHONPATH": str(ROOT)}, check=True, timeout=60)
