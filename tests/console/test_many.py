"""Acts on chosen jobs of a list: what is offered, foreseen, done and told."""

import re
from html import unescape

import pytest
from django.http import HttpResponse
from django.test import Client

from shiftboss import acts
from shiftboss.console.offers import JobAct
from shiftboss.console.views.many import ACTS
from shiftboss.permissions import PERMISSIONS, VIEW, Act
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.console import scenes

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "C4", "B6")]
SYSTEM = scenes.SYSTEM


def offered(page: str) -> set[str]:
    """The acts whose buttons stand above a list."""
    return set(re.findall(r'formaction="/jobs/many/(\w+)/"', page))


def text(response: HttpResponse) -> str:
    """What the page says, without its tags."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", response.content.decode())))


def address(resource: str, *jobs: int, state: str = "any") -> str:
    return f"/jobs/many/{resource}/?state={state}" + "".join(f"&job={job_id}" for job_id in jobs)


def sent(browser: Client, resource: str, *jobs: int, state: str = "any", **typed: str) -> HttpResponse:
    """The answer to the form, as its page has it."""
    page = browser.get(address(resource, *jobs, state=state)).content.decode()
    found = re.search(r'name="request_id" value="([^"]*)"', page)
    typed = {"reason": "the customer called", "request_id": found[1] if found else "", **typed}
    return browser.post(address(resource, *jobs, state=state), typed)  # type: ignore[return-value]


def news(browser: Client, response: HttpResponse) -> str:
    """What the page says to which an act has led."""
    assert response.status_code == 303, response.content.decode()
    page = browser.get(response.headers["Location"]).content.decode()
    found = re.search(r'<p class="news"[^>]*>(.*?)</p>', page)
    assert found
    return re.sub(r"<[^>]*>", "", found[1])


@pytest.mark.parametrize(
    ("state", "acts"),
    [
        (State.SCHEDULED, {"expeditions", "cancellations", "quarantines"}),
        (State.AVAILABLE, {"cancellations", "quarantines"}),
        (State.RUNNING, {"cancellations"}),
        (State.QUARANTINED, {"reinstatements", "discards", "cancellations"}),
        (State.COMPLETED, {"reruns"}),
    ],
)
def test_a_list_offers_the_acts_on_many_that_its_states_allow(
    browser: Client, state: State, acts: set[str]
) -> None:
    job_id = scenes.job_in(state)
    page = browser.get(f"/jobs/?state={state}").content.decode()
    assert offered(page) == acts
    assert f'name="job" value="{job_id}" form="selection"' in page


def test_who_may_not_act_chooses_nothing(client: Client) -> None:
    client.force_login(scenes.person("vic", VIEW))
    scenes.job()
    page = client.get("/jobs/?state=available").content.decode()
    assert offered(page) == set()
    assert 'name="job"' not in page


def test_the_preview_says_how_many_would_change_and_of_the_others_why_not(browser: Client) -> None:
    waiting = [scenes.job_in(State.SCHEDULED, queue="a"), scenes.job_in(State.SCHEDULED, queue="a")]
    running = scenes.job_in(State.RUNNING, queue="b")
    ended = scenes.job_in(State.COMPLETED, queue="c")
    said = text(browser.get(address("cancellations", *waiting, running, ended, 10**9)))  # type: ignore[arg-type]
    assert "Cancel 3 jobs?" in said
    assert "2 scheduled: they will not run" in said
    assert "1 running: its handler is asked to end" in said
    assert "1 it is completed" in said
    assert "1 there is no such job" in said
    assert "This cannot be undone. The jobs stay in the history, from where they can be rerun." in said
    assert [scenes.state_of(job_id) for job_id in waiting] == [State.SCHEDULED] * 2


def test_the_list_says_what_was_done_to_each_and_who_was_left_and_why(browser: Client) -> None:
    waiting = [scenes.job_in(State.SCHEDULED, queue="a"), scenes.job_in(State.SCHEDULED, queue="a")]
    running = scenes.job_in(State.RUNNING, queue="b")
    moved_on = scenes.job(queue="c")
    browser.get(address("cancellations", *waiting, running, moved_on))
    run(operate.cancel([moved_on], authority=SYSTEM))
    response = sent(browser, "cancellations", *waiting, running, moved_on, state="scheduled")
    assert response.headers["Location"] == "/jobs/?state=scheduled"
    said = news(browser, response)
    assert "2 jobs were cancelled." in said
    assert "1 job runs; its end has been requested." in said
    assert f"1 job was left as it is: {moved_on}: it is cancelled." in said
    assert [scenes.state_of(job_id) for job_id in waiting] == [State.CANCELLED] * 2
    [row] = run(audit.entries(authority=SYSTEM, limit=1))
    assert (row.act, row.jobs, row.reason) == ("cancel", 3, "the customer called")


def test_a_form_that_is_sent_twice_is_done_once_and_says_the_same(browser: Client) -> None:
    done = [scenes.job_in(State.COMPLETED, queue="a"), scenes.job_in(State.COMPLETED, queue="b")]
    page = browser.get(address("reruns", *done)).content.decode()
    [request_id] = re.findall(r'name="request_id" value="([^"]*)"', page)
    said = [
        news(browser, browser.post(address("reruns", *done), {"reason": "", "request_id": request_id}))  # type: ignore[arg-type]
        for _ in range(2)
    ]
    assert said[0] == said[1]
    assert said[0].startswith("2 jobs run again. New: ")
    assert len(run(audit.entries(authority=SYSTEM, limit=5))) == 1


def test_a_wanted_reason_is_asked_for_and_nothing_is_done_without_it(browser: Client) -> None:
    job_id = scenes.job()
    response = sent(browser, "cancellations", job_id, reason="")
    assert response.status_code == 422
    assert "Say in a few words why" in text(response)
    assert scenes.state_of(job_id) is State.AVAILABLE


def test_where_none_of_the_chosen_jobs_can_be_changed_nothing_is_asked(browser: Client) -> None:
    job_id = scenes.job_in(State.COMPLETED)
    response: HttpResponse = browser.get(address("cancellations", job_id))  # type: ignore[assignment]
    assert "None of the selected jobs can be changed so" in text(response)
    assert "<form" not in response.content.decode().partition("<main")[2]
    assert "No job is selected" in text(browser.get(address("cancellations")))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query", ["job=0", "job=x", "job=7&state=nowhere", "&".join(["job=%d"] * 1001) % (*range(1, 1002),)]
)
def test_an_address_that_cannot_be_meant_is_refused(browser: Client, query: str) -> None:
    assert browser.get(f"/jobs/many/cancellations/?{query}").status_code == 400


@pytest.mark.parametrize("act", ACTS, ids=[act.resource for act in ACTS])
def test_an_act_on_many_is_refused_to_who_lacks_its_permission(client: Client, act: JobAct) -> None:
    others = set(PERMISSIONS.values()) - {PERMISSIONS[act.act]}
    client.force_login(scenes.person("vic", VIEW, *sorted(others)))
    job_id = scenes.job()
    for response in (client.get(address(act.resource, job_id)), client.post(address(act.resource, job_id), {})):
        assert response.status_code == 403
        assert PERMISSIONS[act.act] in response.content.decode()
    assert scenes.state_of(job_id) is State.AVAILABLE


def test_an_act_on_many_wants_a_token_against_forged_forms(operator: object) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(operator)  # type: ignore[arg-type]
    job_id = scenes.job()
    response = browser.post(address("cancellations", job_id), {"reason": "because"})
    assert response.status_code == 403
    assert scenes.state_of(job_id) is State.AVAILABLE


def undo_link(browser: Client, response: HttpResponse) -> str | None:
    """Where the undo of what was done is offered."""
    page = browser.get(response.headers["Location"]).content.decode()
    found = re.search(r'href="(/operations/[^"]*/undoings/)"', page)
    return found and found[1]


@pytest.mark.parametrize(
    ("state", "resource", "after"),
    [(State.QUARANTINED, "reinstatements", State.QUARANTINED), (State.SCHEDULED, "quarantines", State.AVAILABLE)],
)
def test_what_can_be_undone_is_undone_from_the_page_that_says_what_was_done(
    browser: Client, state: State, resource: str, after: State
) -> None:
    jobs = [scenes.job_in(state, queue="a"), scenes.job_in(state, queue="a")]
    link = undo_link(browser, sent(browser, resource, *jobs))
    assert link
    page = browser.get(link).content.decode()
    assert "Undo this?" in page
    assert "done by mistake" in page
    response = browser.post(link, {"reason": "done by mistake"})
    assert response.status_code == 303
    assert [scenes.state_of(job_id) for job_id in jobs] == [after] * 2
    [row, _] = run(audit.entries(authority=SYSTEM, limit=2))
    assert (row.jobs, row.reason) == (2, "done by mistake")


def test_what_cannot_be_undone_offers_no_undo_and_its_page_says_what_to_do_instead(browser: Client) -> None:
    job_id = scenes.job()
    assert undo_link(browser, sent(browser, "cancellations", job_id)) is None
    [row] = run(audit.entries(authority=SYSTEM, limit=1))
    link = f"/operations/{row.operation}/undoings/"
    for response in (browser.get(link), browser.post(link, {"reason": "because"})):
        assert response.status_code in {409, 422}
        assert "rerun those that are to run after all" in response.content.decode()
    assert browser.get("/operations/00000000-0000-4000-8000-000000000000/undoings/").status_code == 404


def test_an_undo_needs_the_permission_of_the_act_that_undoes(client: Client, browser: Client) -> None:
    link = undo_link(browser, sent(browser, "reinstatements", scenes.job_in(State.QUARANTINED)))
    assert link
    client.force_login(scenes.person("vic", VIEW, PERMISSIONS[Act.REINSTATE]))
    response = client.get(link)
    assert response.status_code == 403
    assert PERMISSIONS[Act.QUARANTINE] in response.content.decode()


@pytest.mark.parametrize("act", ACTS, ids=[act.resource for act in ACTS])
def test_jobs_in_all_states_sent_together_are_changed_where_that_is_legal_and_the_others_told_of(
    browser: Client, act: JobAct
) -> None:
    jobs = {state: scenes.job_in(state, queue=state) for state in State}
    legal = {state for state in State if act.act in acts.legal(state)}
    said = news(browser, sent(browser, act.resource, *jobs.values()))
    [row] = [row for row in run(audit.entries(authority=SYSTEM, limit=5)) if row.act == act.act]
    assert row.jobs == len(legal)
    for state, job_id in jobs.items():
        if state in legal:
            assert f"{job_id}: it is" not in said
        else:
            assert f"{job_id}: it is {state}" in said
            assert scenes.state_of(job_id) is state


def test_what_was_done_to_many_stands_on_the_page_of_each_with_its_new_job(browser: Client) -> None:
    one, other = (scenes.completed_job(scenes.worker()) for _ in range(2))
    done = acts.on_many(Act.RERUN, [one, other], by=person("lee"), reason="the relay is back")
    for job_id in (one, other):
        page = browser.get(f"/jobs/{job_id}/").content.decode()
        [row] = re.findall(r'<tr data-key="act-\d+">(.*?)</tr>', page, re.DOTALL)
        assert "lee" in row
        assert "the relay is back" in row
        assert "2 completed → 2 available" in row
        assert f'href="/jobs/{done.new_jobs[job_id]}/"' in row
