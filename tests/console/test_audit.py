"""The audit: who did what, when and why."""

import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client

from shiftboss import acts
from shiftboss.acts import many
from shiftboss.permissions import VIEW, Person, Via
from shiftboss.queue.states import State
from shiftboss.queue.store import audit
from shiftboss.queue.store.operate import Matching
from tests.console import scenes

pytestmark = pytest.mark.requirement("C4", "B6")


@pytest.fixture(autouse=True)
def _empty(db: None) -> None:
    """What tests that commit have left is no matter here; it comes back when the test ends."""
    with connection.cursor() as cursor:
        cursor.execute("set local shiftboss.truncate_audit = 'on'")
        cursor.execute("truncate shiftboss_audit")


@pytest.fixture
def kim(operator: object) -> Person:
    return Person.of_user(operator, via=Via.CONSOLE)


def lines(page: str) -> list[list[str]]:
    """The cells of each line as text."""
    found = re.findall(r'<tr data-key="act-\d+">(.*?)</tr>', page, re.DOTALL)
    return [
        [
            re.sub(r"<[^>]*>", "", cell).strip()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)
        ]
        for line in found
    ]


def shown(browser: Client, query: str = "") -> str:
    response = browser.get(f"/audit/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_an_act_tells_who_did_what_to_what_and_why(browser: Client, kim: Person) -> None:
    job_id = scenes.job()
    acts.quarantine(job_id, by=kim, reason="<b>hold</b> \N{RIGHT-TO-LEFT OVERRIDE}it")
    acts.pause("mail", by=kim, reason="down")
    page = shown(browser)
    paused, held = lines(page)
    assert paused[1:] == ["kim console", "Pause", "queue mail", "running → paused", "down"]
    assert held[1:5] == ["kim console", "Quarantine", f"job {job_id}", "available → quarantined Undo"]
    assert "&lt;b&gt;hold&lt;/b&gt;" in page
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page


def test_what_an_act_changed_is_said_in_its_own_words(browser: Client, kim: Person) -> None:
    job_id, running = scenes.job(due_at=datetime(2031, 1, 1, tzinfo=UTC)), scenes.job_in(State.RUNNING)
    acts.cancel(running, by=kim, reason="r")
    acts.reprioritise(job_id, by=kim, priority=-5)
    acts.reschedule(job_id, by=kim, due_at=datetime(2031, 2, 3, tzinfo=UTC))
    acts.cancel(job_id, by=kim, reason="r")
    rerun = acts.rerun(job_id, by=kim)
    acts.purge(datetime(2020, 1, 1).date(), by=Person.of_shell(), reason="r")
    assert [line[4] for line in lines(shown(browser))] == [
        "history before 2020-01-01",
        f"→ job {rerun.new_job_id}",
        "scheduled → cancelled",
        "2031-01-01 00:00:00 UTC → 2031-02-03 00:00:00 UTC",
        "0 → -5",
        "end requested",
    ]


def test_the_batches_of_one_operation_are_one_line_with_their_sum(
    browser: Client, kim: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "BULK_BATCH", 2)
    for _ in range(5):
        scenes.job(queue="mail")
    which = Matching(states=frozenset({State.AVAILABLE}), queue="mail")
    list(acts.cancel_matching(which, by=kim, reason="wrong import"))
    [line] = lines(shown(browser))
    assert line[2:] == ["Cancel", "5 jobs, queue mail", "5 available → 5 cancelled", "wrong import"]


def test_pages_lead_through_all_acts_once(browser: Client, kim: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PAGE", 3)
    job_id = scenes.job()
    for priority in range(1, 8):
        acts.reprioritise(job_id, by=kim, priority=priority)
    acts.pause("mail", by=kim, reason="other")
    seen = []
    query = f"?job={job_id}"
    while query:
        page = shown(browser, query)
        seen += [line[4] for line in lines(page)]
        found = re.search(r'rel="next" href="([^"]*)"', page)
        query = found[1].replace("&amp;", "&") if found else ""
    assert seen == [f"{n - 1} → {n}" for n in range(7, 0, -1)]
    assert f'href="/audit/?job={job_id}"' in page


def test_an_empty_audit_says_what_will_be_seen(browser: Client) -> None:
    assert "Nobody has acted yet." in shown(browser)
    assert "Nobody has acted on this job." in shown(browser, "?job=7")
    assert "No acts on this side of the list." in shown(browser, "?before=1")


@pytest.mark.parametrize("query", ["job=x", "before=-1", f"job={'9' * 40}", "job=%00"])
def test_an_address_that_cannot_be_read_is_answered_not_broken(browser: Client, query: str) -> None:
    assert browser.get(f"/audit/?{query}").status_code == 400


def test_the_audit_is_a_permission_of_its_own(client: Client, kim: Person) -> None:
    job_id = scenes.job()
    acts.quarantine(job_id, by=kim, reason="a secret reason")
    client.force_login(scenes.person("lee", VIEW))
    response = client.get("/audit/")
    assert response.status_code == 403
    assert "shiftboss.view_audit" in response.content.decode()
    page = client.get(f"/jobs/{job_id}/").content.decode()
    assert "a secret reason" not in page
    assert "/audit/" not in page


def test_a_jobs_page_tells_of_the_acts_on_it(browser: Client, kim: Person) -> None:
    job_id = scenes.job()
    acts.quarantine(job_id, by=kim, reason="hold it")
    page = browser.get(f"/jobs/{job_id}/").content.decode()
    [line] = lines(page)
    assert line[1:] == ["kim console", "Quarantine", "available → quarantined", "hold it"]
    assert "by kim, while available" in page


def test_the_list_is_narrowed_by_who_what_and_from_where(browser: Client, kim: Person) -> None:
    job_id = scenes.job()
    acts.reprioritise(job_id, by=kim, priority=1)
    acts.pause("mail", by=Person.of_shell(), reason="down")
    acts.resume("mail", by=kim)
    assert [line[2] for line in lines(shown(browser, "?by=KI"))] == ["Resume", "Change priority"]
    assert [line[2] for line in lines(shown(browser, "?act=pause"))] == ["Pause"]
    assert [line[2] for line in lines(shown(browser, "?via=cli"))] == ["Pause"]
    assert [line[2] for line in lines(shown(browser, "?queue=mail&by=kim"))] == ["Resume"]
    assert lines(shown(browser, "?by=%25")) == []  # no sign is a wildcard
    page = shown(browser, "?by=kim&act=resume")
    assert '<option value="resume" selected>' in page
    assert 'name="by" type="text" maxlength="200" size="12" value="kim"' in page
    assert "No act is like that." in shown(browser, "?by=nobody-at-all")


def test_a_narrowed_list_says_how_far_back_it_looked_and_goes_on_from_there(
    browser: Client, kim: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "REACH", 3)
    acts.pause("mail", by=kim, reason="first")
    for _ in range(3):
        acts.resume("mail", by=kim)
    page = shown(browser, "?act=pause")
    assert lines(page) == []
    assert "The newest 3 acts were looked at, back to" in page
    further = re.search(r'rel="next" href="([^"]*)">Look further back', page)
    assert further
    assert [line[2] for line in lines(shown(browser, further[1].replace("&amp;", "&")))] == ["Pause"]


@pytest.mark.parametrize(
    "query", ["?act=nothing", "?via=x", "?by=%00", "?by=" + "x" * 201, "?queue=%00", "?job=x"]
)
def test_what_cannot_be_asked_is_refused(browser: Client, query: str) -> None:
    assert browser.get(f"/audit/{query}").status_code == 400
