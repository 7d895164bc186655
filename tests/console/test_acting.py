"""Acts on jobs: what is offered, what is done, and what is said where nothing was done."""

import re
from datetime import UTC, datetime
from html import unescape

import psycopg
import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from shiftboss.acts import performing
from shiftboss.console import offers
from shiftboss.console.offers import JobAct
from shiftboss.permissions import PERMISSIONS, ROLES, Act
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate, read
from shiftboss.queue.store.statement import run
from tests.console import scenes

pytestmark = pytest.mark.requirement("C3", "C4")

SYSTEM = scenes.SYSTEM
WAITING = {"cancellations", "reprioritisations", "reschedulings", "quarantines"}
LEGAL = {
    State.SCHEDULED: WAITING | {"expeditions"},
    State.AVAILABLE: WAITING,
    State.RETRYABLE: WAITING | {"expeditions"},
    State.RUNNING: {"cancellations"},
    State.QUARANTINED: {"reinstatements", "discards", "cancellations", "edits"},
    State.COMPLETED: {"reruns", "edits"},
    State.CANCELLED: {"reruns", "edits"},
    State.DISCARDED: {"reruns", "edits"},
}
ACTS = [act for act in offers.ACTS if act.resource not in {"edits", "reveals"}]
"""Those that are done at once, on one form; `test_arguments` has the others."""

AFTERWARDS = {
    "cancellations": State.CANCELLED,
    "expeditions": State.AVAILABLE,
    "reinstatements": State.AVAILABLE,
    "discards": State.DISCARDED,
    "quarantines": State.QUARANTINED,
}
TYPED = {"reason": "the customer called", "priority": "5", "due_at": "2031-02-03T04:05"}
EACH = pytest.mark.parametrize("act", ACTS, ids=[act.resource for act in ACTS])


def offered(page: str) -> set[str]:
    """The acts whose links stand on a page; arguments can be revealed in any state."""
    return set(re.findall(r'href="/jobs/\d+/(\w+)/[^"]*" data-dialog', page)) - {"reveals"}


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, f"no field {name}"
    return unescape(found[1])


def post(browser: Client, job_id: int, resource: str, query: str = "", **typed: str) -> HttpResponse:
    return browser.post(f"/jobs/{job_id}/{resource}/{query}", {**TYPED, **typed})  # type: ignore[return-value]


def news(browser: Client, response: HttpResponse) -> str:
    """What the page says to which an act has led."""
    assert response.status_code == 303, response.content.decode()
    page = browser.get(response.headers["Location"]).content.decode()
    found = re.search(r'<p class="news"[^>]*>(.*?)</p>', page)
    assert found
    return re.sub(r"<[^>]*>", "", found[1])


@pytest.mark.parametrize("state", State)
def test_each_state_offers_the_acts_that_are_legal_and_no_other(browser: Client, state: State) -> None:
    job_id = scenes.job_in(state)
    assert offered(browser.get(f"/jobs/{job_id}/").content.decode()) == LEGAL[state]
    listed = offered(browser.get(f"/jobs/?state={state}").content.decode())
    assert listed == LEGAL[state] - {"reprioritisations", "reschedulings", "quarantines", "edits"} - (
        {"cancellations"} if state is State.QUARANTINED else set()
    )


@EACH
def test_an_act_that_is_sent_without_a_button_is_done_where_it_is_legal_else_refused(
    browser: Client, act: JobAct
) -> None:
    for state in State:
        job_id = scenes.job_in(state, queue=state)
        response = post(browser, job_id, act.resource)
        if act.resource not in LEGAL[state]:
            assert response.status_code == 409
            page = response.content.decode()
            assert f"Job {job_id} has moved on: it is {state}" in page
            assert "Nothing was changed." in page
            assert offered(page) == LEGAL[state]
            assert scenes.state_of(job_id) is state
            continue
        assert response.status_code == 303
        assert response.headers["Location"] == f"/jobs/{job_id}/"
        expected = AFTERWARDS.get(act.resource, state)
        if state is State.RUNNING:
            expected = State.RUNNING
        if act.resource == "reschedulings" and state is State.AVAILABLE:
            expected = State.SCHEDULED
        assert scenes.state_of(job_id) is expected


