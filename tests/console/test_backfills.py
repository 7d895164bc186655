"""Backfills on pages, in the API and on the command line, and the four things that are told apart everywhere."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from shiftboss import acts, cli
from shiftboss.console import figures
from shiftboss.queue.store import audit, backfill, operate, upkeep
from shiftboss.queue.store.backfill import BackfillRow, NewBackfill
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.console.callers import Caller, problem, token_of, told, user
from tests.store import making
from tests.store.making import SYSTEM, claimed, report

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("L19", "C3")]

LIMITS = operate.Limits(failures=1, losses=3, by_task={})


def begun(n: int = 3, *, name: str = "receipts 2026", concurrency: int = 10) -> int:
    """A backfill of n items that has been fed."""
    new = NewBackfill(
        name=name,
        task=making.TASK,
        queue="default",
        priority=0,
        concurrency=concurrency,
        failure_limit=1,
        loss_limit=3,
    )
    number = run(backfill.begin(new, authority=SYSTEM))
    run(backfill.add(number, [(f"{i:03}", making.ARGS) for i in range(n)], authority=SYSTEM))
    run(backfill.feed(authority=SYSTEM))
    return number


def one_of_each_end(number: int) -> None:
    """Of three jobs one is done, one fails and one is cancelled."""
    worker = making.a_worker()
    done, failed, other = (job.lease for job in claimed(worker, 3))
    run(report("complete", done, worker))
    run(report("fail", failed, worker))
    run(report("discard", other, worker))
    run(backfill.feed(authority=SYSTEM))


def text_of(page: bytes) -> str:
    """What a page says, without its marks."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.decode()).split())


def api() -> Caller:
    """A program of an operator's."""
    return Caller(token=token_of(user("program")))


def test_where_there_is_none_the_list_says_how_one_begins(browser: Client) -> None:
    assert "No backfill yet." in text_of(browser.get("/backfills/").content)
    assert "on this side" in text_of(browser.get("/backfills/?before=1").content)


def test_the_list_leads_to_each_with_how_far_it_is(browser: Client) -> None:
    number = begun(4)
    one_of_each_end(number)
    page = browser.get("/backfills/").content.decode()
    assert f'href="/backfills/{number}/"' in page
    assert "1 of 4 items completed" in page
    [row] = re.findall(rf'<tr data-key="backfill-{number}">(.*?)</tr>', page, re.DOTALL)
    assert re.findall(r'data-label="(Failed|Cancelled)">(?:<[^>]*>)?(\d+)', row) == [
        ("Failed", "2"),
        ("Cancelled", "0"),
    ]
    shown = text_of(browser.get(f"/backfills/{number}/").content)
    for words in ("Waiting 0", "Live 1", "Quarantined 1", "Completed 1", "Cancelled 0", "Discarded 1"):
        assert words in shown
    run(backfill.cancel(number, authority=SYSTEM))
    page = browser.get("/backfills/").content.decode()
    assert re.findall(r'data-label="(Failed|Cancelled)">(?:<[^>]*>)?(\d+)', page) == [
        ("Failed", "1"),
        ("Cancelled", "2"),
    ]


def test_a_paused_one_says_what_that_means_and_its_forms_say_what_there_is(browser: Client) -> None:
    number = begun(4, concurrency=3)
    one_of_each_end(number)
    run(backfill.pause(number, authority=SYSTEM))

    def said(path: str = "") -> str:
        return text_of(browser.get(f"/backfills/{number}/{path}").content)

    assert re.search(
        r"Paused since \d\d:\d\d UTC ?: no more of its items are enqueued\. Jobs that it has go on\.", said()
    )
    assert "1 live · 1 quarantined · 1 completed · 1 discarded" in said("cancellations/")
    assert "It is paused: nothing is enqueued before somebody resumes it." in said("retries/")
    run(backfill.cancel(number, authority=SYSTEM))
    assert "Finished Nothing waits. What failed or was cancelled can be run again. It is paused since" in said()
    run(backfill.resume(number, authority=SYSTEM))
    assert "It is paused" not in said() + said("retries/")


