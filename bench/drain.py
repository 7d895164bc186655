"""Drains many no-op jobs with two workers: Shiftboss and PgQueuer in turn in one run, bare SQL beside them.

    PYTHONPATH=.:QBENCH_FOLDER python -m bench.drain [--jobs 200000] [--rounds 3] [--workers 2]

QBENCH_FOLDER is the folder of the side-by-side harness `qbench`; QBENCH_HOME says where it may write. Absolute
figures depend on the machine and its neighbours; the ratio of one run is what counts.
"""

import argparse
import json
import statistics
from typing import Any

import psycopg
from qbench import adapters, limit, scenarios, server


def drain(peer: type, *, jobs: int, workers: int) -> dict[str, Any]:
    """One drain; rates count from when the last worker has joined to the last completion in the database."""
    return dict(scenarios.drain(peer, workers=workers, jobs=jobs, cap=300))


def rows_agree(jobs: int) -> bool:
    """Whether the record holds exactly the jobs, each completed once, and nothing is left."""
    with psycopg.connect(server.dsn("qb_shiftboss")) as connection:
        row = connection.execute(
            "select (select count(*) from shiftboss_job), count(*), count(distinct id), min(state), max(state), "
            "max(fence) from shiftboss_finished"
        ).fetchone()
    return row == (0, jobs, jobs, "completed", "completed", 1)


def main() -> None:
    """Print each run and the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peers", default="bench.peer:Peer,pgqueuer")
    given = parser.parse_args()
    server.start()
    rates: dict[str, list[float]] = {}
    for round_number in range(given.rounds):
        for name in given.peers.split(","):
            peer = adapters.load(name)
            figures = drain(peer, jobs=given.jobs, workers=given.workers)
            if peer.name == "shiftboss":
                figures["rows_agree"] = rows_agree(given.jobs)
            print(round_number + 1, peer.name, json.dumps(figures), flush=True)
            if "error" in figures:
                raise SystemExit(f"{peer.name} did not run")
            rates.setdefault(peer.name, []).append(figures["jobs_per_s"])
    dsn = server.fresh_database("qb_limit")
    with psycopg.connect(dsn) as connection:
        connection.execute(limit.SCHEMA)
    bare = limit.drain(dsn, "two", 100, given.workers, "on")
    print("bare SQL, claim and finish as two transactions, batches of 100:", json.dumps(bare))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print("medians, jobs/s:", json.dumps(medians))
    if {"shiftboss", "pgqueuer"} <= set(medians):
        print(f"shiftboss / pgqueuer = {medians['shiftboss'] / medians['pgqueuer']:.2f}")


if __name__ == "__main__":
    main()
