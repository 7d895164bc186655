"""A queue with a limit of 3 and a sequential one, under kills, late ends and reaps: how many leases are valid?

    PYTHONPATH=. python -m bench.limits [--seconds 120] [--workers 8]

Asks the database every 20 ms. The server is the run's own.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from tests.postgres import own_server

PAUSE = 0.5


def main() -> None:
    """Print the figures; exit with 1 where a limit was exceeded or a line lost its order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--workers", type=int, default=8)
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
        from tests.faults.pressure import Pressure
        from tests.runtime.programs import House

        line = round(given.seconds * 3)
        with tempfile.TemporaryDirectory(prefix="shiftboss-limits-") as folder:
            house = House(Path(folder), make_conninfo(dbname=connection.settings_dict["NAME"], **parts))
            pressure = Pressure(house, workers=given.workers, line=line)
            try:
                figures = pressure.run(blows=round(given.seconds / PAUSE), pause=PAUSE)
            finally:
                house.end()
                connections.close_all()
    exact = figures.pop("order") == list(range(line))
    print(json.dumps({**figures, "line": line, "order_exact": exact}))
    kept = max(figures["valid_leases"]) == 3 and max(figures["valid_leases_in_line"]) == 1
    raise SystemExit(0 if kept and exact else 1)


if __name__ == "__main__":
    main()
