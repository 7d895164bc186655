"""Cancels a million jobs by one act while two workers run, and looks at what the claims had to wait.

    PYTHONPATH=.:QBENCH_FOLDER python -m bench.sweep [--jobs 1000000] [--workers 2]

The server is one of the run's own with its defaults (`fsync` on). The times are the server's own, by
pg_stat_statements.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from shiftboss.supervisor_conf.postgres import Postgres

OPTIONS = ["-c", "shared_buffers=1GB", "-c", "shared_preload_libraries=pg_stat_statements"]
CHUNK = 50_000


def enqueue(jobs: int) -> float:
    """Put the jobs into the queue; jobs a second."""
    from bench.naps import nap
    from shiftboss import enqueue_many

    began = time.monotonic()
    for start in range(0, jobs, CHUNK):
        enqueue_many(nap.with_arguments(n) for n in range(start, min(jobs, start + CHUNK)))
    return jobs / (time.monotonic() - began)


def sweep() -> dict[str, Any]:
    """Cancel all that waits or runs; how long it took and what it says it did."""
    from shiftboss.acts import cancel_matching
    from shiftboss.permissions import Person
    from shiftboss.queue.states import LIVE, State
    from shiftboss.queue.store.operate import Matching

    began = time.monotonic()
    which = Matching(states=LIVE - {State.QUARANTINED}, queue="default")
    for swept in cancel_matching(which, by=Person.of_shell(), reason="benchmark"):
        print(f"\r{swept.ended:,} ended, {swept.requested} asked to end", end="", file=sys.stderr)
    print(file=sys.stderr)
    seconds = time.monotonic() - began
    return {"seconds": round(seconds, 1), "ended": swept.ended, "requested": swept.requested, "left": swept.left}


def ask(question: str) -> list[Any]:
    """The rows of a question."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchall() if cursor.description else []


def measure(jobs: int, workers: int, log: Path) -> dict[str, Any]:
    """One run on an empty, migrated database."""
    ask("create extension pg_stat_statements")
    figures: dict[str, Any] = {"enqueue_many_jobs_per_s": round(enqueue(jobs))}
    command = [sys.executable, "-P", "-m", "django", "shiftboss_worker"]
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(workers)
    ]
    try:
        while ask("select count(*) from shiftboss_finished")[0][0] < 100:
            time.sleep(0.1)
        ask("select pg_stat_statements_reset()")
        figures |= sweep()
        claims = ask(
            "select sum(calls), max(max_exec_time), sum(total_exec_time) / sum(calls)"
            " from pg_stat_statements where query like '%fence = j.fence +%'"
        )
    finally:
        for worker in running:
            worker.send_signal(signal.SIGTERM)
        for worker in running:
            worker.wait(60)
    [(calls, slowest, mean)] = claims
    figures |= {"claims": int(calls), "slowest_claim_ms": round(slowest, 1), "mean_claim_ms": round(mean, 2)}
    [(audited,)] = ask("select sum(jobs) from shiftboss_audit")
    states = dict(ask("select state, count(*) from shiftboss_finished group by state"))
    [(live,)] = ask("select count(*) from shiftboss_job")
    figures |= {"audited": audited, "states": states, "live": live}
    figures["audit_agrees"] = audited == figures["ended"] + figures["requested"]
    figures["none_lost"] = sum(states.values()) + live == jobs
    figures["deadlocks"] = log.read_text(errors="replace").count("deadlock detected")
    return figures


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shiftboss-bench-") as folder:
        Path(folder).chmod(0o711)
        server = Postgres.of(Path(folder))
        server.initialise()
        log = Path(folder) / "postgres.log"
        with server.serving(log=log, options=OPTIONS):
            server.create_database()
            os.environ |= {"QBENCH_DSN": server.url(), "DJANGO_SETTINGS_MODULE": "bench.settings"}
            import django
            from django.core.management import call_command
            from django.db import connections

            django.setup()
            call_command("migrate", verbosity=0)
            print(json.dumps(measure(given.jobs, given.workers, log), indent=2))
            connections.close_all()


if __name__ == "__main__":
    main()
