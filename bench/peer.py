"""Shiftboss as a peer of the side-by-side harness `qbench`: `python -m qbench bench.peer:Peer`.

The worker is the shipped command with its defaults.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import psycopg
from qbench.adapters.base import Adapter

ROOT = str(Path(__file__).resolve().parents[1])
HARNESS = str(Path(sys.modules["qbench"].__path__[0]).parent)


class Peer(Adapter):
    """The adapter; see the harness's own documentation of each method."""

    name = "shiftboss"
    packages = ("shiftboss", "Django", "psycopg")
    settings = "shipped worker command, defaults: 1 executor process of 8 threads, lease 30 s, fsync on"
    concurrency = 8
    recovery = "lease of 30 s, reaped by any keeper"
    table = "shiftboss_job"
    default_columns = ("id",)
    finished_sql = (
        "insert into shiftboss_finished (id, queue, task, args, state, failure_limit, loss_limit, finished_at) "
        "select -i, 'default', 'bench.tasks.noop', '{}', 'completed', 5, 3, now() from generate_series(1, %(n)s) i"
    )

    def setup(self) -> None:
        """Migrate the empty database."""
        os.environ["QBENCH_DSN"] = self.dsn
        os.environ["DJANGO_SETTINGS_MODULE"] = "bench.settings"
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        connection.close()
        connection.settings_dict["NAME"] = psycopg.conninfo.conninfo_to_dict(self.dsn)["dbname"]
        call_command("migrate", verbosity=0)

    def close(self) -> None:
        """Let go of the database."""
        from django.db import connection

        connection.close()

    def enqueue_each(self, numbers: Iterable[int], task: str = "noop") -> None:
        """One job, one transaction."""
        from bench import tasks

        for n in numbers:
            getattr(tasks, task).enqueue(n)

    def enqueue_bulk(self, numbers: Iterable[int]) -> None:
        """All jobs at once, by `enqueue_many`."""
        from bench import tasks
        from shiftboss import enqueue_many

        enqueue_many(tasks.noop.with_arguments(n) for n in numbers)

    def worker(self, concurrency: int) -> tuple[list[str], dict[str, str]]:
        """The shipped command."""
        env = {
            "PYTHONPATH": os.pathsep.join((ROOT, HARNESS)),
            "DJANGO_SETTINGS_MODULE": "bench.settings",
            "PYTHONSAFEPATH": "1",
        }
        if concurrency != self.concurrency:
            env["BENCH_THREADS"] = str(concurrency)
        return [sys.executable, "-m", "django", "shiftboss_worker"], env

    def count_left(self) -> int:
        """Live jobs."""
        count: int = self.sql("select count(*) from shiftboss_job")
        return count
