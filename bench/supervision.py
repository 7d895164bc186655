"""How long it takes until what happens to programs is known, and what people ask of them is begun.

    PYTHONPATH=. python -m bench.supervision [--rounds 5]

`shiftboss up` with all that it starts, in a home of the run's own. A table gives the median and the worst of the
rounds, in seconds beside what is promised; the exit status is 1 where a promise was not kept.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import psutil
import psycopg

from shiftboss.queue.authority import System
from shiftboss.queue.store import commands
from shiftboss.queue.store.commands import Order
from shiftboss.queue.store.enqueue import NewJob, enqueue
from shiftboss.queue.store.statement import Verb, arun
from tests.programs.tree import Tree, forget
from tests.waiting import wait_for

R = TypeVar("R")
PATIENCE = 60.0
EVERY = 0.01
SETTINGS = "bench.supervised_settings"
WORKER = "worker-default-1"


class Site:
    """A running installation, and its record."""

    def __init__(self, home: Path) -> None:
        self.tree = Tree(home, "--settings", SETTINGS).ready()
        note = json.loads((home / "installation.json").read_text())
        self._dsn = str(note["database_url"])

    def run(self, verb: Verb[R]) -> R:
        """Run a verb of the store."""

        async def ran() -> R:
            async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as connection:
                return await arun(verb, connection)

        return asyncio.run(ran())

    def until(self, query: str, *values: Any) -> tuple[Any, ...]:
        """The row that this query gives, once it gives one."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            return wait_for(
                lambda: connection.execute(query, values).fetchone() or (), seconds=PATIENCE, every=EVERY
            )

    def long_run(self) -> tuple[str, int]:
        """A job that is running, and the pid of its worker."""
        args = json.dumps({"args": ["long", 600.0], "kwargs": {}})
        new = NewJob(queue="default", task="tests.runtime.tasks.nap", args=args, failure_limit=5, loss_limit=5)
        job = self.run(enqueue(new, authority=System())).id
        [pid] = self.until(
            "select w.pid from shiftboss_worker w join shiftboss_job j on j.worker_id = w.id where j.id = %s", job
        )
        return str(job), int(pid)


class Case(NamedTuple):
    """What happens, what is promised, and how it is measured."""

    what: str
    limit: float
    measure: Callable[[Site], float]


def worker_killed(site: Site) -> float:
    """From the kill of a worker until its end is in the record, with the signal and the job in hand."""
    job, pid = site.long_run()
    site.until("select 1 from shiftboss_process where pid = %s and ended_at is null", pid)
    began = time.monotonic()
    psutil.Process(pid).kill()
    number, jobs = site.until(
        "select signal, jobs from shiftboss_process where pid = %s and ended_at is not null", pid
    )
    took = time.monotonic() - began
    assert (number, [one["id"] for one in jobs]) == (signal.SIGKILL, [job])
    return took


def asked(site: Site) -> float:
    """From what a person asks of a program until the agent has begun with it."""
    order = Order(host=_host(site), verb="tail", program=WORKER)
    began = time.monotonic()
    number = site.run(commands.ask(order, authority=System(), by="bench")).id
    site.until("select 1 from shiftboss_command where id = %s and state <> 'waiting'", number)
    return time.monotonic() - began


def agent_killed(site: Site) -> float:
    """From the kill of the agent until the next one tells of the host."""
    [pid] = site.until("select pid from shiftboss_host")
    began = time.monotonic()
    psutil.Process(int(pid)).kill()
    site.until("select 1 from shiftboss_host where pid <> %s and heartbeat_at > started_at", pid)
    return time.monotonic() - began


def supervisord_killed(site: Site) -> float:
    """From the kill of supervisord until nothing runs that it has started."""
    site.tree.processes()
    began = time.monotonic()
    site.tree.supervisord().kill()
    wait_for(lambda: not site.tree.left(), seconds=PATIENCE, every=EVERY)
    return time.monotonic() - began


def _host(site: Site) -> str:
    [name] = site.until("select name from shiftboss_host")
    return str(name)


CASES = [
    Case("a worker is killed: signal and job in hand are known", 2.0, worker_killed),
    Case("something is asked of a program: the agent has begun", 1.0, asked),
    Case("the agent is killed: the next one tells of the host", 15.0, agent_killed),
]
LAST = Case("supervisord is killed: nothing of it runs any more", 5.0, supervisord_killed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    rounds = parser.parse_args().rounds
    took: dict[str, list[float]] = {case.what: [] for case in [*CASES, LAST]}
    for number in range(rounds):
        folder = Path(tempfile.mkdtemp(prefix="shiftboss-supervision-"))
        folder.chmod(0o755)
        os.environ["TEST_LOG"] = str(folder)
        site = Site(folder / "home")
        try:
            for case in [*CASES, LAST]:
                took[case.what].append(case.measure(site))
            print(f"round {number + 1} of {rounds}", flush=True)
        finally:
            site.tree.end()
            forget(folder / "home")
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{'':56} {'median':>8} {'worst':>8} {'promised':>9}")
    for case in [*CASES, LAST]:
        times = took[case.what]
        print(f"{case.what:56} {statistics.median(times):8.2f} {max(times):8.2f} {case.limit:9g}")
    raise SystemExit(0 if all(max(took[case.what]) <= case.limit for case in [*CASES, LAST]) else 1)


if __name__ == "__main__":
    main()
