"""How long the console's pages take on a large record, and what twenty people who look at them cost.

    PYTHONPATH=. python -m bench.console [--finished 10000000] [--live 1000000] [--rounds 20] [--viewers 20]
    make bench-console

PostgreSQL, the maintainer and gunicorn are the run's own, on loopback. Server time is that of the whole request
inside gunicorn. The exit status is 1 where a page takes more than it may: 150 ms (p95), 12 statements; or where
the viewers cost PostgreSQL more than 5 % of one core.
"""

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import psutil
import psycopg

from bench.seed import seed
from shiftboss.queue.store.samples import Part
from shiftboss.supervisor_conf.postgres import Postgres
from tests.faults.stage import migrate
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[1]
MAY_MS, MAY_QUERIES, MAY_SHARE = 150.0, 12, 0.05
OPTIONS = ("-c", "fsync=off", "-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB", "-c", "max_connections=60")

PAGES = {
    "overview": "/",
    "overview, 7 days": "/?span=7d",
    "jobs, running": "/jobs/",
    "jobs, completed": "/jobs/?state=completed",
    "jobs, completed, deep": "/jobs/?state=completed&before={deep}",
    "jobs, available": "/jobs/?state=available",
    "jobs, quarantined": "/jobs/?state=quarantined",
    "jobs, one queue": "/jobs/?state=completed&queue=queue-7",
    "jobs, every state": "/jobs/?q=queue:queue-7",
    "jobs, worst filter": "/jobs/?q=error:nothing-has-this",
    "jobs, by arguments": "/jobs/?q=args.args.1%3Dcustomer-none",
    "one job, completed": "/jobs/{completed}/",
    "one job, quarantined": "/jobs/{quarantined}/",
    "one job, available": "/jobs/{available}/",
    "quarantine": "/quarantine/",
    "queues": "/queues/",
    "one queue": "/queues/one/?queue=queue-7",
    "workers": "/workers/",
    "one worker": "/workers/1/",
    "backfills": "/backfills/",
    "audit": "/audit/",
}
LOOKED_AT = ("overview", "jobs, running", "jobs, quarantined", "queues", "workers", "quarantine")


class Browser:
    """One person's: a session, and the versions of the pages that it shows."""

    def __init__(self, address: str, session: str) -> None:
        self.address, self.session = address, session
        self.versions: dict[str, str] = {}

    def get(self, path: str, *, refresh: bool = False) -> tuple[int, float, int, int]:
        """Status, server time in ms, statements, bytes. A refresh is as the page's script asks for it."""
        headers = {"Cookie": f"sessionid={self.session}"}
        if refresh:
            headers |= {"HX-Request": "true", "Shiftboss-Version": self.versions.get(path, "")}
        request = urllib.request.Request(self.address + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                body = answer.read()
                status, told = answer.status, answer.headers
        except HTTPError as error:
            body, status, told = error.read(), error.code, error.headers
        if found := re.search(rb'data-version="(\w+)"', body):
            self.versions[path] = found[1].decode()
        return status, float(told.get("Bench-Ms", "nan")), int(told.get("Bench-Queries", "0")), len(body)


@contextmanager
def served(dsn: str, folder: Path) -> Iterator[str]:
    """The maintainer and the console; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATABASE_URL": dsn,
        "DJANGO_SETTINGS_MODULE": "bench.console_settings",
        "PYTHONPATH": str(ROOT),
        "SHIFTBOSS_WEB_POOL": "4",
    }
    python = [sys.executable, "-P", "-m"]
    web = [*python, "gunicorn", "shiftboss.site.wsgi:application", "-k", "gthread", "--threads", "4"]
    log = (folder / "programs.log").open("w")
    programs = [
        subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=ROOT)
        for command in (
            [*web, "-b", f"127.0.0.1:{port}"],
            [*python, "django", "shiftboss_maintainer"],
        )
    ]
    try:
        wait_for(lambda: _listens(port), seconds=60)
        yield f"http://127.0.0.1:{port}"
    finally:
        for program in programs:
            program.terminate()
        for program in programs:
            program.wait(20)
        log.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _looked_at(dsn: str) -> int:
    """At how many parts of the whole the maintainer has looked."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select count(*) from shiftboss_sample").fetchone()
    return row[0] if row else 0


