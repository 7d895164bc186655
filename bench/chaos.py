"""A day of chaos in half an hour: jobs of all kinds, faults of all kinds at random, and then an audit.

    PYTHONPATH=. python -m bench.chaos [--minutes 30] [--jobs 200000] [--workers 4] [--seed N] [--gap 4]

Workers, PostgreSQL and the network between them are the run's own. After the faults all that is left may drain;
then the auditor reads what handlers wrote down themselves and what the record holds. Exit status 1: it found
something.
"""

import argparse
import logging
import os
import random
import shutil
import tempfile
from pathlib import Path

from tests.faults.chaos.day import Day, stage_of
from tests.faults.chaos.faults import FAULTS

SHOWN = 40


def main() -> None:
    """Print how it goes, the tables, and the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--gap", type=float, default=4.0, help="seconds between two faults, in the mean")
    parser.add_argument("--only", default=",".join(FAULTS), help="of " + ", ".join(FAULTS))
    parser.add_argument(
        "--keep", type=Path, help="a folder to which all logs are copied where something was found"
    )
    given = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # what it says of broken connections is no news here
    print(f"seed {given.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="shiftboss-chaos-") as folder,
        stage_of(Path(folder) / "house") as stage,
    ):
        day = Day(
            stage,
            jobs=given.jobs,
            seconds=given.minutes * 60,
            seed=given.seed,
            workers=given.workers,
            gap=given.gap,
            faults=given.only.split(","),
            tell=lambda line: print(line, flush=True),
        )
        findings = day.run(drain_seconds=max(300, given.minutes * 60))
        print(*day.table(), sep="\n")
        if findings and given.keep:
            shutil.copytree(folder, given.keep, ignore=shutil.ignore_patterns("run"))
    print(f"findings: {len(findings)} (seed {given.seed})", *findings[:SHOWN], sep="\n")
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
