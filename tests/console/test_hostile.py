"""Foreign text in every field: every page that can be reached from the first one shows it as text, and every link
leads to what it names, also under a prefix."""

import json
import re
from collections import Counter
from html import unescape
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import resolve

from shiftboss import acts
from shiftboss.permissions import Act
from shiftboss.queue.store import backfill, commands, processes, queues
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.console import scenes
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3")]

MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
UNSEEN = "\N{RIGHT-TO-LEFT OVERRIDE}gpj\N{ZERO WIDTH SPACE}\x1b[31m\x9b1m"
HOSTILE = f"{MARKUP}{UNSEEN}\N{SPOUTING WHALE}{{{{ 7|add:7 }}}}"
QUEUES = ["foo/bar.baz", "a b", "queue+name", "a%2Fb", "..", "#x?y=1&z", "Default", "default", MARKUP]
DIGITS = ["9007199254740993", "1970670598291982290", "-9223372036854775808", "0.1000"]

RAW = re.compile("[\u200b\u202a-\u202e\u2066-\u2069\x00-\x08\x0e-\x1f\x7f-\x9f]")
NOT_FOLLOWED = ("/logout/", "/edits/")
"""A form alone, and a page that leads on to another until the arguments are revealed."""

VALUES = re.compile(r'\s(?:value|data-key)="[^"]*"')
"""What a form sends is the text itself, and is not shown."""

OF_EACH = 3
"""Pages of one kind that are looked at."""


def hostile_record() -> int:
    """A job that has it everywhere; its id."""
    worker = scenes.worker(*QUEUES, host=MARKUP, pool=HOSTILE)
    for queue in QUEUES:
        scenes.job(queue=queue)
    acts.pause("foo/bar.baz", by=person(HOSTILE), reason=HOSTILE)
    acts.limit(MARKUP, by=person(HOSTILE), limit=3, reason=HOSTILE)
    args = f'{{"args": [{json.dumps(HOSTILE)}, {", ".join(DIGITS)}], "kwargs": {{{json.dumps(HOSTILE)}: 1}}}}'
    job_id = scenes.job(HOSTILE, queue=MARKUP, args=args, max_attempts=1, tags=[MARKUP])
    evidence = json.dumps({"output": HOSTILE + "y" * 10_000_000, HOSTILE: HOSTILE, "host": HOSTILE})
    held = scenes.claimed(worker, queue=MARKUP, tasks=[HOSTILE])
    scenes.failed(
        held, worker, type=HOSTILE, message=HOSTILE, traceback=HOSTILE + "x" * 10_000_000, evidence=evidence
    )
    acts.on_many(Act.QUARANTINE, [scenes.job(HOSTILE, queue="a b")], by=person(HOSTILE), reason=HOSTILE)
    new = NewBackfill(
        name=MARKUP, task=HOSTILE, queue="a b", priority=0, concurrency=1, failure_limit=1, loss_limit=3
    )
    run(backfill.add(run(backfill.begin(new, authority=scenes.SYSTEM)), [("a", "{}")], authority=scenes.SYSTEM))
    hostile_host()
    return job_id


def hostile_host() -> None:
    """A host with it in its name, and in the names, pools, troubles and last lines of its programs."""
    seen = [{"name": name, "pool": HOSTILE, "trouble": HOSTILE} for name in (MARKUP, HOSTILE, "..", "a/b")]
    fence = making.a_host(MARKUP, programs=seen, lease_seconds=3600.0)
    life = Life(program=MARKUP, launcher=1, started=1.0, ended=2.0, ending="code", code=1, log=HOSTILE * 1000)
    assert run(processes.note([life], authority=scenes.SYSTEM, host=MARKUP, fence=fence))
    acts.tail_program(MARKUP, MARKUP, by=person(HOSTILE))
    asked = acts.restart_program(MARKUP, MARKUP, by=person(HOSTILE), reason=HOSTILE).command_id
    assert asked
    run(commands.claim(authority=scenes.SYSTEM, host=MARKUP, fence=fence))
    run(commands.end(asked, authority=scenes.SYSTEM, fence=fence, failed=True, result={"error": HOSTILE}))


def is_harmless(page: str, where: str) -> None:
    """No foreign character is markup, and none is unseen or turns the reading direction."""
    body = page.partition("<body")[2]
    assert "<script" not in body, where
    assert "<img" not in body, where
    assert "}14" not in body, where
    assert not RAW.search(VALUES.sub("", page)), where
    assert len(page) < 2_000_000, where