@pytest.mark.parametrize(
    ("state", "resource", "says"),
    [
        (State.AVAILABLE, "cancellations", "Job {job} was cancelled."),
        (State.RUNNING, "cancellations", "Job {job} runs; its end has been requested."),
        (State.SCHEDULED, "expeditions", "Job {job} was expedited: it is available now."),
        (State.QUARANTINED, "reinstatements", "Job {job} was reinstated: it is available again."),
        (State.QUARANTINED, "discards", "Job {job} was discarded."),
        (State.AVAILABLE, "quarantines", "Job {job} is held back until somebody reinstates it."),
        (State.AVAILABLE, "reprioritisations", "Job {job} has priority 5 now."),
        (State.SCHEDULED, "reschedulings", "Job {job} is due at 2031-02-03 04:05:00 UTC now."),
    ],
)
def test_after_an_act_the_jobs_page_says_once_what_was_done(
    browser: Client, state: State, resource: str, says: str
) -> None:
    job_id = scenes.job_in(state)
    assert news(browser, post(browser, job_id, resource)) == says.format(job=job_id)
    assert 'class="news"' not in browser.get(f"/jobs/{job_id}/").content.decode()


def test_a_rerun_is_named_with_a_link(browser: Client) -> None:
    job_id = scenes.job_in(State.COMPLETED)
    response = post(browser, job_id, "reruns")
    page = browser.get(response.headers["Location"]).content.decode()
    [entry] = run(audit.entries(authority=SYSTEM, job_id=job_id))
    new = re.search(rf'<a href="/jobs/(\d+)/">\1</a> is the rerun of job <a href="/jobs/{job_id}/">', page)
    assert new
    assert f'"{new[1]}"' in entry.after
    assert f'<dt>Rerun as</dt><dd><a href="/jobs/{new[1]}/">' in page
    assert f'<a href="/jobs/{job_id}/">job {job_id}</a>' in browser.get(f"/jobs/{new[1]}/").content.decode()


def test_what_was_done_is_kept_with_person_reason_and_door(browser: Client) -> None:
    job_id = scenes.job()
    post(browser, job_id, "reprioritisations", reason="  month end ")
    [entry] = run(audit.entries(authority=SYSTEM, job_id=job_id))
    assert (entry.actor_name, entry.via, entry.act, entry.reason) == (
        "kim",
        "console",
        "reprioritise",
        "month end",
    )
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job
    assert job.priority == 5


def test_a_time_to_be_due_at_is_utc_whatever_the_projects_zone_is(
    browser: Client, settings: pytest.FixtureRequest
) -> None:
    settings.TIME_ZONE = "Asia/Shanghai"  # type: ignore[attr-defined]
    job_id = scenes.job()
    page = browser.get(f"/jobs/{job_id}/reschedulings/").content.decode()
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job
    assert f'value="{job.due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"' in page
    post(browser, job_id, "reschedulings")
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job
    assert job.due_at == datetime(2031, 2, 3, 4, 5, tzinfo=UTC)


def test_a_form_says_what_it_is_about_and_what_it_does(browser: Client) -> None:
    job_id = scenes.job_in(State.RUNNING)
    page = browser.get(f"/jobs/{job_id}/cancellations/").content.decode()
    assert f"Cancel job {job_id}?" in page
    assert "Its handler is asked to end; the job runs until it does." in page
    assert "send_invoice" in page
    assert re.search(r'<input id="id_reason"[^>]* maxlength="1000"[^>]* required', page)


def test_a_script_gets_the_form_alone(browser: Client) -> None:
    job_id = scenes.job()
    answer = browser.get(f"/jobs/{job_id}/cancellations/", headers={"HX-Request": "true"})
    form = answer.content.decode()
    assert "<html" not in form
    assert '<form class="act"' in form
    assert answer.headers["Cache-Control"] == "no-store"
    assert "HX-Request" in answer.headers["Vary"]