def test_a_page_has_so_many_and_leads_to_older_ones(browser: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr("shiftboss.console.views.backfills.PAGE", 2)
    first, second, third = (begun(1, name=name) for name in "abc")
    page = browser.get("/backfills/").content.decode()
    assert f"?before={second}" in page
    assert f'"/backfills/{first}/"' not in page
    older = browser.get(f"/backfills/?before={second}").content.decode()
    assert f'"/backfills/{first}/"' in older
    assert f'"/backfills/{third}/"' not in older


def test_what_is_not_there_is_not_found(browser: Client) -> None:
    for path in ("/backfills/7/", "/backfills/7/pauses/", f"/backfills/{10**30}/"):
        response = browser.get(path)
        assert response.status_code == 404
        assert "There is no such backfill" in text_of(response.content)
    assert browser.get("/backfills/?before=x").status_code == 400
    problem(api().get("backfills/7"), 404, "no_such_backfill")
    problem(api_post("backfills/x/retry"), 404, "no_such_backfill")
    problem(api_post(f"backfills/{10**18}/retry"), 404, "no_such_backfill")


def api_post(path: str, **body: Any) -> Any:
    """An act by a program."""
    return Caller(token=token_of(user(f"program-{len(path)}"))).post(path, body)


def test_the_page_offers_what_makes_sense(browser: Client) -> None:
    number = begun(3, concurrency=3)

    def offered() -> set[str]:
        return set(re.findall(r"data-dialog>([^<]*)</a>", browser.get(f"/backfills/{number}/").content.decode()))

    assert offered() == {"Pause", "Cancel"}
    run(backfill.pause(number, authority=SYSTEM))
    assert offered() == {"Resume", "Cancel"}
    run(backfill.resume(number, authority=SYSTEM))
    one_of_each_end(number)
    assert offered() == {"Retry what failed", "Cancel"}
    run(backfill.cancel(number, authority=SYSTEM))
    assert offered() == {"Retry what failed"}


def test_acts_are_done_and_told_and_kept(browser: Client) -> None:
    number = begun(3, concurrency=1)
    for resource, said in (
        ("pauses", "It is paused"),
        ("pauses", "It was paused already."),
        ("resumptions", "It goes on."),
        ("cancellations", "3 items were cancelled"),
        ("retries", "3 items are to run again"),
    ):
        address = f"/backfills/{number}/{resource}/"
        assert "receipts 2026" in text_of(browser.get(address).content)
        response = browser.post(address, {"reason": "the shop is busy"})
        assert (response.status_code, response.headers["Location"]) == (303, f"/backfills/{number}/")
        assert said in text_of(browser.get(response.headers["Location"]).content)
    entries = run(audit.entries(authority=SYSTEM))
    assert [entry.act for entry in entries] == [
        *("retry_backfill", "cancel_backfill", "resume_backfill", "pause_backfill", "pause_backfill")
    ]
    assert {json.loads(entry.asked)["backfill_id"] for entry in entries} == {str(number)}
    told_by_audit = text_of(browser.get("/audit/").content)
    assert f"Cancel backfill backfill {number} 3 items the shop is busy" in told_by_audit
    assert "running → paused" in told_by_audit


@pytest.mark.parametrize("resource", ["pauses", "cancellations"])
def test_what_stops_it_wants_a_reason(browser: Client, resource: str) -> None:
    number = begun(1)
    assert browser.post(f"/backfills/{number}/{resource}/", {"reason": ""}).status_code == 422
    row = run(backfill.backfill(number, authority=SYSTEM))
    assert row
    assert (row.paused_at, row.live) == (None, 1)


def test_the_api_does_what_the_pages_do() -> None:
    number = begun(3, concurrency=1)
    caller = api()
    [listed] = told(caller.get("backfills"))["backfills"]
    assert listed == told(caller.get(f"backfills/{number}"))
    assert (listed["id"], listed["state"], listed["items"], listed["live"]) == (str(number), "running", 3, 1)
    problem(caller.post(f"backfills/{number}/pause", {}), 422, "reason_needed")
    paused = told(caller.post(f"backfills/{number}/pause", {"reason": "busy"}, key="1"))
    assert (paused["act"], paused["backfill_id"], paused["after"]) == ("pause_backfill", str(number), "paused")
    assert told(caller.post(f"backfills/{number}/pause", {"reason": "busy"}, key="1"))["repeated"]
    assert told(caller.post(f"backfills/{number}/resume"))["after"] == "running"
    cancelled = told(caller.post(f"backfills/{number}/cancel", {"reason": "wrong"}, key="2"))
    assert cancelled["items"] == 3
    assert told(caller.post(f"backfills/{number}/cancel", {"reason": "wrong"}, key="2"))["items"] == 3
    assert told(caller.post(f"backfills/{number}/retry"))["items"] == 3
    for name in "ab":
        begun(1, name=name)
    page = told(caller.get("backfills", limit=2))
    assert [row["name"] for row in page["backfills"]] == ["b", "a"]
    assert [row["id"] for row in told(caller.get("backfills", before=page["older"]))["backfills"]] == [str(number)]
    problem(caller.get("backfills", nmae="x"), 422, "invalid")


def test_the_command_line_does_what_the_pages_do(capsys: Any) -> None:
    def sh(*words: str) -> str:
        assert cli.main(["backfills", *words]) == 0
        return str(capsys.readouterr().out)

    assert sh("list") == "no backfills\n"
    number = str(begun(3, concurrency=1))
    head, row = sh("list").splitlines()
    assert head.split()[:3] == ["ID", "NAME", "STATE"]
    assert row.split()[:4] == [number, "receipts", "2026", "running"]
    assert "waiting      2" in sh("show", number)
    assert json.loads(sh("show", number, "--format", "json"))["waiting"] == 2
    assert json.loads(sh("list", "--format", "json"))["backfills"][0]["id"] == number
    assert sh("pause", number, "--reason", "busy") == f"backfill {number} (receipts 2026): paused\n"
    assert sh("pause", number, "--reason", "busy") == f"backfill {number} (receipts 2026): paused already\n"
    assert sh("resume", number) == f"backfill {number} (receipts 2026): running\n"
    said = sh("cancel", number, "--reason", "wrong", "--yes")
    assert said == f"backfill {number} (receipts 2026): 3 items cancelled or asked to end\n"
    answer = json.loads(sh("retry", number, "--format", "json"))
    assert (answer["items"], answer["backfill"]["waiting"]) == (3, 3)
    sh("cancel", number, "--reason", "wrong", "--yes")
    sh("pause", number, "--reason", "busy")
    assert sh("retry", number) == (
        f"backfill {number} (receipts 2026): 3 items are to run again; it is paused: resume it\n"
    )
    one = str(begun(1, name="one"))
    assert (
        sh("cancel", one, "--reason", "x", "--yes") == f"backfill {one} (one): 1 item cancelled or asked to end\n"
    )
    assert cli.main(["backfills", "show", "999999"]) == 1
    assert cli.main(["backfills", "pause", number]) == 2
    assert cli.main(["backfills", "cancel", number, "--reason", "x"]) == 2, "nobody can be asked"


def test_the_bar_shows_also_one_among_millions() -> None:
    number = begun(3)
    one_of_each_end(number)
    row = run(backfill.backfill(number, authority=SYSTEM))
    assert row
    assert drawn(row) == [("completed", 0, 333), ("failed", 333, 667)]
    many = replace(row, completed=10**6, quarantined=1, discarded=0, cancelled=1, live=1)
    assert drawn(many) == [("completed", 0, 988), ("failed", 988, 4), ("cancelled", 992, 4), ("live", 996, 4)]
    assert drawn(replace(many, waiting=1))[0] == ("completed", 0, 984)


def drawn(row: BackfillRow) -> list[tuple[str, int, int]]:
    """The parts of the bar."""
    return [(part.kind, part.x, part.width) for part in figures.parts(row)]


# Four things told apart


def one_of_each() -> dict[str, int]:
    """A job that was lost, one that failed, a rerun of one that is done, and one of a backfill; all run now."""
    worker = making.a_worker()
    [lost] = making.running(worker)
    run(report("reap_own", lost, worker))
    [failed] = making.running(worker)
    run(report("fail", failed, worker))
    done = making.completed(worker).job_id
    again = run(operate.rerun(done, authority=SYSTEM, limits=LIMITS))
    begun(1)
    [of_backfill] = [job for (job,) in making.rows("select id from shiftboss_job where batch_id is not null")]
    making.execute("update shiftboss_job set due_at = now() where state = 'retryable'")
    run(upkeep.stage(authority=SYSTEM))
    claimed(worker, 4)
    return {
        "infrastructure": lost.job_id,
        "failure": failed.job_id,
        "rerun": again.id,
        "backfill": of_backfill,
    }


SAID = {
    "infrastructure": "infrastructure retry: worker lost",
    "failure": "failure retry",
    "rerun": "rerun",
    "backfill": "backfill",
}


def test_a_jobs_page_tells_the_four_apart(browser: Client) -> None:
    for kind, job_id in one_of_each().items():
        page = browser.get(f"/jobs/{job_id}/").content.decode()
        assert re.findall(r'<span class="tag">([^<]*)</span>', page) == [SAID[kind]]


def test_the_list_of_jobs_marks_reruns_and_those_of_backfills(browser: Client) -> None:
    jobs = one_of_each()
    page = browser.get("/jobs/?state=running").content.decode()
    marks = {
        int(key): re.findall(r'<span class="tag">([^<]*)</span>', row)
        for key, row in re.findall(r'<tr data-key="(\d+)">(.*?)</tr>', page, re.DOTALL)
    }
    assert marks == {
        jobs["infrastructure"]: [],
        jobs["failure"]: [],
        jobs["rerun"]: ["rerun"],
        jobs["backfill"]: ["backfill"],
    }


def test_a_job_that_waits_for_its_retry_says_what_kind_it_will_be(browser: Client) -> None:
    worker = making.a_worker()
    [lost] = making.running(worker)
    run(report("reap_own", lost, worker))
    page = browser.get(f"/jobs/{lost.job_id}/").content.decode()
    assert re.findall(r'<span class="tag">([^<]*)</span>', page) == [SAID["infrastructure"]]


def test_a_job_that_has_ended_waits_for_no_retry(browser: Client) -> None:
    worker = making.a_worker()
    held = making.quarantined(worker)
    assert told(api().get(f"jobs/{held.job_id}"))["retry_kind"] is None
    assert '<span class="tag">' not in browser.get(f"/jobs/{held.job_id}/").content.decode()


def test_the_api_and_the_command_line_tell_the_four_apart(capsys: Any) -> None:
    caller = api()
    jobs = one_of_each()
    kinds = {job["id"]: job["kind"] for job in told(caller.get("jobs", state="running"))["jobs"]}
    assert kinds == {
        str(jobs["infrastructure"]): "job",
        str(jobs["failure"]): "job",
        str(jobs["rerun"]): "rerun",
        str(jobs["backfill"]): "backfill",
    }
    for kind, job_id in jobs.items():
        one = told(caller.get(f"jobs/{job_id}"))
        assert (one["kind"], one["retry_kind"]) == {
            "infrastructure": ("job", "infrastructure"),
            "failure": ("job", "failure"),
            "rerun": ("rerun", None),
            "backfill": ("backfill", None),
        }[kind]
        assert (one["batch_id"] is not None, one["rerun_of"] is not None) == (kind == "backfill", kind == "rerun")
        assert cli.main(["jobs", "show", str(job_id), "--format", "json"]) == 0
        same = json.loads(capsys.readouterr().out)
        assert (same["kind"], same["retry_kind"]) == (one["kind"], one["retry_kind"])


def test_each_attempt_says_what_kind_of_retry_it_was(capsys: Any, browser: Client) -> None:
    worker = making.a_worker()
    [held] = making.running(worker)
    for verb in ("fail", "reap_own", "release"):
        run(report(verb, held, worker))
        making.execute("update shiftboss_job set due_at = now()")
        run(upkeep.stage(authority=SYSTEM))
        [job] = claimed(worker)
        held = job.lease
    run(report("complete", held, worker))
    one = told(api().get(f"jobs/{held.job_id}"))
    assert [(a["outcome"], a["retry_kind"]) for a in one["attempts"]] == [
        ("failed", None),
        ("lost", "failure"),
        ("released", "infrastructure"),
    ]
    assert one["retry_kind"] is None
    cli.main(["jobs", "show", str(held.job_id)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("attempt")]
    assert [line.rpartition("(")[2] for line in lines][1:] == [
        "failure retry)",
        "infrastructure retry: worker lost)",
    ]
    page = browser.get(f"/jobs/{held.job_id}/").content.decode()
    assert re.findall(r'<span class="tag">([^<]*)</span>', page) == [SAID["infrastructure"], SAID["failure"]]


def test_only_who_may_acts_on_a_backfill() -> None:
    number = begun(1)
    viewer = Caller(token=token_of(user("viewer", role="viewer")))
    told(viewer.get(f"backfills/{number}"))
    problem(viewer.post(f"backfills/{number}/pause", {"reason": "x"}), 403, "not_allowed")
    acts.pause_backfill(number, by=person(), reason="busy")
