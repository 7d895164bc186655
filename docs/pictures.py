"""Takes the pictures of docs/images: each page wide in light and dark, and as on a phone.

PYTHONPATH=. python -m pytest docs/pictures.py
"""

import json
import math
import os
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
    return job_id


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
                page.goto(f"{live_server.url}{address}")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=IMAGES / f"{name}-{kind}.png", full_page=kind != "phone")
        browser.close()
