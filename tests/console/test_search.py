"""The search on the page of jobs: what was typed, what is found, and how the page says what it could not do."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from shiftboss.console import columns, filters
from shiftboss.queue.authority import Owner, System
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate
from shiftboss.queue.store import search as searching
from shiftboss.queue.store.read import PAGE
from shiftboss.queue.store.statement import run
from tests.console import scenes

pytestmark = pytest.mark.requirement("C4")


def found(browser: Client, asked: str = "", **more: str) -> tuple[list[int], str]:
    """The ids that a search finds, in the order of the page, and the page."""
    return followed(browser, "?" + urlencode({"state": "any", "q": asked} | more))


def followed(browser: Client, address: str) -> tuple[list[int], str]:
    response = browser.get(f"/jobs/{address}")
    assert response.status_code == 200, response.content.decode()
    page = response.content.decode()
    return [int(one) for one in re.findall(r'<tr data-key="(\d+)"', page)], page


def link(page: str, text: str) -> str:
    """Where the link of the list with this text leads."""
    around = page.partition('<div class="bar">')[2]
    [address] = re.findall(rf'<a[^>]* href="([^"]*)"[^>]*>{re.escape(text)}', around)
    return unescape(address)


def cells(page: str, label: str) -> list[str]:
    """What a column shows, without its marks."""
    inner = re.findall(rf'<td[^>]* data-label="{re.escape(label)}"[^>]*>(.*?)</td>', page, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", one) for one in inner]


def test_a_query_finds_live_and_finished_jobs_together(browser: Client) -> None:
    worker = scenes.worker("mail")
    done = scenes.completed_job(worker, queue="mail")
    waits = scenes.job(queue="mail")
    scenes.job(queue="reports")
    assert found(browser, "queue:mail")[0] == [waits, done]
    assert found(browser, "queue:mail -state:completed")[0] == [waits]
    assert found(browser, "queue:mail", state="completed,quarantined")[0] == [done]
    assert followed(browser, "?q=queue:mail&state=completed&state=available")[0] == [waits, done]
    assert followed(browser, "?q=queue:mail")[0] == [waits, done]


def test_a_state_in_the_query_chooses_the_tabs(browser: Client) -> None:
    held = scenes.quarantined_job(scenes.worker())
    scenes.job()
    ids, page = found(browser, "state:quarantined,running", state="available")
    assert ids == [held]
    assert len(re.findall(r'aria-current="true"', page)) == 2
    assert 'name="q" type="search" value=""' in page


def test_terms_are_chips_that_can_be_taken_out(browser: Client) -> None:
    mail, report = scenes.job(queue="mail"), scenes.job(queue="reports", tags=("x",))
    ids, page = found(browser, "queue:mail,reports tag:x")
    assert ids == [report]
    [without_tag] = re.findall(r'<a href="([^"]*)" aria-label="Without tag:x"', page)
    assert followed(browser, unescape(without_tag))[0] == [report, mail]


@pytest.mark.parametrize("queue", ["foo/bar.baz", "a b", "queue+name", "a%2Fb", "..", "#x?y=1", 'q"uo,te', "a*b"])
def test_a_name_of_a_queue_survives_chips_tabs_and_the_old_form_of_the_address(
    browser: Client, queue: str
) -> None:
    job_id = scenes.job(queue=queue)
    scenes.job(queue="xaxb")
    ids, page = followed(browser, f"?state=available&queue={quote(queue, safe='')}")
    assert ids == [job_id]
    assert followed(browser, link(page, "all"))[0] == [job_id]
    [option] = re.findall(r'<option value="(queue:[^"]*)"', found(browser, "")[1])[:1]
    assert unescape(option)
    assert found(browser, str(filters.read({"queue": queue}).asked))[0] == [job_id]


@pytest.mark.parametrize(
    "typed",
    [
        "\x00",
        "a\x00b queue:\x00",
        "quue:mail",
        "state:sleeping",
        "id:" + "9" * 30,
        "enqueued>2030-02-31",
        "run>" + "9" * 30 + "d",
        '"open',
        "queue:",
        "state:running state:available",
        "x " * 5_000,
        "t:" * 10_000,
        "x" * 10_240,
    ],
)
def test_what_cannot_be_read_is_pointed_at_and_stays_in_the_box(browser: Client, typed: str) -> None:
    job_id = scenes.job()
    ids, page = found(browser, typed)
    assert ids == []
    assert f"/jobs/{job_id}/" not in page
    assert 'id="mistakes"' in page
    assert "<mark>" in page
    [box] = re.findall(r'name="q" type="search" value="([^"]*)"', page)
    assert unescape(box) == typed.strip()


@pytest.mark.parametrize(
    "typed",
    [
        "%",
        "_",
        "\\",
        "'",
        "(",
        "'; drop table shiftboss_job; --",
        "%s",
        "{value}",
        "9" * 30,
        "\x1b[31m",
        "\u202ee",
    ],
)
def test_odd_characters_are_looked_for_as_they_are(browser: Client, typed: str) -> None:
    scenes.job()
    worker = scenes.worker("odd")
    job_id = scenes.job(queue="odd", max_attempts=1)
    scenes.failed(scenes.claimed(worker, queue="odd"), worker, message=f"it says {typed} and no more")
    typed = typed.replace("\\", "\\\\")
    ids, page = found(browser, f'error:"{typed}"')
    assert ids == [job_id]
    # The box holds what was typed; nothing else does.
    said = re.sub('value="[^"]*"', "", page)
    assert "\u202e" not in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    "query", ["q=%ED%A0%80", "q=%FF", "sort=random", "place=x", "sort=due&place=9~9~9", "seen=x"]
)
def test_an_address_that_nobody_was_given_is_answered(browser: Client, query: str) -> None:
    assert browser.get(f"/jobs/?{query}").status_code in (200, 400)


def test_what_is_typed_is_never_markup(browser: Client) -> None:
    for typed in ('"><script>alert(1)</script>', 'tag:"\'><img src=x>"', "<b>:x", "args.<i>=1"):
        _, page = found(browser, typed)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>:" not in page
        assert "<i>" not in page


def test_a_mistake_offers_what_is_nearest(browser: Client) -> None:
    job_id = scenes.job(queue="mail")
    _, page = found(browser, "quue:mail")
    assert "There is no field “quue”." in page
    [mended] = re.findall(r'Did you mean <a href="([^"]*)"', page)
    assert followed(browser, unescape(mended))[0] == [job_id]


def test_known_names_complete_what_was_typed(browser: Client) -> None:
    scenes.job(queue="a b", tags=("nightly",))
    page = found(browser, "error:x")[1]
    assert '<option value="error:x queue:&quot;a b&quot;"></option>' in page
    page = found(browser, "queue:x* task:send_invoice")[1]
    assert '<option value="queue:x* task:send_invoice tag' not in page
    assert f'<option value="task:{scenes.TASK}"></option>' in found(browser)[1]
    assert '<option value="tag:nightly"></option>' in found(browser)[1]


def test_a_key_is_found_with_its_owner(browser: Client) -> None:
    systems = scenes.job(key="invoice-7")
    kims = scenes.job(key="invoice-7", authority=Owner("kim"))
    assert found(browser, "key:invoice-7")[0] == [systems]
    assert found(browser, "key:invoice-7 owner:kim")[0] == [kims]
    assert found(browser, "key:invoice-7 owner:kim", state="available")[0] == [kims]
    assert found(browser, "key:invoice*")[0] == [kims, systems]
    assert found(browser, "key:invoice-7 owner:a::b")[0] == []


def test_times_are_compared_with_the_stored_instant(browser: Client) -> None:
    due = datetime(2040, 5, 1, 12, 0, tzinfo=UTC)
    job_id = scenes.job(due_at=due)
    assert found(browser, "due:2040-05-01")[0] == []
    assert found(browser, "due>=2040-05-01T14:00+02:00 due<2040-05-01T12:00:01Z")[0] == [job_id]
    assert found(browser, "due>2040-05-01T12:00Z")[0] == []
    assert found(browser, "enqueued>5m enqueued<+5m")[0] == [job_id]
    assert found(browser, "started>5m")[0] == []


def test_columns_are_chosen_and_stand_in_the_address(browser: Client) -> None:
    scenes.job(queue="mail", key="invoice-7", tags=("a", "b"), meta='{"source": {"id": 1970670598291982290}}')
    _, page = found(browser, "queue:mail", columns="key,tags, meta.source.id,nonsense,args")
    assert cells(page, "Key") == ["invoice-7"]
    assert cells(page, "Tags") == ["a b"]
    assert cells(page, "meta.source.id") == ["1970670598291982290"]
    assert cells(page, "Queue") == []
    assert "nonsense" not in page.partition('<table class="cards jobs')[2]
    assert "columns=key%2Ctags%2Cmeta.source.id" in link(page, "running")
    _, page = followed(browser, "?state=any&columns=key&columns=owner&columns=meta.a,%20meta.b")
    table = page.partition('<table class="cards jobs')[2].partition("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', table)
    assert heads == ["Job", "Task", "Key", "Owner", "meta.a", "meta.b"]


@pytest.mark.requirement("B14")
def test_arguments_are_shown_and_searched_once_they_were_revealed(browser: Client, client: Client) -> None:
    job_id = scenes.job(args='{"args": ["first"], "kwargs": {"to": "kim@example.org"}}')
    scenes.job(args='{"args": [], "kwargs": {"to": "lee@example.org"}}')
    client.force_login(scenes.person("lee", "shiftboss.view_job", columns.VIEW_ARGUMENTS))
    ids, page = found(client, "args.to=kim*", columns="args.to,args.0")
    assert ids == []
    assert "example.org" not in page
    reveal = unescape(link(page, "Reveal arguments"))
    answer = client.post(reveal, {"reason": "whose was it", "request_id": "1"})
    assert answer.status_code == 303
    assert "args.to" in answer.headers["Location"]
    [entry] = [one for one in run(audit.entries(authority=scenes.SYSTEM)) if one.act == "reveal"]
    assert (entry.actor_name, entry.job_id, entry.reason) == ("lee", None, "whose was it")
    ids, page = found(client, "args.to=kim*", columns="args.to,args.0")
    assert ids == [job_id]
    assert cells(page, "args.to") == ["kim@example.org"]
    assert cells(page, "args.0") == ["first"]
    client.force_login(scenes.person("pat", "shiftboss.view_job"))
    ids, page = found(client, "-args.to=kim*")
    assert ids == []
    assert "which needs the permission shiftboss.view_arguments" in page
    _, page = found(client, columns="args.to,args.0")
    assert cells(page, "args.to") == ["not shown", "not shown"]
    assert "example.org" not in page
    assert "first" not in page.partition('<table class="cards jobs')[2]
    assert "Arguments are not shown: that needs the permission shiftboss.view_arguments." in page


@pytest.mark.requirement("B8")
def test_a_search_that_was_ended_says_how_far_it_came_and_goes_on(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FIRST_WINDOW", 2)
    monkeypatch.setattr(searching, "ROWS", 4)
    monkeypatch.setattr(searching, "SECONDS", 60.0)
    wanted = scenes.job(queue="mail")
    for _ in range(5):
        scenes.job()
    ids, page = found(browser, "queue:mail")
    assert ids == []
    assert "None of the jobs that were looked at is one of these." in page
    assert re.search(r"Looked through 4\sjobs, as far as those enqueued\s+<time", page)
    assert followed(browser, link(page, "Go on from there"))[0] == [wanted]


def test_an_empty_page_leads_to_the_last_one_that_has_jobs(browser: Client) -> None:
    jobs = [scenes.job(queue="mail") for _ in range(PAGE + 1)]
    address = link(found(browser, "queue:mail", state="available")[1], "Older")
    assert followed(browser, address)[0] == [jobs[0]]
    run(operate.cancel([jobs[0]], authority=System()))
    ids, page = followed(browser, address)
    assert ids == list(reversed(jobs[1:]))
    assert "The page that was asked for has no jobs any more." in page
    assert 'value="queue:mail"' in page
    oldest = address.replace("before=", "sort=oldest&after=")
    assert followed(browser, oldest.replace(str(jobs[1]), str(jobs[-1])))[0] == jobs[1:]
    run(operate.cancel(jobs[1:], authority=System()))
    assert "No jobs on this side of the list." in followed(browser, address)[1]


def test_new_jobs_are_told_on_a_page_that_is_not_the_newest(browser: Client) -> None:
    for _ in range(PAGE + 1):
        scenes.job()
    older = link(found(browser, state="available")[1], "Older")
    before, page = followed(browser, older)
    assert " new</a>" not in page
    for queue in ("mail", "mail"):
        scenes.job(queue=queue)
    after, page = followed(browser, older)
    assert after == before
    assert len(followed(browser, link(page, "+2 new"))[0]) == PAGE


def test_the_newest_page_has_an_address_at_which_it_stays_and_tells_of_new_jobs(browser: Client) -> None:
    job_id = scenes.job()
    ids, page = found(browser, state="available")
    [held] = re.findall(r'data-held="([^"]*)"', page)
    scenes.job()
    ids, page = followed(browser, unescape(held))
    assert ids == [job_id]
    assert link(page, "+1 new") == "?state=available"
    assert "data-held" not in page


def test_lists_are_sorted_where_an_index_gives_the_order_and_say_where_none_does(browser: Client) -> None:
    now = timezone.now()
    late, soon = [scenes.job(due_at=now + timedelta(hours=hours)) for hours in (5, 1)]
    low, high = scenes.job(queue="mail", priority=-1), scenes.job(queue="mail", priority=9)
    assert found(browser, state="scheduled", sort="due")[0] == [soon, late]
    assert found(browser, "queue:mail", state="available", sort="priority")[0] == [high, low]
    assert found(browser, state="any", sort="oldest")[0] == [late, soon, low, high]
    ids, page = found(browser, state="any", sort="due")
    assert ids == [high, low, soon, late]
    assert "By due time only scheduled and retryable jobs can be sorted" in page
    assert "the available jobs of one queue" in found(browser, state="available", sort="priority")[1]


@pytest.mark.parametrize(("sort", "state"), [("due", "scheduled"), ("priority", "available"), ("oldest", "any")])
def test_pages_of_each_order_lead_through_all_jobs_once(browser: Client, sort: str, state: str) -> None:
    due = timezone.now() + timedelta(hours=1) if state == "scheduled" else None
    jobs = [scenes.job(queue="mail", due_at=due, priority=n % 3) for n in range(PAGE + 5)]
    first, page = found(browser, "queue:mail", state=state, sort=sort)
    second, last = followed(browser, link(page, "Newer" if sort == "oldest" else "Next"))
    assert sorted(first + second) == jobs
    assert len(first) == PAGE
    assert 'rel="next"' not in last
    assert followed(browser, link(last, "Oldest" if sort == "oldest" else "First"))[0] == first


def test_a_search_asks_the_database_little(
    browser: Client,
    django_assert_max_num_queries: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "FIRST_WINDOW", 2)
    monkeypatch.setattr(searching, "SECONDS", 60.0)
    for _ in range(PAGE + 1):
        scenes.job()
    with scenes.maintained(), django_assert_max_num_queries(12):
        followed(browser, "?state=any&q=error:x+-queue:y&before=9999&seen=1")


def test_an_address_is_read_as_it_was_written() -> None:
    for text in (
        "?state=any&q=run%3E5m&sort=oldest&columns=queue%2Cmeta.a&after=5&seen=9",
        "?state=scheduled%2Cretryable&sort=due&place=2040-05-01T12%3A00%3A00.000001%2B00%3A00~7",
        "?state=available&q=queue%3Amail&sort=priority&place=2040-05-01T12%3A00%3A00%2B00%3A00~-5~7",
    ):
        assert filters.read(QueryDict(text[1:])).query == text
    assert filters.read({"state": "running, retryable"}).states == {State.RUNNING, State.RETRYABLE}