def linked(page: str, where: str) -> list[str]:
    """Where a page leads, as whole addresses of this site."""
    found = re.findall(r'\s(?:href|action|formaction|hx-get)="([^"]*)"', page)
    return [urljoin(where, unescape(one)).partition("#")[0] for one in found]


@override_settings(ROOT_URLCONF="tests.console.prefixed_urls")
def test_every_page_that_can_be_reached_is_there_and_shows_foreign_text_as_text(
    client: Client, operator: User
) -> None:
    client.force_login(operator)
    hostile = hostile_record()
    client.post(f"/ops/queue/jobs/{hostile}/reveals/", {"reason": "because"})
    for shown in ("", "edits/"):
        page = unescape(client.get(f"/ops/queue/jobs/{hostile}/{shown}").content.decode())
        assert all(re.search(rf"(?<![\d.]){re.escape(digits)}(?![\d.])", page) for digits in DIGITS)
    await_ = [f"/ops/queue/jobs/{hostile}/", "/ops/queue/"]
    met, looked = set(await_), Counter[tuple[str, ...]]()
    with scenes.maintained():
        while await_:
            address = await_.pop(0)
            kind = (resolve(urlsplit(address).path).url_name or "", *sorted(parse_qs(urlsplit(address).query)))
            looked[kind] += 1
            if looked[kind] > OF_EACH:
                continue
            answer = client.get(address)
            assert answer.status_code == 200, address
            page = answer.content.decode()
            is_harmless(page, address)
            for link in linked(page, address):
                assert link.startswith(("/ops/queue/", "/static/")), (address, link)
                assert "//" not in link, (address, link)
                if link not in met and link.startswith("/ops/queue/") and not link.endswith(NOT_FOLLOWED):
                    met.add(link)
                    await_.append(link)
    kinds = {name for name, *_ in looked}
    assert {"overview", "jobs", "job", "queue", "quarantine", "workers", "worker", "backfill", "audit"} <= kinds
    assert {"hosts", "program", "command", "log", "program-restarts", "pool-scales"} <= kinds


def test_each_name_of_a_queue_leads_to_that_queue_alone(browser: Client) -> None:
    ids = {scenes.job(queue=queue): queue for queue in QUEUES}
    links = linked(browser.get("/queues/").content.decode(), "/queues/")
    lists = {link for link in links if "state=available&queue=" in link}
    pauses = {link for link in links if "pauses" in link}
    assert len(lists) == len(pauses) == len(QUEUES)
    listed = [re.findall(r'<tr data-key="(\d+)"', browser.get(link).content.decode()) for link in lists]
    assert sorted(listed) == sorted([str(job_id)] for job_id in ids)
    for n, link in enumerate(pauses, start=1):
        form = browser.get(link).content.decode()
        [queue] = re.findall(r'name="queue" value="([^"]*)"', form)
        browser.post(link, {"queue": unescape(queue), "reason": "because"})
        assert len(run(queues.pauses(authority=scenes.SYSTEM))) == n
    assert {pause.queue for pause in run(queues.pauses(authority=scenes.SYSTEM))} == set(QUEUES)


@pytest.mark.parametrize(
    "address",
    [
        "/jobs/?q=%00",
        "/jobs/?q=" + "(" * 10_000,
        "/jobs/?q=id:" + "9" * 30,
        "/jobs/?state=<script>",
        '/jobs/?sort="><svg onload=alert(1)>',
        "/jobs/?columns=<script>",
        "/queues/one/?queue=%00",
        "/queues/one/?queue=<script>",
        "/workers/?page=-1",
        "/workers/?page=1000000000000",
        "/workers/?pool=<script>alert(1)</script>",
        "/audit/?job=" + "9" * 30,
        "/?span=<script>",
        "/?queue=<script>alert(1)</script>",
        "/quarantine/discards/?reason=<script>",
        "/jobs/many/discards/?job=<script>",
        "/login/?next=<script>alert(1)</script>",
    ],
)
def test_an_address_that_nobody_meant_is_answered_and_says_nothing_back_as_markup(
    browser: Client, address: str
) -> None:
    answer = browser.get(address)
    assert answer.status_code in {200, 400, 404}
    body = answer.content.decode().partition("<body")[2]
    assert "<script" not in body
    assert "<svg onload" not in body
