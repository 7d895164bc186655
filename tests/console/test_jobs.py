"""The list of jobs."""

import re
from datetime import timedelta

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from shiftboss.console import query
from shiftboss.console.filters import BadFilter, JobFilter
from shiftboss.console.filters import read as read_filter
from shiftboss.queue.states import State
from shiftboss.queue.store.read import PAGE
from shiftboss.queue.store.search import Order
from tests.console import scenes

pytestmark = pytest.mark.requirement("C3")


def listed(browser: Client, query: str) -> tuple[list[int], str]:
    """The ids on a page of the list, and the page."""
    response = browser.get(f"/jobs/{query}")
    assert response.status_code == 200, response.content.decode()
    page = response.content.decode()
    return [int(found) for found in re.findall(r'<tr data-key="(\d+)"', page)], page


def link(page: str, rel: str) -> str | None:
    found = re.search(rf'<a rel="{rel}" href="([^"]*)"', page)
    return found[1].replace("&amp;", "&") if found else None


def test_each_state_has_its_list(browser: Client) -> None:
    worker = scenes.worker()
    done, held = scenes.completed_job(worker), scenes.quarantined_job(worker)
    waiting = scenes.job()
    later = scenes.job(due_at=timezone.now() + timedelta(hours=1))
    running = scenes.job(queue="mail")
    scenes.claimed(worker, queue="mail")
    expected = {
        "completed": done,
        "quarantined": held,
        "available": waiting,
        "scheduled": later,
        "running": running,
    }
    for state, job_id in expected.items():
        assert listed(browser, f"?state={state}")[0] == [job_id]
    assert listed(browser, "")[0] == [running]


def test_a_row_tells_of_the_failure(browser: Client) -> None:
    scenes.quarantined_job(scenes.worker())
    _, page = listed(browser, "?state=quarantined")
    assert "smtplib.SMTPRecipientsRefused" in page
    assert "mailbox unavailable" in page
    assert "it failed as often as it may" in page
    assert "1 of 1" in page


def test_tabs_count_within_the_queue_that_is_filtered_for(browser: Client) -> None:
    for queue in ("mail", "mail", "reports"):
        scenes.job(queue=queue)
    ids, page = listed(browser, "?state=available&queue=mail")
    assert len(ids) == 2
    chosen = r'href="\?state=available&amp;q=queue%3Amail" title="[^"]*" aria-current="page">'
    assert re.search(chosen + 'available <span class="n">2<', page)
    assert re.search(r'href="\?state=quarantined&amp;q=queue%3Amail"', page)
    assert 'value="queue:mail"' in page
    _, page = listed(browser, "?state=available")
    assert '<option value="queue:reports"></option>' in page


def test_pages_lead_through_all_jobs_once_and_back(browser: Client) -> None:
    ids = [scenes.job(queue="mail") for _ in range(2 * PAGE + 7)]
    scenes.job(queue="reports")
    newest_first = sorted(ids, reverse=True)
    seen: list[int] = []
    query: str | None = "?state=available&queue=mail"
    addresses = []
    while query:
        addresses.append(query)
        found, page = listed(browser, query)
        seen += found
        query = link(page, "next")
    assert seen == newest_first
    assert len(addresses) == 3
    middle = link(page, "prev")
    assert middle
    found, page = listed(browser, middle)
    assert found == newest_first[PAGE + 7 - PAGE : PAGE + 7] or found == newest_first[PAGE : 2 * PAGE]
    assert all("mail" in address and "state=available" in address for address in [*addresses, middle])


def test_a_page_stays_the_same_while_newer_jobs_come(browser: Client) -> None:
    for _ in range(PAGE + 1):
        scenes.job()
    _, first = listed(browser, "?state=available")
    older = link(first, "next")
    assert older
    before, _ = listed(browser, older)
    scenes.job()
    assert listed(browser, older)[0] == before


def test_the_first_page_has_no_newer_and_the_last_no_older(browser: Client) -> None:
    scenes.job()
    _, page = listed(browser, "?state=available")
    assert link(page, "prev") is None
    assert link(page, "next") is None


def test_an_empty_list_says_so(browser: Client) -> None:
    _, page = listed(browser, "?state=discarded")
    assert "No job is discarded." in page
    _, page = listed(browser, "?state=discarded&queue=mail")
    assert "No job is discarded in queue mail." in page
    _, page = listed(browser, "?state=discarded&before=1")
    assert "No jobs on this side of the list." in page
    assert 'href="?state=discarded">Newest' in page


@pytest.mark.parametrize(
    "query",
    [
        "state=sleeping",
        "before=abc",
        "after=-1",
        "before=9223372036854775808",
        f"before={'9' * 5000}",
        "before=%D9%A3",
        "before=1&after=2",
        "queue=%00",
        "queue=%E2%80%AE",
        f"queue={'q' * 101}",
    ],
)
def test_an_address_that_cannot_be_read_is_answered_not_broken(browser: Client, query: str) -> None:
    response = browser.get(f"/jobs/?{query}")
    assert response.status_code == 400
    assert "This address cannot be read" in response.content.decode()


def test_a_filter_survives_its_own_address() -> None:
    asked = query.parse('queue:"a&b=c/d é" -task:x*')
    states = frozenset({State.RETRYABLE, State.RUNNING})
    wanted = JobFilter(
        states=states, asked=asked, order=Order.OLDEST, columns=("queue", "args.to"), before=7, seen=9
    )
    assert read_filter(QueryDict(wanted.query[1:])) == wanted
    assert wanted.first().query.startswith("?state=retryable%2Crunning&q=queue%3A%22a%26b%3Dc%2Fd+%C3%A9%22+-task")


def test_a_filter_names_what_is_wrong() -> None:
    with pytest.raises(BadFilter, match="before must be an id"):
        read_filter({"before": "x"})


def test_the_list_asks_the_database_little(browser: Client, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    for _ in range(PAGE + 1):
        scenes.job()
    with scenes.maintained(), django_assert_max_num_queries(12):
        listed(browser, "?state=available")
