"""How long the console's pages take on a large record, and what twenty people who look at them cost.

    PYTHONPATH=. python -m bench.console [--finished 10000000] [--live 1000000] [--rounds 20] [--viewers 20]
        [--seconds 120]
    make bench-console

PostgreSQL, the maintainer and gunicorn are the run's own, on loopback. Server time is that of the whole request
inside gunicorn. The exit status is 1 where a page or a part of one takes more than it may: 150 ms (p95), 12
statements; or where the viewers cost PostgreSQL more than 5 % of one core: that is what the processes behind the
console's connections use while they look.
"""

import argparse
import math
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
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode

import psutil
import psycopg

from bench.seed import WORKERS, seed
from shiftboss.queue.store import histograms
from shiftboss.queue.store.samples import Part
from shiftboss.supervisor_conf.postgres import Postgres
from tests.faults.stage import migrate
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[1]
LIVES = 50
"""Of each program."""

MAY_MS, MAY_QUERIES, MAY_SHARE = 150.0, 12, 0.05
CONSOLE = "bench-console"
"""By this name PostgreSQL knows the console's connections, which a pool keeps."""
REVEALED = "jobs, by arguments"
"""Arguments are searched by those only who have let themselves be shown them."""
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
    "jobs, by arguments": "/jobs/?q=args.1%3Dcustomer-none",
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
    "hosts": "/hosts/",
    "one program": "/hosts/host-7/worker-pool-2-7/",
}
FORMS = {
    "form: cancel a job": "/jobs/{available}/cancellations/",
    "form: reveal arguments": "/jobs/{quarantined}/reveals/",
    "form: rerun many": "/jobs/many/reruns/?state=completed&job={completed}&job={deep}",
    "form: discard a reason": "/quarantine/discards/?reason=poison",
    "form: pause a queue": "/queues/pauses/?queue=queue-7",
    "form: empty a queue": "/queues/cancellations/?queue=queue-7",
    "form: drain a worker": "/workers/1/drains/",
}
"""What stands in a dialog; it is asked for as the page's script does."""

LOOKED_AT = ("overview", "jobs, running", "jobs, quarantined", "queues", "workers", "quarantine")