def test_the_form_of_a_job_that_has_moved_on_says_so_at_once(browser: Client) -> None:
    response = browser.get(f"/jobs/{scenes.job_in(State.COMPLETED)}/cancellations/")
    assert response.status_code == 409
    assert "has moved on: it is completed" in response.content.decode()


def test_a_page_from_before_the_job_moved_on_says_where_it_stands_and_what_can_be_done(browser: Client) -> None:
    job_id = scenes.job_in(State.QUARANTINED)
    page = browser.get(f"/jobs/{job_id}/reinstatements/").content.decode()
    run(operate.discard([job_id], authority=SYSTEM))
    response = post(browser, job_id, "reinstatements", request_id=hidden(page, "request_id"))
    assert response.status_code == 409
    page = response.content.decode()
    assert f"Job {job_id} has moved on: it is discarded" in page
    assert offered(page) == LEGAL[State.DISCARDED]
    assert f'href="/jobs/{job_id}/"' in page


@pytest.mark.requirement("B15")
@EACH
def test_without_its_permission_an_act_is_neither_offered_nor_asked_nor_done(db: None, act: JobAct) -> None:
    everything = ROLES["operator"] - {PERMISSIONS[act.act]}
    client = Client()
    client.force_login(scenes.person("lee", *everything))
    state = next(state for state in State if act.resource in LEGAL[state])
    job_id = scenes.job_in(state)
    assert offered(client.get(f"/jobs/{job_id}/").content.decode()) == LEGAL[state] - {act.resource}
    for response in (client.get(f"/jobs/{job_id}/{act.resource}/"), post(client, job_id, act.resource)):
        assert response.status_code == 403
        page = response.content.decode()
        assert PERMISSIONS[act.act] in page
        assert "shiftboss_roles" in page
    assert scenes.state_of(job_id) is state
    assert not run(audit.entries(authority=SYSTEM, job_id=job_id))


def test_a_superuser_may_do_everything(client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("root", password="x"))
    job_id = scenes.job_in(State.SCHEDULED)
    assert offered(client.get(f"/jobs/{job_id}/").content.decode()) == LEGAL[State.SCHEDULED]


def test_a_stranger_is_sent_to_the_login_and_from_there_to_the_form(client: Client, operator: User) -> None:
    job_id = scenes.job()
    response = post(client, job_id, "cancellations")
    assert response.headers["Location"] == f"/login/?next=/jobs/{job_id}/cancellations/"
    assert scenes.state_of(job_id) is State.AVAILABLE


def test_a_form_that_is_sent_twice_is_done_once_and_answers_as_the_first_time(browser: Client) -> None:
    job_id = scenes.job_in(State.COMPLETED)
    once = hidden(browser.get(f"/jobs/{job_id}/reruns/").content.decode(), "request_id")
    first = news(browser, post(browser, job_id, "reruns", request_id=once))
    again = news(browser, post(browser, job_id, "reruns", request_id=once))
    assert first == again
    assert len(run(read.jobs(authority=SYSTEM, state=State.AVAILABLE))) == 1
    assert len(run(audit.entries(authority=SYSTEM, job_id=job_id))) == 1
    other = hidden(browser.get(f"/jobs/{job_id}/reruns/").content.decode(), "request_id")
    assert news(browser, post(browser, job_id, "reruns", request_id=other)) != first


def test_a_form_that_was_sent_before_with_something_else_is_asked_again(browser: Client) -> None:
    job_id = scenes.job()
    once = hidden(browser.get(f"/jobs/{job_id}/reprioritisations/").content.decode(), "request_id")
    post(browser, job_id, "reprioritisations", request_id=once)
    response = post(browser, job_id, "reprioritisations", request_id=once, priority="9")
    assert response.status_code == 409
    page = response.content.decode()
    assert "this form had been sent before, with something else in it" in page
    assert 'name="priority" type="number"' in page
    assert 'value="9"' in page
    fresh = hidden(page, "request_id")
    assert fresh != once
    assert "priority 9" in news(
        browser, post(browser, job_id, "reprioritisations", request_id=fresh, priority="9")
    )


