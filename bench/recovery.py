"""How long it takes until work goes on after something broke.

    PYTHONPATH=. python -m bench.recovery [--rounds 3] [--only executor,database]

Workers and PostgreSQL are real and the run's own. A table gives the median and the worst of the rounds, in seconds
beside what is promised; the exit status is 1 where a promise was not kept. A round of `worker` takes a lease.
"""

import argparse
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.faults.stage import Stage
from tests.runtime.programs import Program
from tests.waiting import wait_for

PATIENCE = 120.0


class Case(NamedTuple):
    """What breaks, what is promised, and how it is measured."""

    what: str
    limit: float
    measure: Callable[[Stage], float]
    settings: dict[str, float]


def holder(stage: Stage, job: int) -> Program:
    """The worker that runs it."""
    pid = stage.ask(
        "select w.pid from shiftboss_worker w join shiftboss_job j on j.worker_id = w.id where j.id = %s", job
    )
    return next(worker for worker in stage.workers if worker.pid == pid)


def worker_killed(stage: Stage) -> float:
    """From the kill of a keeper until its job runs again elsewhere."""
    with stage.long_run() as job:
        victim = holder(stage, job)
        # The worst moment is right after a renewal.
        renewed = stage.ask("select lease_expires_at from shiftboss_job where id = %s", job)
        wait_for(
            lambda: stage.ask("select lease_expires_at from shiftboss_job where id = %s", job) != renewed,
            seconds=PATIENCE,
        )
        began = time.monotonic()
        victim.kill(signal.SIGKILL)
        stage.begun(job, 2)
        took = time.monotonic() - began
    stage.workers.remove(victim)
    ready = stage.hire()
    wait_for(lambda: ready.says("executor.ready"), seconds=PATIENCE)
    return took


def executor_killed(stage: Stage) -> float:
    """From the death of an executor until its job runs again."""
    with stage.long_run() as job:
        [executor] = holder(stage, job).executors()
        began = time.monotonic()
        executor.kill()
        stage.begun(job, 2)
        return time.monotonic() - began


def database_back(stage: Stage) -> float:
    """From when PostgreSQL takes connections again until the first claim, after it was away for 10 s."""
    with stage.long_run():
        stage.end_server(signal.SIGKILL)
        time.sleep(10.0)  # how long it is away is what is measured under
        stage.serve()
        began = time.monotonic()
        stage.begun(stage.enqueue(0), 1)
        return time.monotonic() - began


def half_open(name: str, limit: float, settings: dict[str, float]) -> Case:
    """From when nothing comes back any more on these connections of all workers until they have been given up."""

    def measure(stage: Stage) -> float:
        with stage.long_run():
            links = stage.road.open_links(f"shiftboss {name}")
            began = time.monotonic()
            stage.road.half_open(f"shiftboss {name}")
            wait_for(lambda: not links & stage.road.open_links(), seconds=PATIENCE)
            return time.monotonic() - began

    what = f"half-open {name} connection, lease {settings['LEASE_SECONDS']:g} s: given up"
    return Case(what, limit, measure, settings)


DEFAULTS = {"LEASE_SECONDS": 30, "HEARTBEAT_SECONDS": 5}
SHORT = {"LEASE_SECONDS": 5, "HEARTBEAT_SECONDS": 1}
CASES = {
    "worker": [
        Case("worker killed, lease 30 s: its job runs again", 35, worker_killed, DEFAULTS),
        Case("worker killed, lease 5 s: its job runs again", 8, worker_killed, SHORT),
    ],
    "executor": [Case("executor killed: its job runs again", 1, executor_killed, DEFAULTS)],
    "database": [Case("PostgreSQL back after 10 s: first claim", 5, database_back, DEFAULTS)],
    "half_open": [
        *(half_open(name, 15, DEFAULTS) for name in ("heartbeat", "work", "listen")),
        *(half_open(name, 2.5, SHORT) for name in ("heartbeat", "work", "listen")),
    ],
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CASES), help="of " + ", ".join(CASES))
    given = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    kept = True
    cases = [case for name in given.only.split(",") for case in CASES[name]]
    print(f"{'':60} {'median':>8} {'worst':>8} {'promised':>9}")
    for settings in (DEFAULTS, SHORT):
        mine = [case for case in cases if case.settings == settings]
        if not mine:
            continue
        with (
            tempfile.TemporaryDirectory(prefix="shiftboss-recovery-") as folder,
            Stage.set(Path(folder) / "house", **settings) as stage,
        ):
            for case in mine:
                took = [case.measure(stage) for _ in range(given.rounds)]
                kept &= max(took) <= case.limit
                print(
                    f"{case.what:60} {statistics.median(took):8.2f} {max(took):8.2f} {case.limit:9g}", flush=True
                )
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()
