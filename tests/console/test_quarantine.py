"""The page of the quarantine, and acts on all jobs of a reason."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from shiftboss.acts import many, undoing
from shiftboss.console.views import sweeping
from shiftboss.permissions import PERMISSIONS, VIEW, Act
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, operate
from shiftboss.queue.store import many as store
from shiftboss.queue.store.statement import run
from tests.console import scenes

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C3", "C4", "B6")]
SYSTEM = scenes.SYSTEM
FAILED = "?reason=failures_exhausted"


def held(
    n: int, *, task: str = scenes.TASK, message: str = "mailbox unavailable", type: str = "OSError"
) -> list[int]:
    """Jobs that failed as often as they may."""
    worker = scenes.worker()
    ids = [scenes.job(task, max_attempts=1) for _ in range(n)]
    scenes.failed(scenes.claimed(worker, tasks=[task], limit=n), worker, message=message, type=type)
    return ids


def text(response: HttpResponse) -> str:
    """What the page says, without its tags."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", response.content.decode())))


def show(browser: Client, path: str) -> HttpResponse:
    response: HttpResponse = browser.get(path)  # type: ignore[assignment]
    return response


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the form on a page."""
    form = page.partition('<form class="act')[2].partition("</form>")[0]
    return {
        name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    }


def test_an_empty_quarantine_says_what_comes_there(browser: Client) -> None:
    assert "No job is quarantined." in text(show(browser, "/quarantine/"))


def test_jobs_stand_by_reason_task_and_error_with_an_example_and_their_list(browser: Client) -> None:
    jobs = held(3)
    others = held(1, task="shop.tasks.other", message="no such file")
    held_back = scenes.job()
    run(operate.quarantine([held_back], authority=SYSTEM, by="kim"))
    said = text(show(browser, "/quarantine/"))
    assert "4 jobs · failed too often" in said
    assert "1 job · held back by an operator" in said
    assert said.index("failed too often") < said.index("held back by")
    assert "mailbox unavailable" in said
    assert "no such file" in said
    page = show(browser, "/quarantine/").content.decode()
    assert f'href="/jobs/{jobs[-1]}/#attempts"' in page
    assert f'href="/jobs/{others[0]}/#attempts"' in page
    queries = re.findall(r'href="/jobs/(\?[^"]*)"', page.partition('class="held"')[2])
    assert len(queries) == 5
    for query in queries:
        listed = show(browser, "/jobs/" + unescape(query)).content.decode()
        assert 'role="alert"' not in listed
        assert 'data-key="' in listed


def test_of_a_large_reason_the_newest_are_looked_at_and_the_count_is_the_samples(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOOKED", 2)
    monkeypatch.setattr("shiftboss.console.held.LOOKED", 2)
    held(3)
    said = text(show(browser, "/quarantine/"))
    assert "3 jobs · failed too often" in said
    assert "Of the newest 2" in said


def test_the_page_costs_few_statements_however_many_reasons_there_are(
    browser: Client, django_assert_max_num_queries: object
) -> None:
    held(2)
    with scenes.maintained(), django_assert_max_num_queries(12):  # type: ignore[operator]
        show(browser, "/quarantine/")


def test_hostile_errors_and_tasks_are_written_as_text(browser: Client) -> None:
    held(1, message="<script>alert(1)</script>\u202e", type="<b>\x1b[31m")
    page = show(browser, "/quarantine/").content.decode()
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("resource", "question", "after", "undo"),
    [
        ("reinstatements", "Reinstate 3 jobs?", State.AVAILABLE, True),
        ("discards", "Discard 3 jobs?", State.DISCARDED, False),
    ],
)
def test_a_whole_reason_is_changed_after_a_preview_and_the_end_is_told(
    browser: Client, resource: str, question: str, after: State, undo: bool
) -> None:
    jobs = held(2)
    jobs += held(1, task="shop.tasks.other")
    address = f"/quarantine/{resource}/{FAILED}"
    preview = show(browser, address)
    assert question in text(preview)
    assert "shop.tasks.other" in text(preview).replace("\u200b", "")
    assert {scenes.state_of(job_id) for job_id in jobs} == {State.QUARANTINED}
    typed = hidden(preview.content.decode()) | {"reason": "mail server is back"}
    response = browser.post(address, typed)
    assert (response.status_code, response.headers["Location"]) == (303, "/quarantine/")
    page = browser.get("/quarantine/").content.decode()
    assert "3 jobs were" in page
    assert ("/undoings/" in page) is undo
    assert {scenes.state_of(job_id) for job_id in jobs} == {after}
    [row] = run(audit.entries(authority=SYSTEM, limit=2))
    assert (row.jobs, row.reason) == (3, "mail server is back")


def test_one_kind_of_a_reason_is_changed_and_no_other(browser: Client) -> None:
    jobs, others = held(2), held(1, task="shop.tasks.other")
    page = show(browser, "/quarantine/").content.decode()
    [address] = [
        unescape(found)
        for found in re.findall(r'href="(/quarantine/reinstatements/[^"]*)"', page)
        if "other" in found
    ]
    browser.post(address, {"reason": ""})
    assert scenes.state_of(others[0]) is State.AVAILABLE
    assert {scenes.state_of(job_id) for job_id in jobs} == {State.QUARANTINED}


def test_a_long_act_tells_how_far_it_is_and_goes_on_from_there(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "BULK_BATCH", 2)
    monkeypatch.setattr(sweeping, "STEP_SECONDS", 0.0)
    jobs = held(3)
    address = f"/quarantine/discards/{FAILED}"
    typed = hidden(show(browser, address).content.decode()) | {"reason": "customer is gone"}
    response = browser.post(address, typed)
    assert response.status_code == 200
    assert "2 of about 3" in text(response)  # type: ignore[arg-type]
    steps = 0
    while response.status_code == 200:
        response = browser.post(address, hidden(response.content.decode()))
        steps += 1
        assert steps < 10
    assert "3 jobs were discarded." in text(show(browser, response.headers["Location"]))
    assert {scenes.state_of(job_id) for job_id in jobs} == {State.DISCARDED}
    rows = run(audit.entries(authority=SYSTEM, limit=5))
    assert [row.jobs for row in rows] == [1, 2]
    assert len({row.operation for row in rows}) == 1


def test_how_far_an_act_is_is_believed_of_its_own_form_only(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "BULK_BATCH", 1)
    monkeypatch.setattr(sweeping, "STEP_SECONDS", 0.0)
    jobs = held(2)
    first = browser.post(f"/quarantine/discards/{FAILED}", {"reason": "customer is gone"})
    typed = hidden(first.content.decode())
    for address, so_far in (
        (f"/quarantine/discards/{FAILED}", "forged"),
        ("/quarantine/discards/?reason=poison", typed["so_far"]),
    ):
        response = browser.post(address, typed | {"so_far": so_far})
        assert response.status_code == 403
    assert sorted(scenes.state_of(job_id) for job_id in jobs) == [State.DISCARDED, State.QUARANTINED]


def test_the_same_form_sent_twice_is_done_once_and_says_the_same(browser: Client) -> None:
    held(2)
    address = f"/quarantine/reinstatements/{FAILED}"
    typed = hidden(show(browser, address).content.decode()) | {"reason": ""}
    said = []
    for _ in range(2):
        browser.post(address, typed)
        said.append(re.findall(r'<p class="news"[^>]*>(.*?)</p>', browser.get("/quarantine/").content.decode()))
    assert said[0] == said[1]
    assert len(run(audit.entries(authority=SYSTEM, limit=5))) == 1


def test_where_nothing_is_held_any_more_nothing_is_asked(browser: Client) -> None:
    response = show(browser, f"/quarantine/discards/{FAILED}")
    assert "No such job is quarantined any more" in text(response)
    assert browser.get("/quarantine/discards/?reason=nothing").status_code == 400
    assert browser.get("/quarantine/discards/").status_code == 400


@pytest.mark.parametrize(("resource", "act"), [("reinstatements", Act.REINSTATE), ("discards", Act.DISCARD)])
def test_acts_on_a_reason_are_offered_and_done_with_their_permission_only(
    client: Client, resource: str, act: Act
) -> None:
    [job_id] = held(1)
    client.force_login(scenes.person("vic", VIEW))
    page = show(client, "/quarantine/").content.decode()
    assert "/quarantine/discards/" not in page
    assert "/quarantine/reinstatements/" not in page
    address = f"/quarantine/{resource}/{FAILED}"
    for response in (client.get(address), client.post(address, {"reason": "because"})):
        assert response.status_code == 403
        assert PERMISSIONS[act] in response.content.decode()
    assert scenes.state_of(job_id) is State.QUARANTINED


def test_an_act_on_a_reason_wants_a_token_against_forged_forms(operator: User) -> None:
    [job_id] = held(1)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(operator)
    assert browser.post(f"/quarantine/discards/{FAILED}", {"reason": "because"}).status_code == 403
    assert scenes.state_of(job_id) is State.QUARANTINED


def test_the_audit_says_of_which_reason_the_jobs_were_and_offers_the_undo_while_it_can_be(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job_id] = held(1)
    browser.post(f"/quarantine/reinstatements/{FAILED}", {"reason": "mail server is back"})
    browser.get("/")
    audited = show(browser, "/audit/")
    assert "1 job failed too often" in text(audited)
    [undo] = re.findall(r'href="(/operations/[^"]*/undoings/)"', audited.content.decode())
    browser.post(undo, {"reason": "too early"})
    browser.get("/")
    audited = show(browser, "/audit/")
    assert "Quarantine, to undo" in text(audited)
    assert scenes.state_of(job_id) is State.QUARANTINED
    monkeypatch.setattr(undoing, "UNDO_SECONDS", 0.0)
    assert "/undoings/" not in show(browser, "/audit/").content.decode()


def test_an_act_on_one_job_is_undone_from_the_audit_as_well(browser: Client) -> None:
    [job_id] = held(1)
    browser.post(f"/jobs/{job_id}/reinstatements/", {"reason": ""})
    [undo] = re.findall(r'href="(/operations/[^"]*/undoings/)"', show(browser, "/audit/").content.decode())
    browser.post(undo, {"reason": "too early"})
    assert scenes.state_of(job_id) is State.QUARANTINED