VERSION = re.compile(rb'"Shiftboss-Version": "(\w+)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the time and the statements that it took on the server, and what it said."""

    status: int
    ms: float
    queries: int
    body: bytes


class Browser:
    """One person's: a session, and the versions of the pages that it shows."""

    def __init__(self, address: str, session: str) -> None:
        self.address, self.session = address, session
        self.versions: dict[str, str] = {}

    def get(self, path: str, *, refresh: bool = False) -> Answer:
        """A page, or its part as the page's script asks for it."""
        asked = {"HX-Request": "true", "Shiftboss-Version": self.versions.get(path, "")} if refresh else {}
        answer, _ = self._ask(path, asked)
        if found := VERSION.search(answer.body):
            self.versions[path] = found[1].decode()
        return answer

    def post(self, path: str, **typed: str) -> Answer:
        """Send the form that stands at this address."""
        form, told = self._ask(path, {})
        cookie = re.search(r"csrftoken=(\w+)", told.get("Set-Cookie", ""))
        hidden = dict(re.findall(rb'<input type="hidden" name="(\w+)" value="([^"]*)"', form.body))
        if cookie is None or b"csrfmiddlewaretoken" not in hidden:
            raise SystemExit(f"no form at {path}: status {form.status}")
        fields = {name.decode(): value.decode() for name, value in hidden.items()} | typed
        answer, _ = self._ask(path, {}, cookies=f"; csrftoken={cookie[1]}", data=urlencode(fields).encode())
        return answer

    def _ask(
        self, path: str, headers: dict[str, str], *, cookies: str = "", data: bytes | None = None
    ) -> tuple[Answer, Message]:
        headers = {"Cookie": f"sessionid={self.session}{cookies}", **headers}
        request = urllib.request.Request(self.address + path, headers=headers, data=data)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                body, status, told = answer.read(), answer.status, answer.headers
        except HTTPError as error:
            body, status, told = error.read(), error.code, error.headers
        ms, queries = float(told.get("Bench-Ms", "nan")), int(told.get("Bench-Queries", "0"))
        return Answer(status, ms, queries, body), told


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
        subprocess.Popen(command, env=environment | named, stdout=log, stderr=log, cwd=ROOT)
        for command, named in (
            ([*web, "-b", f"127.0.0.1:{port}"], {"PGAPPNAME": CONSOLE}),
            ([*python, "django", "shiftboss_maintainer"], {}),
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
        row = connection.execute(
            "select count(*) from shiftboss_sample where part = any(%s)", [[str(part) for part in Part]]
        ).fetchone()
    return row[0] if row else 0


def make_up_for() -> None:
    """Write the histograms of the days before, which takes a maintainer half an hour: it rests in between."""
    from shiftboss.queue.authority import System
    from shiftboss.queue.store.statement import run

    histograms.EVERY_SECONDS = histograms.REST = 0.0
    while run(histograms.write(authority=System())):
        pass


def hosts_with_programs() -> None:
    """The agents of all hosts have told what runs there, and how each program ended before."""
    from shiftboss.queue.authority import System
    from shiftboss.queue.store import hosts, processes
    from shiftboss.queue.store.hosts import Agent
    from shiftboss.queue.store.processes import Life
    from shiftboss.queue.store.statement import run

    by_host: dict[str, list[int]] = {}
    for number in range(1, WORKERS + 1):
        by_host.setdefault(f"host-{number % 40}", []).append(number)
    now = time.time()
    for name, numbers in by_host.items():
        agent = Agent(name=name, hostname=name, pid=1, home="/srv", code_version="v1", lease_seconds=86_400.0)
        fence = run(hosts.take(agent, authority=System())) or 0
        programs = [
            {"name": f"worker-pool-{one % 5}-{one}", "pool": f"pool-{one % 5}", "state": "RUNNING"}
            | {"pid": 1000 + one, "launcher": 1, "since": now - 600, "memory_kb": 90_000, "trouble": None}
            for one in numbers
        ]
        beat = hosts.beat(name, authority=System(), fence=fence, programs=programs, trouble=None)
        assert run(beat), name
        for program in programs:
            lives = [
                Life(
                    program=str(program["name"]),
                    pool=str(program["pool"]),
                    launcher=at,
                    started=now - 280 * at - 300,
                    ended=now - 280 * at - 20,
                    ending="code",
                    code=at % 2,
                    uptime_seconds=280.0,
                    log="working\n" * 200,
                )
                for at in range(LIVES, 0, -1)
            ]
            run(processes.note(lives, authority=System(), host=name, fence=fence))


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


def of_the_console(dsn: str) -> float:
    """What the processes behind the console's connections have used."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select pid from pg_stat_activity where application_name = %s", [CONSOLE])
        used = [psutil.Process(pid).cpu_times() for (pid,) in rows]
    return float(sum(times.user + times.system for times in used))


@contextmanager
def watched(address: str, session: str, viewers: int) -> Iterator[list[Answer]]:
    """Within the block so many people look, each at a page that refreshes every two seconds; their answers."""
    answers: list[Answer] = []
    over = threading.Event()

    def one(number: int) -> None:
        browser, path = Browser(address, session), PAGES[LOOKED_AT[number % len(LOOKED_AT)]]
        browser.get(path)
        while not over.wait(2.0):  # the pace at which a page asks again
            answers.append(browser.get(path, refresh=True))

    people = [threading.Thread(target=one, args=(number,)) for number in range(viewers)]
    for person in people:
        person.start()
        time.sleep(2.0 / viewers)  # a pace, not a wait: they did not all come at one moment
    yield answers
    over.set()
    for person in people:
        person.join()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--live", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long the viewers look")
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
    dsn = server.url()
    migrate(dsn)
    seed(dsn, finished=given.finished, live=given.live, tell=lambda line: print(line, flush=True))
    session = session_of_an_admin(dsn)
    make_up_for()
    hosts_with_programs()
    with psycopg.connect(dsn) as connection:
        ids = {"deep": given.finished // 3, "completed": given.finished // 2}
        for state in ("quarantined", "available"):
            row = connection.execute("select max(id) from shiftboss_job where state = %s", [state]).fetchone()
            ids[state] = row[0] if row else 0
    with served(dsn, folder) as address:
        browser = Browser(address, session)
        wait_for(lambda: _looked_at(dsn) >= len(Part), seconds=120, every=0.5)
        kept = pages(browser, ids, given.rounds)
        return viewers(address, session, dsn, given) and kept


def pages(browser: Browser, ids: dict[str, int], rounds: int) -> bool:
    """Print what each page, each part that is refreshed and each form takes; whether all may take that."""
    print(f"{'':32} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8} {'queries':>8} {'kB':>8}")
    kept = True
    for name, path in PAGES.items():
        path = path.format(**ids)
        if name == REVEALED:
            browser.post(f"/jobs/reveals/{path.partition('jobs/')[2]}", reason="to be measured")
            if b"Reveal arguments" in browser.get(path).body:
                raise SystemExit("arguments were not revealed, so they are not searched")
        browser.get(path)
        kept &= line(name, [browser.get(path) for _ in range(rounds)])
        kept &= line("  refreshed", [browser.get(path, refresh=True) for _ in range(rounds)])
    for name, path in FORMS.items():
        path = path.format(**ids)
        browser.get(path, refresh=True)
        kept &= line(name, [browser.get(path, refresh=True) for _ in range(rounds)])
    return kept


def line(name: str, answers: list[Answer]) -> bool:
    """Print one line with its verdict."""
    times, statuses = sorted(one.ms for one in answers), Counter(one.status for one in answers)
    p95, queries = times[math.ceil(0.95 * len(times)) - 1], max(one.queries for one in answers)
    wrong = [f"status {status}" for status in sorted(statuses) if status not in (200, 204)]
    wrong += ["too slow"] if not p95 <= MAY_MS else []
    wrong += ["too many queries"] if queries > MAY_QUERIES else []
    figures = f"{statistics.median(times):8.1f} {p95:8.1f} {times[-1]:8.1f} {queries:8}"
    size = max(len(one.body) for one in answers) / 1000
    unchanged = f"  unchanged: {statuses[204]} of {len(answers)}" if statuses[204] else ""
    print(f"{name:32} {figures} {size:8.1f}  {', '.join(wrong) or 'well'}{unchanged}", flush=True)
    return not wrong


def viewers(address: str, session: str, dsn: str, given: argparse.Namespace) -> bool:
    """Print what those who look cost PostgreSQL; whether they may cost that."""
    with watched(address, session, given.viewers) as answers:
        before, began = of_the_console(dsn), time.monotonic()
        time.sleep(given.seconds)  # the length of the measurement
        cost = (of_the_console(dsn) - before) / (time.monotonic() - began)
    verdict = "well" if cost <= MAY_SHARE else "too much"
    print(f"{given.viewers} viewers cost PostgreSQL {cost:.1%} of one core: {verdict}")
    return line(f"refreshes of {given.viewers} viewers", answers) and cost <= MAY_SHARE


if __name__ == "__main__":
    main()
