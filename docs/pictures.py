"""Takes the pictures of docs/images: each page wide in light and dark, and as on a phone.

PYTHONPATH=. python -m pytest docs/pictures.py
"""

import json
import math
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import sync_playwright
from pytest_django.live_server_helper import LiveServer

from shiftboss import acts
from shiftboss.permissions import Person, Via
from shiftboss.queue.states import State
from shiftboss.queue.store import hosts, processes
from shiftboss.queue.store.hosts import Agent
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.statement import run
from tests.browser.conftest import CHROMIUM, FLAGS
from tests.console import scenes

IMAGES = Path(__file__).with_name("images")
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
HOW = {
    "light": {"viewport": WIDE},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "phone": {"viewport": PHONE},
}
MINUTES = """
insert into shiftboss_histogram (seconds, queue, task, at, completed, failed, enqueued, wait_buckets, wait_jobs,
    run_buckets, run_jobs)
values (%s, '', '', %s, %s, %s, %s, %s, %s, %s, %s)
"""


def an_evening() -> int:
    """Three workers and four queues, one of them without a worker, one paused; the id of a quarantined job."""
    by = Person.of_user(User.objects.get(username="kim"), via=Via.CONSOLE)
    mail = scenes.worker("mail", "default", host="web-1", pid=4711)
    reports = scenes.worker("reports", pool="reports", host="web-2", pid=812)
    for _ in range(60):
        scenes.completed_job(mail, queue="mail")
    for number in range(7):
        job_id = scenes.job(max_attempts=2, args=json.dumps({"args": [4700 + number], "kwargs": {"to": "kim"}}))
        for _ in range(2):
            scenes.failed(scenes.claimed(mail), mail, backoff_seconds=0)
            if scenes.state_of(job_id) is State.RETRYABLE:
                acts.expedite(job_id, by=by)
    for number in range(14):
        scenes.job(queue="mail", tags=("nightly",), priority=number % 3)
    for _ in range(5):
        scenes.job(queue="imports")
    scenes.job(queue="reports", due_at=datetime.now(UTC) + timedelta(hours=3))
    scenes.claimed(mail, queue="mail", limit=3)
    scenes.heartbeat(mail, in_use=3, lag_ms=3, memory_kb=187_000, cpu_ms=2)
    scenes.heartbeat(reports, in_use=0, lag_ms=2, memory_kb=164_000, cpu_ms=1)
    acts.pause("reports", by=by, reason="the warehouse is being moved")
    acts.limit("mail", by=by, limit=8, reason="the mail server is slow tonight")
    how_it_went()
    two_hosts(mail, reports)
    return job_id


def two_hosts(mail: int, reports: int) -> None:
    """The programs of both, one of which has died now and then, and two versions side by side."""
    now = time.time()
    versions = {mail: "2026.11.2", reports: "2026.11.2", scenes.worker("mail", host="web-2", pid=813): "2026.11.3"}
    with connection.cursor() as cursor:
        for worker, version in versions.items():
            cursor.execute("update shiftboss_worker set code_version = %s where id = %s", [version, worker])
    programs = {
        "web-1": [("listener", None, 801), ("maintainer", None, 802), ("web", None, 803)],
        "web-2": [
            ("listener", None, 641),
            ("worker-reports-1", "reports", 812),
            ("worker-default-2", "default", 813),
        ],
    }
    programs["web-1"] += [("worker-default-1", "default", 4711), ("worker-default-2", "default", None)]
    for name, found in programs.items():
        agent = Agent(
            name=name,
            hostname=name,
            pid=found[0][2] or 0,
            home="/srv/shiftboss",
            code_version="2026.11.3",
            lease_seconds=3600,
        )
        fence = run(hosts.take(agent, authority=scenes.SYSTEM)) or 0
        seen = [
            {
                "name": program,
                "state": "RUNNING" if pid else "STOPPED",
                "pid": pid,
                "launcher": pid and pid - 1,
                "since": int(now) - 5000 - 31 * place,
                "pool": pool,
                "memory_kb": pid and 46_000 + 23_400 * place,
                "cores": pid and (0.02, 0.31, 0.87, 0.04)[place % 4],
                "trouble": None,
            }
            for place, (program, pool, pid) in enumerate(found)
        ]
        run(hosts.beat(name, authority=scenes.SYSTEM, fence=fence, programs=seen, trouble=None))
        ends = [(22.0, 9), (21.6, 9), (6.5, 11), (1.5, None)] if name == "web-1" else []
        lives = [
            Life(
                program="worker-default-1",
                pool="default",
                launcher=4000 + place,
                started=now - 3600 * hours,
                ended=now - 3600 * hours + 90,
                uptime_seconds=90.0,
                ending="signal" if number else "code",
                signal=number,
                code=None if number else 0,
                asked=number is None,
            )
            for place, (hours, number) in enumerate(ends)
        ]
        run(processes.note(lives, authority=scenes.SYSTEM, host=name, fence=fence))


def how_it_went() -> None:
    """Three hours of histograms, as a maintainer writes them: a rise, and a bad quarter of an hour."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    with connection.cursor() as cursor:
        for ago in range(1, 181):
            at, bad = now - timedelta(minutes=ago), 60 < ago < 76
            jobs = round(900 + 400 * math.sin(ago / 25) + 60 * math.sin(ago)) // (3 if bad else 1)
            slow = 14 if bad else 0
            parts = [jobs * share // 100 for share in (50, 30, 14, 5, 1)]
            waits, runs = ([base + slow + step for step in (0, 4, 8, 12, 18)] for base in (14, 22))
            cursor.execute(
                MINUTES, [60, at, jobs, jobs // 12 if bad else jobs // 300, jobs, waits, parts, runs, parts]
            )


@pytest.mark.django_db(transaction=True)
def test_pictures(live_server: LiveServer) -> None:
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    client = Client()
    client.force_login(scenes.person("kim", role="admin"))
    job_id = an_evening()
    pages = {
        "overview": "/",
        "jobs": "/jobs/?state=any",
        "job": f"/jobs/{job_id}/",
        "quarantine": "/quarantine/",
        "queues": "/queues/",
        "workers": "/workers/",
        "hosts": "/hosts/",
        "audit": "/audit/",
    }
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for kind, how in HOW.items():
            context = browser.new_context(**how)
            context.add_cookies([cookie])
            page = context.new_page()
            for name, address in pages.items():
                scenes.sample_all()
                page.goto(f"{live_server.url}{address}")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=IMAGES / f"{name}-{kind}.png", full_page=kind != "phone")
        browser.close()
