"""The pages of rolling restarts, and the same for programs that ask the API."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from shiftboss import acts
from shiftboss.permissions import VIEW
from shiftboss.queue.store import audit, rolls
from shiftboss.queue.store.rolls import Move
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told, user
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("L31", "C3")]

HOSTILE = "<script>alert(1)</script>\N{RIGHT-TO-LEFT OVERRIDE}"
PROGRAMS = [{"name": f"worker-default-{n}", "pool": "default"} for n in (1, 2)]


@pytest.fixture
def fence() -> int:
    """That of the agent of a host with two workers."""
    return making.a_host(programs=PROGRAMS, lease_seconds=3600.0)


@pytest.fixture
def admin() -> Client:
    """An administrator's browser."""
    client = Client()
    client.force_login(scenes.person("ada", role="admin"))
    return client


def begun(reason: str = "new code") -> int:
    """A roll that runs."""
    number = acts.roll_pool("default", by=person(), reason=reason).roll_id
    assert number
    return number


def moved(fence: int, *states: str, why: str | None = None) -> None:
    """Let the agent bring its step into these states."""
    for state in states:
        of = run(rolls.step(authority=making.SYSTEM, host="web-1"))
        assert of
        known: dict[str, Any] = {"code_version": "v2", "worker_id": 17} if state == "done" else {}
        to = Move(to=state, why=why if state == "failed" else None, **known)
        assert run(rolls.move(of, to, authority=making.SYSTEM, host="web-1", fence=fence))


def text_of(browser: Client, address: str, status: int = 200) -> str:
    """A page's text, without its markup."""
    response = browser.get(address)
    assert response.status_code == status, response.content
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.content.decode())).split())


def sent(browser: Client, address: str, **typed: str) -> str:
    """Where a form leads that is filled in and sent."""
    page = browser.get(address).content.decode()
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    answer = browser.post(address, {**{name: unescape(value) for name, value in hidden}, **typed})
    assert answer.status_code == 303, answer.content
    return str(answer.headers["Location"])


def test_a_roll_is_begun_followed_and_cancelled(admin: Client, fence: int) -> None:
    assert "No workers were restarted" in text_of(admin, "/rolls/")
    assert "2 workers are up." in text_of(admin, "/rolls/beginnings/")
    there = sent(admin, "/rolls/beginnings/", pool="default", reason="new code")
    number = run(rolls.rolls(authority=making.SYSTEM))[0].id
    assert there == f"/rolls/{number}/"
    page = text_of(admin, there)
    assert f"Rolling restart {number} has begun: 2 workers, one after the other." in page
    assert "under way 0 of 2 workers One worker at a time: the others go on." in page
    moved(fence, "draining")
    assert "worker-default-1 1 web-1 finishes what it runs" in text_of(admin, there)
    moved(fence, "starting", "proving", "done")
    page = text_of(admin, there)
    assert "worker-default-1 1 web-1 done" in page
    assert "– → v2" in page
    assert f"Rolling restart {number} runs" in text_of(admin, "/rolls/beginnings/")
    assert sent(admin, f"{there}cancellations/", reason="it leaks") == there
    page = text_of(admin, there)
    assert f"Rolling restart {number} is cancelled: no further worker is touched." in page
    assert "cancelled 1 of 2 workers No further worker was touched." in page
    assert "There is nothing to cancel any more" in text_of(admin, f"{there}cancellations/", status=409)
    [line] = re.findall(rf'<tr data-key="{number}".*?</tr>', admin.get("/rolls/").content.decode(), re.DOTALL)
    assert "1 of 2" in line


def test_why_one_has_stopped_is_told_and_does_no_harm(admin: Client, fence: int) -> None:
    number = begun(HOSTILE)
    moved(fence, "draining", "starting", "failed", why=f"exit code 1 {HOSTILE}")
    for address in (f"/rolls/{number}/", "/rolls/"):
        page = admin.get(address).content.decode()
        assert "<script>alert" not in page
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page
        assert "worker-default-1 on web-1: exit code 1" in page
    assert "The workers after it were not touched." in text_of(admin, f"/rolls/{number}/")


def test_a_second_one_is_refused_and_one_that_waits_for_a_silent_host_says_so(admin: Client, fence: int) -> None:
    page = admin.get("/rolls/beginnings/").content.decode()
    number = begun()
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]*)"', page)
    answer = admin.post("/rolls/beginnings/", {"reason": "r", "csrfmiddlewaretoken": token})
    assert answer.status_code == 409
    assert "Another rolling restart runs" in answer.content.decode()
    making.execute("update shiftboss_host set lease_seconds = 10, heartbeat_at = now() - interval '30 seconds'")
    assert "It waits for a host whose agent is silent" in text_of(admin, f"/rolls/{number}/")
    assert "There is no such rolling restart" in text_of(admin, "/rolls/987654/", status=404)


def test_who_may_only_look_is_offered_nothing(fence: int) -> None:
    viewer = Client()
    viewer.force_login(scenes.person("vic", VIEW))
    number = begun()
    for address in ("/rolls/", f"/rolls/{number}/"):
        page = viewer.get(address).content.decode()
        assert "cancellations" not in page
        assert "beginnings" not in page


def test_the_api_begins_tells_and_cancels(fence: int) -> None:
    caller = Caller(token=token_of(user("api-ada", role="admin")))
    answer = told(caller.post("rolls/begin", {"pool": "default", "reason": "new code", "code_wanted": "v2"}))
    number = answer["roll_id"]
    assert (answer["act"], answer["items"]) == ("roll_pool", 2)
    refused = problem(caller.post("rolls/begin", {"reason": "again"}), 409, "roll_refused")
    assert refused["roll_id"] == number
    moved(fence, "draining", "starting", "proving", "done")
    roll = told(caller.get(f"rolls/{number}"))
    assert (roll["state"], roll["done"], roll["workers"], roll["code_after"]) == ("running", 1, 2, ["v2"])
    assert [step["state"] for step in roll["steps"]] == ["done", "waiting"]
    assert told(caller.post(f"rolls/{number}/cancel", {"reason": "it leaks"}))["after"] == "cancelled"
    assert [(one["id"], one["state"]) for one in told(caller.get("rolls"))["rolls"]] == [(number, "cancelled")]
    for missing in ("rolls/987654", "rolls/x", f"rolls/{2**63}"):
        problem(caller.get(missing), 404, "no_such_roll")
    assert [entry.act for entry in run(audit.entries(authority=making.SYSTEM))][:2] == ["cancel_roll", "roll_pool"]
