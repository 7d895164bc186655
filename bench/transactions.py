"""Transactional jobs under kills: effects in the user's table, completions in the record and jobs are as many.

    PYTHONPATH=. python -m bench.transactions [--jobs 20000] [--scale 1.0] [--workers 3]

Each job writes a row of the user's own and completes itself in the same transaction. Keepers, executors and the
PostgreSQL backends of handlers are killed, most of them between BEGIN and COMMIT, others between the commit and
its report: a handler says where it stands and waits there. The server is the run's own.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.postgres import own_server

BLOWS = {
    ("backend", "open"): 110,
    ("executor", "open"): 70,
    ("executor", "committed"): 60,
    ("keeper", "open"): 70,
    ("keeper", "committed"): 50,
}
"""How many kills, of whom, and where; a few more than wanted, since some are missed."""


def storm(dsn: str, *, jobs: int, scale: float, workers: int, seconds: float) -> dict[str, Any]:
    """Run it all; the figures."""
    from tests.faults.storm import Blow, Storm
    from tests.runtime.programs import House

    blows = [Blow(*which) for which, number in BLOWS.items() for _ in range(max(1, round(number * scale)))]
    with tempfile.TemporaryDirectory(prefix="shiftboss-storm-") as folder:
        house = House(Path(folder), dsn)
        under = Storm(house, jobs=jobs, blows=blows, workers=workers)
        began = time.monotonic()
        try:
            under.run(seconds=seconds)
        finally:
            house.end()
        took = round(time.monotonic() - began)
        return {"seconds": took, "kills": under.kills(), "missed": under.missed, **under.account()}


def main() -> None:
    """Print the figures; exit with 1 where they do not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of kills")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1800, help="after which the run is given up")
    given = parser.parse_args()
    with own_server() as url:
        os.environ["DATABASE_URL"] = url
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
        import django
        from django.core.management import call_command
        from django.db import connection, connections
        from psycopg.conninfo import make_conninfo

        django.setup()
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"create database {connection.settings_dict['NAME']}")
        call_command("migrate", verbosity=0)
        parts = {
            name: connection.settings_dict[name.upper()] or None for name in ("user", "password", "host", "port")
        }
        dsn = make_conninfo(dbname=connection.settings_dict["NAME"], **parts)
        figures = storm(dsn, jobs=given.jobs, scale=given.scale, workers=given.workers, seconds=given.seconds)
        connections.close_all()
    print(json.dumps(figures))
    same = {figures[name] for name in ("effects", "numbers", "completions", "agreeing")} == {given.jobs}
    raise SystemExit(0 if same and not figures["live"] else 1)


if __name__ == "__main__":
    main()
