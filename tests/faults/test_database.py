"""A PostgreSQL that is killed under load and comes back."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.store.enqueue import NewJob, enqueue
from shiftboss.queue.store.statement import arun
from shiftboss.supervisor_conf.postgres import Postgres
from tests.runtime.programs import ROOT, House
from tests.waiting import wait_for

FIRST_CLAIM_SECONDS = 5.0


class Load:
    """A client that goes on enqueueing, whatever the database does, and knows which jobs were committed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._stop = threading.Event()
        self._numbers = itertools.count(1)
        self.committed: set[int] = set()
        self.refused = 0
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                asyncio.run(self._enqueue())
            except (psycopg.Error, StoreUnavailable):
                self.refused += 1
                self._stop.wait(0.05)

    async def _enqueue(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as connection:
            while not self._stop.is_set():
                args = f'{{"args": [{next(self._numbers)}], "kwargs": {{}}}}'
                job = NewJob(
                    queue="default", task="tests.runtime.tasks.note", args=args, failure_limit=5, loss_limit=3
                )
                enqueued = await arun(enqueue(job, authority=System()), connection)
                self.committed.add(enqueued.id)
                self._stop.wait(0.002)

    def stop(self) -> None:
        """Enqueue no more."""
        self._stop.set()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Enqueue for the length of the block."""
        self._thread.start()
        try:
            yield
        finally:
            self.stop()
            self._thread.join(20)


def ask(dsn: str, question: str) -> Any:
    """The one value of a question."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(question).fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server that the test may kill. Not below pytest's folders, which are closed to its account."""
    with tempfile.TemporaryDirectory(prefix="shiftboss-tests-") as folder:
        Path(folder).chmod(0o711)
        server = Postgres.of(Path(folder))
        server.initialise()
        yield server


def migrate(dsn: str) -> None:
    """Make the record in an empty database."""
    environment = {**os.environ, "DATABASE_URL": dsn, "DJANGO_SETTINGS_MODULE": "tests.runtime.settings"}
    command = [sys.executable, "-P", "-m", "django", "migrate", "--verbosity=0"]
    subprocess.run(command, env=environment | {"PYTHONPATH": str(ROOT)}, check=True, timeout=60)


@pytest.mark.requirement("L30", "N14", "R9")
def test_a_database_that_is_killed_under_load_loses_nothing_and_is_worked_on_again_at_once(
    server: Postgres, tmp_path: Path
) -> None:
    log = tmp_path / "postgres.log"
    dsn = server.url()
    house = House(tmp_path / "house", dsn)
    house.folder.mkdir()
    load = Load(dsn)
    done = "select count(*) from shiftboss_finished where state = 'completed'"
    try:
        with server.serving(log=log):
            server.create_database()
            migrate(dsn)
            house.worker()
            house.maintainer()
            with load.going_on():
                wait_for(lambda: ask(dsn, done) > 200, seconds=20)
                pid = server.pid()
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)  # else its number stays taken, and the next server believes that it lives
                wait_for(lambda: load.refused > 3, seconds=20)
                with server.serving(log=log):
                    back_at = ask(dsn, "select clock_timestamp()")
                    before = len(load.committed)
                    wait_for(lambda: len(load.committed) > before + 200, seconds=30)
                    load.stop()
                    left = "select count(*) from shiftboss_job where state <> 'quarantined'"
                    wait_for(lambda: ask(dsn, left) == 0, seconds=30)
                    of_this_server = "started_at > pg_postmaster_start_time()"
                    first = ask(dsn, f"select min(started_at) from shiftboss_finished where {of_this_server}")
                    with psycopg.connect(dsn) as connection:
                        rows = connection.execute("select id, state from shiftboss_finished").fetchall()
    finally:
        house.end()
    assert len(rows) == len({id for id, _ in rows}), "a job has ended twice"
    assert load.committed <= {id for id, state in rows if state == "completed"}, "a job was lost"
    assert (first - back_at).total_seconds() <= FIRST_CLAIM_SECONDS
