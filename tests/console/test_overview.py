"""The overview."""

import re

import pytest
from django.test import Client

from shiftboss.console.figures import HEIGHT, Sparkline, tally
from shiftboss.queue.states import State
from shiftboss.queue.store import samples
from shiftboss.queue.store.samples import Count, Rate
from tests.console import scenes
from tests.store.making import execute

pytestmark = pytest.mark.requirement("C3", "L28")


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
    assert cell(default, "Out, last minute") == "1"
    assert cell(mail, "In, last minute") == "2"
    assert re.fullmatch(r"[\d.]+ m?s", cell(mail, "Oldest waits"))


def test_jobs_that_are_not_due_yet_are_counted_together_with_a_link_to_them(browser: Client) -> None:
    scenes.job_in(State.SCHEDULED, queue="mail")
    scenes.job_in(State.RETRYABLE, queue="mail")
    page = overview(browser)
    assert cell(row(page, "mail"), "Later") == "2"
    assert 'href="/jobs/?state=scheduled,retryable&amp;queue=mail">2</a>' in page
    found = browser.get("/jobs/?state=scheduled,retryable&queue=mail").content.decode()
    assert len(re.findall(r'<tr data-key="\d+"', found)) == 2


def test_without_a_worker_the_page_says_so_in_red(browser: Client) -> None:
    scenes.job()
    page = overview(browser)
    assert 'class="strip wrong"' in page
    assert "No live worker: nothing runs" in page
    assert "manage.py shiftboss_worker" in page


def test_a_record_without_jobs_says_what_will_be_seen(browser: Client) -> None:
    assert "A queue appears here with its first job" in overview(browser)


@pytest.mark.requirement("B7")
def test_a_capped_count_says_in_words_that_there_are_at_least_so_many(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "FINISHED_CAP", 2)
    worker = scenes.worker()
    for _ in range(3):
        scenes.completed_job(worker)
    page = overview(browser)
    assert 'title="at least 2"' in row(page, "default")
    assert "2+" in row(page, "default")
    assert "finished ones among the newest 2" in page


@pytest.mark.requirement("B7")
def test_of_more_completed_jobs_than_were_counted_the_list_tells_about_how_many(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "FINISHED_CAP", 2)
    worker = scenes.worker()
    for _ in range(3):
        scenes.completed_job(worker)
    with scenes.maintained():
        execute("update shiftboss_sample set seen = seen || '{\"estimate\": 1234567}' where part = 'finished'")
        page = browser.get("/jobs/?state=completed").content.decode()
        assert '<span title="about 1,230,000">' in page
        assert "≈1,230,000" in page
        # of one queue nobody knows more than was counted
        assert '<span title="at least 2">' in browser.get("/jobs/?state=completed&queue=default").content.decode()


def test_the_overview_asks_the_database_little(browser: Client, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    worker = scenes.worker()
    for number in range(20):
        scenes.job(queue=f"queue-{number}")
    scenes.completed_job(worker)
    with scenes.maintained(), django_assert_max_num_queries(12):
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
    assert line.empty_path == "M10 39h8v1h-8z"
    assert line.completed_path == "M0 20h8v20h-8zM20 0h8v40h-8z"
    assert line.not_completed_path == "M20 0h8v2h-8z"


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
