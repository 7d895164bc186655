"""The page of one job."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.test import Client

from shiftboss.queue.authority import Owner
from shiftboss.queue.contract import Note, NoteKind
from shiftboss.queue.keys import Scope
from shiftboss.queue.outcomes import Discarded, Released, Snoozed
from shiftboss.queue.store import lease, operate, upkeep
from shiftboss.queue.store import notes as store_notes
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("C3")


def shown(browser: Client, job_id: int) -> str:
    response = browser.get(f"/jobs/{job_id}/")
    assert response.status_code == 200, response.content.decode()
    return response.content.decode()


def fact(page: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd[^>]*>(.*?)</dd>", page, re.DOTALL)
    assert found, f"no fact {name}"
    return unescape(re.sub(r"<[^>]*>", "", found[1])).replace("\N{NO-BREAK SPACE}", " ").strip()


def reveal(browser: Client, job_id: int) -> None:
    """Let the page show the arguments."""
    assert browser.post(f"/jobs/{job_id}/reveals/").status_code == 303


def documents(page: str) -> list[str]:
    return re.findall(r'<pre class="document"[^>]*>(.*?)</pre>', page, re.DOTALL)


def test_a_waiting_job_shows_its_facts(browser: Client) -> None:
    job_id = scenes.job(queue="mail", priority=7, max_attempts=4, authority=Owner("user_123"))
    page = shown(browser, job_id)
    assert fact(page, "Queue") == "mail"
    assert fact(page, "Priority") == "7"
    assert fact(page, "Failures") == "0 of 4"
    assert fact(page, "Fence") == "0"
    assert fact(page, "Owner") == "user_123"
    assert re.search(r"^(now|\d+ s ago) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$", fact(page, "Enqueued"))
    assert "No attempt has ended yet." in page
    assert re.search(r'<time datetime="\d{4}-\d\d-\d\dT[\d:.]+\+00:00" title="[^"]* UTC" data-ages="ago">', page)


def test_a_running_job_shows_its_lease_and_worker(browser: Client) -> None:
    worker = scenes.worker()
    job_id = scenes.job()
    scenes.claimed(worker)
    page = shown(browser, job_id)
    assert re.fullmatch(r"\d+ s left", fact(page, "Lease"))
    assert fact(page, "Worker") == f"#{worker}"
    assert fact(page, "Fence") == "1"


def test_a_running_job_whose_lease_is_over_is_shown_so(browser: Client) -> None:
    job_id = scenes.job()
    scenes.claimed(scenes.worker(), lease_seconds=0.001)
    assert fact(shown(browser, job_id), "Lease") == "expired"


def test_a_completed_job_shows_its_result(browser: Client) -> None:
    worker = scenes.worker()
    job_id = scenes.job()
    scenes.completed(scenes.claimed(worker), worker, result='{"sent": 12345678901234567890}', run_ms=1500)
    page = shown(browser, job_id)
    assert documents(page)[0] == "{&quot;sent&quot;: 12345678901234567890}"
    assert fact(page, "Took") == "1.5 s"
    assert "fence 1" in page


def test_a_failed_attempt_shows_its_evidence_and_marks_the_applications_frames(browser: Client) -> None:
    job_id = scenes.quarantined_job(scenes.worker())
    page = shown(browser, job_id)
    assert "Held back because it failed as often as it may." in page
    assert "smtplib.SMTPRecipientsRefused" in page
    frames = re.findall(r'<pre class="(frame[^"]*)">(.*?)</pre>', page, re.DOTALL)
    assert [kind for kind, text in frames if "/app/shop/tasks.py" in text] == ["frame own"]
    assert [kind for kind, text in frames if "site-packages" in text or "smtplib.py" in text] == ["frame"] * 2
    assert "ran 412\N{NO-BREAK SPACE}ms" in page
    assert "fence 1" in page


@pytest.mark.requirement("B4", "L4")
def test_a_rejected_late_write_is_shown_with_both_fences_and_the_worker(browser: Client) -> None:
    slow, quick = scenes.worker(), scenes.worker()
    job_id = scenes.job()
    late = scenes.claimed(slow, lease_seconds=0.001)
    wait_for(lambda: run(upkeep.reap(authority=scenes.SYSTEM)), seconds=20)
    run(upkeep.stage(authority=scenes.SYSTEM))
    scenes.claimed(quick)
    scenes.completed(late, slow)
    page = shown(browser, job_id)
    assert "Late write rejected" in page
    assert "“complete” under fence 1 was refused; the job holds fence 2 and is running." in page
    assert f"#{slow}" in page
    assert "the worker stopped renewing its lease" in page


@pytest.mark.requirement("N5", "N6", "P2")
def test_a_job_shows_its_key_its_watchers_and_its_deadline(browser: Client) -> None:
    job_id = scenes.job(
        key="invoice:7",
        watchers=("anna", "ben"),
        deadline=datetime(2031, 2, 3, 4, 5, tzinfo=UTC),
        authority=Owner("user:123"),
    )
    page = shown(browser, job_id)
    assert fact(page, "Key") == "invoice:7 unique among the jobs of user:123"
    assert fact(page, "Watchers") == "anna, ben"
    assert fact(page, "Deadline").endswith("2031-02-03 04:05:00.000 UTC")
    assert fact(shown(browser, scenes.job(key="k")), "Key") == "k unique among the system's jobs"
    everywhere = scenes.job(key="a:b", key_scope=Scope.GLOBAL)
    assert fact(shown(browser, everywhere), "Key") == "a:b unique among all jobs"


@pytest.mark.requirement("P2")
def test_a_follow_up_names_the_job_that_it_waits_for(browser: Client) -> None:
    worker = scenes.worker()
    holder = scenes.job(key="k")
    scenes.claimed(worker)
    follows = scenes.job(key="k", follow_up=True)
    assert follows != holder
    page = shown(browser, follows)
    assert f'It follows <a href="/jobs/{holder}/">job {holder}</a>, which holds its key.' in page
    assert fact(page, "Key held by") == f"job {holder}"
    assert "/expeditions/" not in page
    assert "Key held by" not in shown(browser, holder)


def test_a_cancelled_job_says_why_and_when(browser: Client) -> None:
    job_id = scenes.job(deadline=datetime.now(UTC) + timedelta(seconds=0.05))
    wait_for(lambda: run(upkeep.expire(authority=scenes.SYSTEM)), seconds=20)
    page = shown(browser, job_id)
    assert "its deadline passed" in fact(page, "End requested")


@pytest.mark.parametrize(("outcome", "says"), [("snoozed", "snoozed"), ("discarded", "discarded")])
def test_an_attempt_that_was_put_off_or_given_up_says_so(browser: Client, outcome: str, says: str) -> None:
    worker = scenes.worker()
    job_id = scenes.job()
    [held] = scenes.claimed(worker)
    if outcome == "snoozed":
        run(lease.snooze([(held.lease, Snoozed(60, 12))], authority=scenes.SYSTEM, worker_id=worker))
    else:
        run(
            lease.discard(
                [(held.lease, Discarded("no such customer", 12))], authority=scenes.SYSTEM, worker_id=worker
            )
        )
    page = shown(browser, job_id)
    assert re.search(
        rf'<li id="fence-1-{outcome}">.*?<span class="state {outcome}">{says}</span>', page, re.DOTALL
    )
    assert ("no such customer" in page) == (outcome == "discarded")


def test_a_run_that_ended_because_somebody_asked_says_so(browser: Client) -> None:
    worker = scenes.worker()
    job_id = scenes.job()
    [held] = scenes.claimed(worker)
    run(operate.cancel([job_id], authority=scenes.SYSTEM))
    run(lease.release([(held.lease, Released("cancelled"))], authority=scenes.SYSTEM, worker_id=worker))
    page = shown(browser, job_id)
    assert '<span class="state cancelled">cancelled</span>' in page
    assert "on request" in fact(page, "End requested")


HOSTILE = [
    "<script>alert(1)</script>",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "\x1b[31mred\x1b[0m",
    '"><img src=x onerror=alert(1)>',
    "{{ 7|add:7 }}{% now %}",
    "x" * 5000,
]


def test_hostile_job_data_is_shown_harmless(browser: Client) -> None:
    worker = scenes.worker("a/b <i>&", host="<b>host</b>")
    args = json.dumps({"args": HOSTILE, "kwargs": {}}, ensure_ascii=False)
    job_id = scenes.job(
        "a/<script>alert(2)</script>\N{RIGHT-TO-LEFT OVERRIDE}.t", queue="a/b <i>&", args=args, max_attempts=1
    )
    claimed = scenes.claimed(
        worker, queue="a/b <i>&", tasks=["a/<script>alert(2)</script>\N{RIGHT-TO-LEFT OVERRIDE}.t"]
    )
    scenes.failed(
        claimed, worker, type="<u>E", message="\x1b[1m<svg/onload=alert(3)>\u2066", traceback="<script>\x9b31m"
    )
    reveal(browser, job_id)
    for address in ("/", "/jobs/?state=quarantined", f"/jobs/{job_id}/"):
        page = browser.get(address).content.decode()
        body = page[page.index('<div id="live"') :]
        assert "<script" not in body
        assert "<img" not in body
        assert "<svg/" not in body
        assert "<b>host" not in body
        assert "<u>" not in body
        assert "<i>" not in body
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0e-\x1f\x7f-\x9f]", page)
    assert "\\u202e" in body
    assert "\\x1b" in body
    assert 'href="/jobs/?state=quarantined&amp;queue=a%2Fb%20%3Ci%3E%26"' in body


def test_digits_stay_as_they_were_stored(browser: Client) -> None:
    args = '{"args": [9007199254740993, 0.10, 1e2, 123456789012345678901234567890.000100], "kwargs": {}}'
    job_id = scenes.job(args=args)
    reveal(browser, job_id)
    [text] = documents(shown(browser, job_id))
    assert "[9007199254740993, 0.10, 100, 123456789012345678901234567890.000100]" in text


def test_a_very_large_document_is_cut_and_says_so(browser: Client) -> None:
    args = json.dumps({"args": ["y" * 900_000], "kwargs": {}})
    job_id = scenes.job(args=args)
    reveal(browser, job_id)
    page = shown(browser, job_id)
    assert len(page) < 120_000
    assert "Only the beginning is shown; the whole is 878.9 KiB." in page


def telling(*notes: Note) -> int:
    """A running job whose handler has told this."""
    worker = scenes.worker()
    job_id = scenes.job()
    [held] = scenes.claimed(worker)
    run(store_notes.note([(held.lease, note) for note in notes], authority=scenes.SYSTEM, worker_id=worker))
    return job_id


@pytest.mark.requirement("N8", "L16")
@pytest.mark.parametrize(
    ("told", "percent", "says"),
    [
        ('{"value": 3000, "total": 4000, "message": "pages of <b>"}', "75", "3,000 of 4,000 · pages of <b>"),
        ('{"value": 7, "total": 4}', "100", "7 of 4"),
        ('{"value": 2.34567}', None, "2.35"),
        ('{"value": 1, "total": 0}', None, "1 of 0"),
        ('{"stage": "upload", "files": ["a", "ä"]}', None, 'files ["a", "ä"] · stage upload'),
        ('{"value": "half", "total": 2, "message": 7}', None, "total 2 · value half · message 7"),
        ('{"value": 1e30, "total": true}', None, f"total true · value {10**30}"),
        ("[1, 2]", None, "[1, 2]"),
        ('{"value": 2, "stage": "upload"}', None, "2 · stage upload"),
    ],
)
def test_a_job_shows_how_far_it_is(browser: Client, told: str, percent: str | None, says: str) -> None:
    page = shown(browser, telling(Note(NoteKind.PROGRESS, told)))
    assert " ".join(fact(page, "Progress").split()) == says
    found = re.search(r'<progress value="(\d+)" max="100" aria-label="Progress">', page)
    assert (found[1] if found else None) == percent


def test_a_job_without_progress_or_checkpoint_shows_none(browser: Client) -> None:
    page = shown(browser, scenes.job())
    assert "Progress" not in page
    assert "Checkpoint" not in page


def test_an_error_that_is_no_end_is_said_to_be_the_last_one(browser: Client) -> None:
    worker = scenes.worker()
    job_id = scenes.job(max_attempts=2)
    assert "Last error:" not in shown(browser, job_id)
    scenes.failed(scenes.claimed(worker), worker)
    assert "Last error:" in shown(browser, job_id)
    run(upkeep.stage(authority=scenes.SYSTEM))
    assert [held.id for held in scenes.claimed(worker)] == [job_id]
    assert "Last error:" in shown(browser, job_id)
    assert "Last error:" not in shown(browser, scenes.quarantined_job(scenes.worker()))


@pytest.mark.requirement("L16", "L17", "L18")
def test_a_job_shows_its_checkpoint_and_what_its_handler_told(browser: Client) -> None:
    job_id = telling(
        Note(NoteKind.CHECKPOINT, '{"page": 12345678901234567890}'),
        Note(NoteKind.EVENT, '{"rows": 12}', "imported <i>"),
        Note(NoteKind.EVENT, "{}", "write_rejected"),
        Note(NoteKind.EVENT, '{"dropped": 3}', "events_dropped"),
    )
    page = shown(browser, job_id)
    assert documents(page)[0] == "{&quot;page&quot;: 12345678901234567890}"
    assert "imported &lt;i&gt;" in page
    assert "{&quot;rows&quot;: 12}" in page
    assert "More events than are kept" in page
    assert "Late write rejected" not in page
    assert len(re.findall(r"<tr data-key=", page)) == 3


@pytest.mark.parametrize("job_id", ["999999999", "9223372036854775808", "9" * 300])
def test_an_unknown_job_is_not_found(browser: Client, job_id: str) -> None:
    response = browser.get(f"/jobs/{job_id}/")
    assert response.status_code == 404
    assert "There is no such job" in response.content.decode()


def test_a_job_asks_the_database_little(browser: Client, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    job_id = scenes.quarantined_job(scenes.worker())
    with scenes.maintained(), django_assert_max_num_queries(12):
        shown(browser, job_id)