def session_of_an_admin(dsn: str) -> str:
    """The key of a login with every permission."""
    os.environ |= {"DATABASE_URL": dsn, "DJANGO_SETTINGS_MODULE": "bench.console_settings"}
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser("bench", password="x"))
    return client.cookies["sessionid"].value


def processor_seconds(postmaster: int) -> float:
    """What PostgreSQL's processes that live now have used, and those that have ended under the first."""
    total = 0.0
    for process in (psutil.Process(postmaster), *psutil.Process(postmaster).children(recursive=True)):
        times = process.cpu_times()
        total += (
            times.user + times.system + getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
        )
    return total


def look(address: str, session: str, viewers: int, seconds: float) -> list[float]:
    """So many people, each with a page that refreshes every two seconds; the server times in ms."""
    took: list[float] = []
    end = time.monotonic() + seconds

    def one(number: int) -> None:
        browser, path = Browser(address, session), PAGES[LOOKED_AT[number % len(LOOKED_AT)]]
        browser.get(path)
        while time.monotonic() < end:
            took.append(browser.get(path, refresh=True)[1])
            time.sleep(2.0)  # the pace at which a page asks again

    people = [threading.Thread(target=one, args=(number,)) for number in range(viewers)]
    for person in people:
        person.start()
        time.sleep(2.0 / viewers)  # they did not all come at one moment
    for person in people:
        person.join()
    return took


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--live", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the viewers look")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shiftboss-console-") as folder:
        server = Postgres.of(Path(folder))
        server.initialise()
        with server.serving(log=Path(folder) / "postgres.log", options=OPTIONS):
            server.create_database()
            kept = measure(server, Path(folder), given)
    raise SystemExit(0 if kept else 1)


def measure(server: Postgres, folder: Path, given: argparse.Namespace) -> bool:
    """Whether all of it is within what it may take."""
    dsn, postmaster = server.url(), server.pid()
    assert postmaster is not None
    migrate(dsn)
    seed(dsn, finished=given.finished, live=given.live, tell=lambda line: print(line, flush=True))
    session = session_of_an_admin(dsn)
    with psycopg.connect(dsn) as connection:
        ids = {"deep": given.finished // 3, "completed": given.finished // 2}
        for state in ("quarantined", "available"):
            row = connection.execute("select max(id) from shiftboss_job where state = %s", [state]).fetchone()
            ids[state] = row[0] if row else 0
    kept = True
    with served(dsn, folder) as address:
        browser = Browser(address, session)
        wait_for(lambda: _looked_at(dsn) >= len(Part), seconds=120, every=0.5)
        print(f"{'':28} {'p50 ms':>8} {'p95 ms':>8} {'refresh':>8} {'queries':>8} {'kB':>8}")
        for name, path in PAGES.items():
            path = path.format(**ids)
            browser.get(path)
            whole = [browser.get(path) for _ in range(given.rounds)]
            parts = [browser.get(path, refresh=True) for _ in range(given.rounds)]
            times, refreshed = sorted(one[1] for one in whole), sorted(one[1] for one in parts)
            p95, p95_refreshed = (some[int(0.95 * (len(some) - 1))] for some in (times, refreshed))
            queries = max(one[2] for one in (*whole, *parts))
            fine = (
                {one[0] for one in whole} == {200} and max(p95, p95_refreshed) <= MAY_MS and queries <= MAY_QUERIES
            )
            kept &= fine
            word = "" if fine else "  too much" if whole[0][0] == 200 else f"  status {whole[0][0]}"
            figures = f"{statistics.median(times):8.1f} {p95:8.1f} {p95_refreshed:8.1f} {queries:8}"
            print(f"{name:28} {figures} {whole[0][3] / 1000:8.1f}{word}", flush=True)
        shares = []
        for viewers in (0, given.viewers):
            before, began = processor_seconds(postmaster), time.monotonic()
            if viewers:
                look(address, session, viewers, given.seconds)
            else:
                time.sleep(given.seconds)  # what it costs when nobody looks, over the same time
            shares.append((processor_seconds(postmaster) - before) / (time.monotonic() - began))
        cost = shares[1] - shares[0]
        kept &= cost <= MAY_SHARE
        print(f"PostgreSQL, of one core: {shares[0]:.1%} alone, {shares[1]:.1%} with {given.viewers} viewers")
    return kept


if __name__ == "__main__":
    main()