@pytest.fixture
def guarded(operator: User) -> Client:
    """The operator's browser in a project that checks forms."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    return client


def test_a_form_from_before_another_login_is_asked_again_with_all_that_was_typed(guarded: Client) -> None:
    job_id = scenes.job()
    page = guarded.get(f"/jobs/{job_id}/cancellations/").content.decode()
    stale = {name: hidden(page, name) for name in ("csrfmiddlewaretoken", "request_id")}
    login = hidden(Client(enforce_csrf_checks=True).get("/login/").content.decode(), "next")
    token = hidden(guarded.get("/login/").content.decode(), "csrfmiddlewaretoken")
    form = {"username": "kim", "password": "correct horse", "next": login, "csrfmiddlewaretoken": token}
    assert guarded.post("/login/", form).status_code == 302
    response = post(guarded, job_id, "cancellations", **stale)
    assert response.status_code == 403
    page = response.content.decode()
    assert "Nothing was done: this form is older than your login." in page
    assert 'value="the customer called"' in page
    assert hidden(page, "request_id") == stale["request_id"]
    assert scenes.state_of(job_id) is State.AVAILABLE
    fresh = {name: hidden(page, name) for name in stale}
    assert news(guarded, post(guarded, job_id, "cancellations", **fresh)) == f"Job {job_id} was cancelled."


def test_a_form_of_another_site_does_nothing_and_brings_no_text_along(guarded: Client) -> None:
    job_id = scenes.job()
    page = guarded.get(f"/jobs/{job_id}/cancellations/").content.decode()
    typed = {**TYPED, "csrfmiddlewaretoken": hidden(page, "csrfmiddlewaretoken")}
    response = guarded.post(f"/jobs/{job_id}/cancellations/", typed, headers={"Origin": "https://evil.example"})
    assert response.status_code == 403
    assert "not sent from an address that this site trusts" in response.content.decode()
    assert "the customer called" not in response.content.decode()
    assert scenes.state_of(job_id) is State.AVAILABLE


@EACH
def test_no_act_is_done_without_a_token(guarded: Client, act: JobAct) -> None:
    state = next(state for state in State if act.resource in LEGAL[state])
    job_id = scenes.job_in(state)
    assert post(guarded, job_id, act.resource).status_code == 403
    assert scenes.state_of(job_id) is state
    assert not run(audit.entries(authority=SYSTEM, job_id=job_id))


@pytest.mark.parametrize(
    ("resource", "typed", "says"),
    [
        ("cancellations", {"reason": "  "}, "Say in a few words why"),
        ("cancellations", {"reason": "r" * 1001}, "at most 1000 characters"),
        ("cancellations", {"reason": "a\x00b"}, "Null characters are not allowed"),
        ("reprioritisations", {"priority": "101"}, "less than or equal to 100"),
        ("reprioritisations", {"priority": "high"}, "Enter a whole number"),
        ("reschedulings", {"due_at": "tomorrow"}, "Write a date and a time of day, in UTC."),
        ("reschedulings", {"due_at": "9999-12-31T23:59-14:00"}, "Write a date and a time of day, in UTC."),
        ("cancellations", {"request_id": "i" * 101}, "at most 100 characters"),
    ],
)
def test_what_cannot_be_is_asked_again_beside_its_field(
    browser: Client, resource: str, typed: dict[str, str], says: str
) -> None:
    job_id = scenes.job()
    response = post(browser, job_id, resource, **typed)
    assert response.status_code == 422
    assert says in response.content.decode()
    assert scenes.state_of(job_id) is State.AVAILABLE
    assert not run(audit.entries(authority=SYSTEM, job_id=job_id))


@pytest.mark.parametrize("job_id", [999999999, 9223372036854775808, 0])
def test_an_act_on_an_unknown_job_is_not_found(browser: Client, job_id: int) -> None:
    for response in (browser.get(f"/jobs/{job_id}/reruns/"), post(browser, job_id, "reruns")):
        assert response.status_code == 404
        assert "There is no such job" in response.content.decode()


def test_a_resource_is_asked_for_or_posted_to_and_nothing_else(browser: Client) -> None:
    address = f"/jobs/{scenes.job()}/cancellations/"
    assert browser.put(address).status_code == 405
    assert browser.delete(address).status_code == 405
    assert browser.head(address).status_code == 200


@pytest.mark.requirement("N5", "P2")
def test_a_key_that_is_held_names_its_holder(browser: Client) -> None:
    worker = scenes.worker()
    done = scenes.job(key="invoice:7")
    scenes.completed(scenes.claimed(worker), worker)
    holder = scenes.job(key="invoice:7")
    response = post(browser, done, "reruns")
    assert response.status_code == 409
    page = response.content.decode()
    assert f"Job {holder} holds the key of job {done}" in page
    assert f'<a href="/jobs/{holder}/">job {holder}</a>' in page


@pytest.mark.django_db(transaction=True)
def test_a_job_that_somebody_else_has_in_hand_can_be_tried_again(
    browser: Client, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operate, "HOLD_MILLISECONDS", 50)
    monkeypatch.setattr(performing, "HOLD_MILLISECONDS", 50)
    job_id = scenes.job()
    with psycopg.connect(dsn) as other:
        other.execute("select from shiftboss_job where id = %s for update", [job_id])
        response = post(browser, job_id, "cancellations", request_id="r-1")
    assert response.status_code == 409
    page = response.content.decode()
    assert "something else was changing it just then. Try again." in page
    assert 'value="the customer called"' in page
    assert hidden(page, "request_id") == "r-1"
    assert (
        news(browser, post(browser, job_id, "cancellations", request_id="r-1")) == f"Job {job_id} was cancelled."
    )


def test_an_act_from_a_list_leads_back_to_that_list(browser: Client) -> None:
    job_id = scenes.job_in(State.QUARANTINED)
    listed = browser.get("/jobs/?state=quarantined&queue=default").content.decode()
    found = re.search(r'href="(/jobs/\d+/reinstatements/[^"]*)" data-dialog', listed)
    assert found
    address = unescape(found[1])
    assert f'action="{found[1]}"' in browser.get(address).content.decode()
    response = browser.post(address, TYPED)
    assert response.headers["Location"] == "/jobs/?state=quarantined&q=queue%3Adefault"
    assert f"Job {job_id} was reinstated" in news(browser, response)  # type: ignore[arg-type]


def test_an_address_with_a_filter_that_cannot_be_leads_nowhere(browser: Client) -> None:
    response = post(browser, scenes.job(), "cancellations", "?state=https://evil.example/")
    assert response.status_code == 400


def test_the_live_part_holds_no_form_so_that_no_refresh_can_change_one(browser: Client) -> None:
    job_id = scenes.job()
    for address in (f"/jobs/{job_id}/", "/jobs/?state=available", "/queues/"):
        part = browser.get(address, headers={"HX-Request": "true"}).content.decode()
        assert "data-dialog" in part
        assert "request_id" not in part
        assert "csrf" not in part


@pytest.mark.requirement("N6")
def test_what_was_asked_of_a_job_is_among_its_facts(browser: Client) -> None:
    job_id = scenes.job_in(State.RUNNING)
    post(browser, job_id, "cancellations")
    page = browser.get(f"/jobs/{job_id}/").content.decode()
    assert "Its end has been requested." in page
    assert re.search(r"<dt>End requested</dt><dd><time", page)
    assert "on request" in page
    assert offered(page) == set()
    assert Act.CANCEL in {entry.act for entry in run(audit.entries(authority=SYSTEM, job_id=job_id))}
