"""The overview."""

import json
import re
from html import unescape

import pytest
from django.test import Client

from shiftboss.console.figures import HEIGHT, Sparkline, tally
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.read import Count, Rate
from tests.console import scenes

pytestmark = pytest.mark.requirement("C3", "L28")

LENT = r'<span class="small resource">(.*?)</span>'


def row(page: str, key: object) -> str:
    found = re.search(rf'<tr data-key="{key}".*?</tr>', page, re.DOTALL)
    assert found, f"no row {key}"
    return found[0]


def cell(row: str, label: str) -> str:
    found = re.search(rf'data-label="{label}"[^>]*>(.*?)</td>', row, re.DOTALL)
    assert found, f"no cell {label}"
    return re.sub(r"<[^>]*>", "", found[1]).replace("\N{NO-BREAK SPACE}", " ").strip()


def overview(browser: Client) -> str:
    response = browser.get("/")
    assert response.status_code == 200
    return response.content.decode()


def test_each_queue_has_its_counts_by_state_with_links_to_them(browser: Client) -> None:
    worker = scenes.worker("default", "mail")
    scenes.completed_job(worker)
    scenes.quarantined_job(worker)
    scenes.job()
    scenes.job(queue="mail")
    scenes.job(queue="mail")
    scenes.claimed(worker, queue="mail")
    page = overview(browser)
    default, mail = row(page, "default"), row(page, "mail")
    assert [cell(default, name) for name in ("Completed", "Quarantined", "Available", "Running")] == [*"1110"]
    assert [cell(mail, name) for name in ("Completed", "Quarantined", "Available", "Running")] == [*"0011"]
    assert 'href="/jobs/?state=available&amp;queue=mail"' in mail
    assert cell(mail, "Workers") == "1"
    assert cell(default, "Last minute") == "1"
    assert re.fullmatch(r"[\d.]+ m?s", cell(mail, "Oldest waits"))


def test_without_a_worker_the_page_says_so_in_red(browser: Client) -> None:
    scenes.job()
    page = overview(browser)
    assert 'class="verdict wrong"' in page
    assert "No live worker: nothing runs" in page
    assert "manage.py shiftboss_worker" in page


def test_a_live_worker_shows_its_heartbeat_against_its_lease_its_lag_and_its_slots(browser: Client) -> None:
    worker = scenes.worker("default", host="web-7", pid=99)
    scenes.heartbeat(worker, in_use=5, lag_ms=40, losses=2)
    scenes.heartbeat(worker, in_use=3, lag_ms=7, losses=2)
    line = row(overview(browser), worker)
    assert "web-7" in line
    assert re.fullmatch(r"[\d.]+ m?s of 30 s", cell(line, "Heartbeat"))
    assert re.search(r'<meter min="0" max="30" low="15" high="15" optimum="0" value="0\.\d"', line)
    assert cell(line, "Lag") == "7 ms"
    assert cell(line, "Worst lag") == "40 ms"
    assert cell(line, "Slots in use") == "3 of 8"
    assert cell(line, "Losses") == "2"


@pytest.mark.requirement("R1")
def test_a_worker_shows_what_its_jobs_are_lent(browser: Client) -> None:
    worker = scenes.worker("default")
    resources = {
        "<browser>": {"made": 1200, "lent": 1100, "waiting": 3},
        "session": {"made": 2, "lent": 0, "waiting": 0},
    }
    scenes.heartbeat(worker, resources=json.dumps(resources))
    line = row(overview(browser), worker)
    said = [" ".join(unescape(re.sub(r"<[^>]*>", "", one)).split()) for one in re.findall(LENT, line, re.DOTALL)]
    assert said == ["<browser>: 1,100 of 1,200 lent, 3 waiting", "session: 0 of 2 lent"]
    scenes.heartbeat(worker, state="stopped", resources=json.dumps(resources))
    assert not re.findall(LENT, row(overview(browser), worker))


