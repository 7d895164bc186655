"""The strip above every page: its verdict and figures, what they lead to, what it says when nobody answers."""

import re
from html import unescape
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client

from shiftboss.console import strip, whole
from shiftboss.console.strip import drains, per_second
from shiftboss.console.views import jobs
from shiftboss.console.whole import Flow
from shiftboss.queue.store import samples
from shiftboss.queue.store.statement import Verb
from tests.console import scenes
from tests.store import making
from tests.store.making import execute

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "L28")]


def strip_of(page: str) -> str:
    found = re.search(r'<section id="strip".*?</section>', page, re.DOTALL)
    assert found, "no strip"
    return found[0]


def vitals(page: str) -> dict[str, tuple[str, str, str]]:
    """Each figure by its name: its value, what stands below it, and its address."""
    cells = re.findall(
        r'<dt><a href="([^"]*)">(.*?)</a></dt><dd>(.*?)</dd><dd class="small"><bdi>(.*?)</bdi>', strip_of(page)
    )
    return {name: (words(value), words(detail), words(address)) for address, name, value, detail in cells}


def words(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    "address", ["/", "/jobs/", "/jobs/{job}/", "/queues/", "/workers/", "/quarantine/", "/backfills/", "/audit/"]
)
def test_it_stands_on_every_page(browser: Client, address: str) -> None:
    page = browser.get(address.format(job=scenes.job())).content.decode()
    assert page.count('id="strip"') == 1
    assert "No live worker: nothing runs" in strip_of(page)


def test_it_stands_above_the_form_of_an_act_but_not_in_a_dialog(browser: Client) -> None:
    address = f"/jobs/{scenes.job()}/cancellations/"
    assert browser.get(address).content.decode().count('id="strip"') == 1
    assert 'id="strip"' not in browser.get(address, headers={"HX-Request": "true"}).content.decode()


def test_each_figure_is_counted_and_leads_to_what_it_counts(browser: Client) -> None:
    worker = scenes.worker("a queue/1")
    scenes.heartbeat(worker, lag_ms=40)
    scenes.completed_job(worker, queue="a queue/1")
    scenes.quarantined_job(worker)
    scenes.job(queue="a queue/1")
    found = vitals(browser.get("/queues/").content.decode())
    assert found["Stuck leases"] == ("0", "of 0 running", "/jobs/?state=running")
    assert found["Heartbeat lag"] == ("40 ms", "of a lease of 30 s; worst 40 ms", "/workers/")
    assert found["Quarantined"] == ("1", "+1 in the last hour", "/quarantine/")
    value, where, address = found["Oldest waits"]
    assert re.fullmatch(r"[\d.]+ m?s", value)
    assert (where, address) == ("in a queue/1", "/jobs/?state=available&queue=a+queue%2F1")
    assert found["Jobs in, out"] == ("3/min, 1/min", "0 not completed", "/#throughput")
    assert found["Drained"] == ("grows by 2/min", "1 available", "/queues/")
    assert browser.get(address).status_code == 200


def test_without_a_live_worker_it_is_red(browser: Client) -> None:
    assert 'class="strip wrong"' in browser.get("/queues/").content.decode()
    scenes.worker()
    assert 'class="strip"' in browser.get("/queues/").content.decode()


def test_that_nothing_moves_is_wrong_once_jobs_have_waited_for_long(browser: Client) -> None:
    scenes.worker()
    scenes.job()
    drained = r'<div( class="wrong")?><dt><a href="[^"]*">Drained</a></dt><dd>never</dd>'
    for wrong in (None, ' class="wrong"'):
        found = re.search(drained, strip_of(browser.get("/queues/").content.decode()))
        assert found
        assert found[1] == wrong
        execute("update shiftboss_job set due_at = due_at - interval '6 minutes'")


def test_names_in_it_are_text(browser: Client) -> None:
    scenes.worker("default", host="<b>\u202e")
    scenes.job(queue="<i>")
    execute("update shiftboss_worker set heartbeat_at = now() - interval '20 s'")
    page = browser.get("/").content.decode()
    assert "No live worker for queue &lt;i&gt;, where 1 job waits" in page
    assert "on &lt;b&gt;\\u202e is late" in page


@pytest.mark.requirement("B8")
def test_the_whole_costs_one_statement_and_none_within_a_second(
    browser: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries
) -> None:  # type: ignore[no-untyped-def]
    scenes.worker()
    with scenes.maintained():
        with django_assert_num_queries(1):
            whole.whole()
        monkeypatch.setattr(whole, "KEPT_SECONDS", 3600.0)
        with django_assert_num_queries(0):
            whole.whole()


