"""What the page of a program tells of its loop of crashes, and how a person lets it go."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from shiftboss.console import looping
from shiftboss.queue.store import holds, hosts
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told, user
from tests.console.test_hosts import HOSTILE, a_host, page, sent
from tests.store import making
from tests.store.making import execute

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B2", "C3")]

AT = datetime(2026, 1, 1, 14, 2, tzinfo=UTC)
END = {
    "process": "7",
    "host": "web-1",
    "program": "web",
    "ended_at": AT.isoformat(),
    "ending": "signal",
    "code": None,
    "signal": 9,
    "uptime_seconds": 5.0,
    "version": "v8",
    "jobs": ["4711", "4712"],
    "more_jobs": 3,
}
WHY: dict[str, Any] = {
    "times": 4,
    "seconds": 40.0,
    "ends": [END],
    "line": "no disk",
    "line_times": 3,
    "version": "v8",
    "version_before": "v7",
}


def words(markup: str) -> str:
    """A page without its markup."""
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", markup)).split())
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_tells_why_a_program_is_held_back_and_until_when(browser: Client) -> None:
    making.a_hold(a_host("web-1", {"name": "web", "state": "STOPPED", "launcher": None}), evidence=WHY, step=2)
    told = words(page(browser, "/hosts/web-1/web/"))
    assert "It crashes in a loop: it ended 4 times in 40 s, and nobody had asked it to." in told
    assert "That is 2 times in a row, each time for longer." in told
    assert "It began with version v8 : before, v7 ran." in told
    assert "The last line of 3 of 4: no disk" in told
    assert "signal 9 (SIGKILL)" in told
    assert "4711 , 4712 and 3 more" in told
    assert "crashes in a loop, held back until" in words(page(browser))


def test_a_person_lets_it_go_also_where_nobody_hears_its_host(browser: Client) -> None:
    hold_id = making.a_hold(a_host("web-1", {"name": "web", "state": "STOPPED", "launcher": None}), evidence=WHY)
    execute("update shiftboss_host set stopped_at = now()")
    assert "/hosts/web-1/web/releases/" in page(browser, "/hosts/web-1/web/")
    assert sent(browser, "/hosts/web-1/web/releases/", reason="mended").status_code == 303
    [row] = run(holds.holds(authority=scenes.SYSTEM))
    assert (row.id, row.released_as) == (hold_id, "release")
    after = page(browser, "/hosts/web-1/web/")
    assert "web is held back no more: the agent of web-1 starts it." in words(after)
    assert "/hosts/web-1/web/releases/" not in after
    assert browser.post("/hosts/web-1/web/releases/", {"reason": "again"}).status_code in (404, 409)


def test_what_a_program_has_written_does_no_harm(browser: Client) -> None:
    end = {**END, "version": HOSTILE, "jobs": [HOSTILE], "program": HOSTILE}
    making.a_hold(
        a_host("web-1", {"name": "web"}), evidence={**WHY, "line": HOSTILE, "ends": [end], "version": HOSTILE}
    )
    shown = page(browser, "/hosts/web-1/web/")
    assert "<script>alert(1)" not in shown
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown


def hold(**more: Any) -> HoldRow:
    """One that was released."""
    given: dict[str, Any] = {
        "id": 1,
        "host": "web-1",
        "program": "web",
        "pool": None,
        "step": 1,
        "held_at": AT,
        "until": AT,
        "evidence": WHY,
        "poison_job": None,
        "stopped_at": AT,
        "released_at": AT,
        "released_as": "time",
        "released_by": None,
        "taken_up_at": AT,
        "is_in_force": False,
    }
    return HoldRow(**{**given, **more})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("time", "Its time was over, and it was started again."),
        ("release", "kim released it."),
        ("start", "kim started it."),
        ("stop", "kim stopped it."),
        ("others", "Somebody started it on its host."),
        ("poison", "It is not held back for that."),
    ],
)
def test_how_it_came_to_be_held_back_no_more_is_told(how: str, said: str) -> None:
    loop = looping.told([hold(released_as=how, released_by="kim")], AT)
    assert loop
    assert (loop.is_over, loop.over) == (True, said)


def test_a_loop_that_is_long_over_is_told_no_more() -> None:
    assert looping.told([]) is None
    assert looping.told([hold()], AT + timedelta(hours=23))
    assert looping.told([hold()], AT + timedelta(hours=25)) is None
    assert looping.told([hold(taken_up_at=None)], AT + timedelta(hours=25))


def test_a_job_to_blame_is_named() -> None:
    loop = looping.told([hold(poison_job=4711, released_as="poison")], AT)
    assert loop
    assert loop.headline == "It died 4 times with one job in hand, which is quarantined as poison."


@pytest.mark.requirement("C5")
def test_the_api_tells_why_a_program_is_held_back_and_lets_it_go() -> None:
    caller = Caller(token=token_of(user("ci")))
    making.a_hold(a_host("web-1", {"name": "web", "state": "STOPPED", "launcher": None}), evidence=WHY, step=2)
    told_of = told(caller.get("hosts/web-1/programs/web"))
    [held] = told_of["holds"]
    assert (held["step"], held["why"]["line"], held["released_as"]) == (2, "no disk", None)
    assert (told_of["held_until"], told_of["acts"]) == (held["until"], ["release_program", "start_program"])
    done = told(caller.post("hosts/web-1/programs/web/release"))
    assert (done["act"], done["command_id"]) == ("release_program", None)
    after = told(caller.get("hosts/web-1/programs/web"))
    assert (after["held_until"], after["holds"][0]["released_as"]) == (None, "release")
    problem(caller.post("hosts/web-1/programs/web/release"), 404, "no_such_program")


def test_the_page_leads_to_the_job_that_was_to_blame(browser: Client) -> None:
    worker = making.a_worker()
    [job] = making.running(worker)
    assert run(making.poisoned(job, worker))
    seen = {"name": "worker-default-1", "pool": "default", "state": "RUNNING", "launcher": 1, "pid": 2}
    seen |= {"since": None, "memory_kb": None, "trouble": None}
    beat = hosts.beat(f"of-{job.job_id}", authority=scenes.SYSTEM, fence=1, programs=[seen], trouble=None)
    assert run(beat)
    shown = page(browser, f"/hosts/of-{job.job_id}/worker-default-1/")
    assert f'<a href="/jobs/{job.job_id}/">Job {job.job_id}</a>' in shown
    assert "It died 3 times with one job in hand, which is quarantined as poison." in words(shown)