@pytest.mark.requirement("N13", "R3")
def test_a_worker_says_how_many_executors_are_to_end_and_what_no_observer_got(browser: Client) -> None:
    worker = scenes.worker("default")
    scenes.heartbeat(worker)
    assert "to be ended" not in row(overview(browser), worker)
    assert "observer" not in row(overview(browser), worker)
    scenes.heartbeat(worker, tainted=1, dropped=1200)
    line = row(overview(browser), worker)
    said = [" ".join(unescape(re.sub(r"<[^>]*>", "", one)).split()) for one in re.findall(LENT, line, re.DOTALL)]
    assert said == [
        "1 executor is to be ended: a handler did not end when it was asked to",
        "1,200 observations reached no observer",
    ]
    scenes.heartbeat(worker, tainted=2)
    assert "2 executors are to be ended: handlers did not end when they were asked to" in row(
        overview(browser), worker
    )
    scenes.heartbeat(worker, state="stopped", tainted=2)
    assert "to be ended" not in row(overview(browser), worker)


def test_a_worker_that_fell_silent_is_shown_as_lost(browser: Client) -> None:
    worker = scenes.worker("default", lease_seconds=0.001)
    page = overview(browser)
    assert "lost" in cell(row(page, worker), "State")
    assert "fell silent without a goodbye" in page


def test_a_record_without_jobs_says_what_will_be_seen(browser: Client) -> None:
    assert "A queue appears here with its first job" in overview(browser)


def test_the_throughput_is_drawn_and_stands_behind_it_as_a_table(browser: Client) -> None:
    worker = scenes.worker()
    for _ in range(3):
        scenes.completed_job(worker)
    page = overview(browser)
    assert "3 in the last minute, 3 in 30 minutes" in page
    assert 'aria-label="Finished jobs by minute: 3 in all, 3 in the busiest minute"' in page
    assert re.search(r'<th scope="row">0</th><td class="n">3</td><td class="n">0</td>', page)


@pytest.mark.requirement("B7")
def test_a_capped_count_says_in_words_that_there_are_at_least_so_many(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "FINISHED_CAP", 2)
    worker = scenes.worker()
    for _ in range(3):
        scenes.completed_job(worker)
    page = overview(browser)
    assert 'title="at least 2"' in row(page, "default")
    assert "2+" in row(page, "default")
    assert "finished ones among the newest 2" in page


def test_the_overview_asks_the_database_little(browser: Client, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    worker = scenes.worker()
    for number in range(20):
        scenes.job(queue=f"queue-{number}")
    scenes.completed_job(worker)
    with django_assert_max_num_queries(12):
        overview(browser)


def test_bars_are_scaled_to_the_busiest_minute_and_one_job_among_thousands_is_seen() -> None:
    rates = [Rate("a", 0, 4000, 0), Rate("b", 0, 2000, 1), Rate("a", 2, 3000, 0), Rate("a", 7, 9, 9)]
    line = Sparkline.of(rates, minutes=3)
    oldest, middle, newest = line.minutes
    assert (oldest.minutes_ago, middle.minutes_ago, newest.minutes_ago) == (2, 1, 0)
    assert (oldest.completed_height, middle.completed_height) == (HEIGHT // 2, 0)
    assert newest.completed_height == HEIGHT
    assert newest.not_completed_height == 2
    assert newest.not_completed_y >= 0
    assert (line.last, line.finished, line.not_completed, line.peak) == (6001, 9001, 1, 6001)


def test_a_tally_adds_up_the_queues_and_keeps_the_oldest_age_and_the_cap() -> None:
    counts = [
        Count("a", State.AVAILABLE, 2, 5.0, False),
        Count("b", State.AVAILABLE, 3, 9.0, False),
        Count("b", State.COMPLETED, 10, None, True),
    ]
    by_state = {line.state: line for line in tally(counts)}
    assert set(by_state) == set(State)
    assert (by_state[State.AVAILABLE].jobs, by_state[State.AVAILABLE].oldest_seconds) == (5, 9.0)
    assert by_state[State.COMPLETED].capped
    assert not by_state[State.AVAILABLE].capped