@pytest.mark.requirement("B7")
def test_where_nobody_looks_any_more_it_says_how_old_it_is(browser: Client) -> None:
    scenes.worker()
    scenes.sample_all()
    execute("update shiftboss_sample set at = at - interval '3 minutes'")
    with scenes.abandoned():
        page = strip_of(browser.get("/queues/").content.decode())
    assert "No maintainer looks at the record: what is shown is old" in page
    assert "Start one: manage.py shiftboss_maintainer" in page
    assert re.search(
        r"These figures are as of (<time[^>]*>)?\d\d:\d\d:\d\d UTC(</time>)?, <time[^>]*>3.min ago</time>", page
    )


@pytest.mark.requirement("B7")
def test_a_part_that_takes_its_time_is_not_called_abandoned(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes.worker()
    scenes.sample_all()
    monkeypatch.setattr(samples, "REST", 100.0)
    execute("update shiftboss_sample set at = at - interval '30 s', took_ms = 200")
    with scenes.abandoned():
        assert "as of" not in strip_of(browser.get("/queues/").content.decode())


@pytest.mark.requirement("B7", "B8")
def test_where_no_maintainer_has_ever_looked_it_says_so_and_no_page_counts_for_itself(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    scenes.worker()
    scenes.job()
    with scenes.abandoned():
        for address in ("/", "/jobs/", "/queues/", "/queues/one/?queue=default", "/workers/", "/quarantine/"):
            with django_assert_max_num_queries(12):
                page = browser.get(address).content.decode()
            assert not re.search(r"No jobs yet|No queue yet|nothing waits|<span class=.n.>0", page), (
                "it is not known"
            )
            page = strip_of(page)
            assert "No maintainer has looked at the record yet" in page
            assert "Start one: manage.py shiftboss_maintainer" in page
            assert vitals(page)["Oldest waits"][:2] == ("–", "not yet known")


@pytest.mark.requirement("B8")
def test_a_shell_looks_itself_where_nobody_does_and_leaves_what_it_cannot_afford(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenes.worker()
    scenes.job()
    monkeypatch.setattr(samples, "EVERY_SECONDS", 2.0)
    tried: list[str] = []
    look = samples.look

    def slow(part: samples.Part, **how: Any) -> Verb[bool]:
        tried.append(part)
        if part is samples.Part.COUNTS:
            raise OperationalError("canceling statement due to statement timeout")
        return (yield from look(part, **how))

    monkeypatch.setattr(samples, "look", slow)
    with scenes.abandoned():
        seen = whole.looked()
        assert (seen.workers.live, seen.age_seconds) == (1, None)
        assert set(tried) == set(samples.Part)
        tried.clear()
        assert whole.looked().workers.live == 1
        assert tried == [samples.Part.COUNTS]


@pytest.mark.requirement("B8", "B16")
def test_where_a_page_was_given_up_the_strip_stays_as_it_was_and_says_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes.worker()
    browser.get("/queues/")

    def slow(*_: object, **__: object) -> None:
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(jobs.joblist, "read", slow)
    response = browser.get("/jobs/")
    assert response.status_code == 503
    page = strip_of(response.content.decode())
    assert "All well" in page
    assert "The database does not answer. These figures are as of" in page


def test_a_stranger_sees_no_strip() -> None:
    assert 'id="strip"' not in Client().get("/login/").content.decode()
    assert 'id="strip"' not in Client().get("/jobs/no-such-page/").content.decode()


@pytest.mark.parametrize(
    ("available", "flow", "said", "stalls"),
    [
        (0, Flow(5, 0, 0), "now", False),
        (100, Flow(0, 0, 0), "never", True),
        (100, Flow(20, 60, 10), "in 2 min", False),
        (100, Flow(180, 60, 0), "grows by 2.0/s", False),
        (100, Flow(60, 60, 0), "stays", False),
    ],
)
def test_the_time_to_drain_is_that_of_the_present_rates(
    available: int, flow: Flow, said: str, stalls: bool
) -> None:
    value, nothing_moves = drains(available, flow)
    assert value.replace("\N{NO-BREAK SPACE}", " ") == said
    assert nothing_moves is stalls


@pytest.mark.parametrize(
    ("a_minute", "said"), [(0, "0"), (3, "3/min"), (12, "0.2/s"), (720, "12/s"), (74_040, "1,234/s")]
)
def test_a_rate_is_told_in_the_unit_that_fits(a_minute: float, said: str) -> None:
    assert per_second(a_minute) == said
    assert strip.STEADY


@pytest.mark.requirement("B2")
def test_a_crash_loop_is_told_on_every_page_until_when_it_is_held_back(browser: Client) -> None:
    hold_id = making.a_hold(making.a_host(programs=[{"name": "web", "pool": None}]))
    whole.forget()
    told = words(strip_of(browser.get("/jobs/").content.decode()))
    assert "Crash loop: web on web-1 ended 3 times in 40 s" in told
    assert re.search(r"held back until \d\d:\d\d:\d\d UTC", told)
    execute("update shiftboss_hold set released_at = now(), released_as = 'release' where id = %s", hold_id)
    whole.forget()
    assert "Crash loop" not in strip_of(browser.get("/jobs/").content.decode())
