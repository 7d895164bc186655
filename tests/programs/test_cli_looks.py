"""`shiftboss jobs list`, `jobs show`, `queues list`, `audit list` and `status`: for people and for programs."""

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection

from shiftboss.console import whole
from shiftboss.queue.authority import System
from shiftboss.queue.contract import Note, NoteKind
from shiftboss.queue.states import State
from shiftboss.queue.store import notes as store_notes
from shiftboss.queue.store import queues
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.programs.shell import Shell
from tests.programs.tree import environment, shiftboss
from tests.store import making

pytestmark = pytest.mark.django_db
SYSTEM = System()

looked_at_each_time = pytest.fixture(autouse=True)(scenes.looked_at_each_time)


@pytest.fixture
def worker(db: None) -> int:
    """A worker of the queue `default`."""
    return making.a_worker()


def ids(ran_json: object) -> list[int]:
    """The ids of a list, as numbers again."""
    assert isinstance(ran_json, dict)
    return [int(job["id"]) for job in ran_json["jobs"]]


@pytest.mark.requirement("L7")
def test_jobs_are_listed_aligned_newest_first_and_without_arguments(sh: Shell, worker: int) -> None:
    first = making.quarantined(worker).job_id
    [second] = making.enqueued(queue="mail", args='{"args": ["secret"], "kwargs": {}}', priority=-7)
    ran = sh("jobs", "list")
    heads, *rows = ran.lines
    assert [row.split()[:5] for row in rows] == [
        [str(second), "available", "mail", making.TASK, "-7"],
        [str(first), "quarantined", "default", making.TASK, "0"],
    ]
    for head in ("STATE", "QUEUE", "TASK", "ENQUEUED"):
        at = heads.index(head)
        assert all(row[at - 1] == " " and row[at] != " " for row in rows)
    assert rows[1].split()[-3:] == ["1/1", "-", "ValueError"]
    assert "secret" not in ran.out
    assert "secret" not in sh("jobs", "list", "--format", "json").out
    assert sh("jobs", "list", "--queue", "empty").out == "no jobs\n"


def test_pages_of_several_states_go_on_where_the_last_one_ended(
    sh: Shell, worker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [
        making.completed(worker).job_id,
        making.scheduled(worker).job_id,
        making.quarantined(worker).job_id,
        *making.enqueued(2, queue="mail"),
        making.scheduled(worker).job_id,
    ]
    page = ["jobs", "list", "--format", "json", "--limit", "2"]
    newest = ids(sh(*page).json)
    older = ids(sh(*page, "--before", newest[-1]).json)
    oldest = ids(sh(*page, "--before", older[-1]).json)
    assert [*newest, *older, *oldest] == sorted(made, reverse=True)
    assert ids(sh(*page, "--after", oldest[0]).json) == older
    assert ids(sh(*page, "--queue", "mail").json) == [made[4], made[3]]
    assert ids(sh(*page, "--state", "completed,quarantined").json) == [made[2], made[0]]
    monkeypatch.setattr("shiftboss.queue.store.search.ROWS", 1)
    monkeypatch.setattr("shiftboss.queue.store.search.FIRST_WINDOW", 1)
    told = sh("jobs", "list", "--queue", "mail").out
    assert told == f"no jobs among those that were looked at: go on with --before {made[5]}\n"
    assert str(made[4]) in sh("jobs", "list", "--queue", "mail", "--before", made[5]).out


def test_ids_are_text_and_times_are_utc_for_programs(sh: Shell, worker: int) -> None:
    [lease] = making.running(worker)
    [job] = sh("jobs", "list", "--state", "running", "--format", "json").json["jobs"]
    assert (job["id"], job["worker_id"]) == (str(lease.job_id), str(worker))
    assert job["enqueued_at"].endswith("Z")
    assert datetime.fromisoformat(job["enqueued_at"]).tzinfo is not None
    assert (job["state"], job["priority"], job["finished_at"]) == ("running", 0, None)


def test_jobs_are_searched_as_in_the_console(sh: Shell) -> None:
    [mail] = making.enqueued(queue="mail", tags=("x",))
    making.enqueued()
    found = sh("jobs", "list", "--query", "tag:x -queue:reports", "--format", "json").json
    assert [job["id"] for job in found["jobs"]] == [str(mail)]
    refused = sh("jobs", "list", "--query", "quue:mail")
    assert refused.code == 2
    assert "at character 1: There is no field “quue”" in refused.err


@pytest.mark.requirement("B14")
def test_who_searches_arguments_stands_in_the_audit_once(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    # One span that ends years from now, and not between two searches.
    monkeypatch.setattr("shiftboss.console.revealing.REVEALED_SECONDS", 1e9)
    [job_id] = making.enqueued(args='{"args": [], "kwargs": {"to": "ada"}}')
    for _ in range(2):
        assert str(job_id) in sh("jobs", "list", "--query", "args.to=ada").out
    [entry] = sh("audit", "list", "--act", "reveal", "--format", "json").json["entries"]
    assert (entry["via"], entry["job_id"], entry["asked"]) == ("cli", None, {"of": "lists"})


def test_a_job_is_shown_with_its_attempts_its_events_and_what_can_be_done(sh: Shell, worker: int) -> None:
    job_id = making.quarantined(worker).job_id
    sh("jobs", "reinstate", job_id)
    sh("jobs", "quarantine", job_id, "--reason", "look at it")
    text = sh("jobs", "show", job_id).out
    fields = {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in text.splitlines()}
    assert (fields["id"], fields["state"]) == (str(job_id), "quarantined")
    assert "args" not in fields
    assert len(fields["args_sha256"]) == 64
    assert fields["acts"] == "cancel, reinstate, discard, edit"
    assert "failed: ValueError: no, 12 ms\nTraceback…\n" in text
    assert [line.split()[3] for line in text.splitlines()[-2:]] == ["reinstate", "quarantine"]
    job = sh("jobs", "show", job_id, "--format", "json").json
    assert job["acts"] == ["cancel", "reinstate", "discard", "edit"]
    assert (job["id"], job["args"], job["args_sha256"]) == (str(job_id), None, fields["args_sha256"])
    [attempt] = job["attempts"]
    assert (attempt["job_id"], attempt["outcome"], attempt["error_type"]) == (str(job_id), "failed", "ValueError")
    assert [event["kind"] for event in job["events"]] == ["reinstate", "quarantine"]
    assert job["events"][0]["data"]["by"].startswith("os:")


@pytest.mark.requirement("L29")
def test_an_attempt_is_shown_with_what_it_kept_to_whom_may_see_it(sh: Shell, worker: int) -> None:
    kept = {
        "host": "web-7",
        "pid": 4711,
        "cpu_ms": 384,
        "memory_kb": 95_232,
        "memory_shared": True,
        "args_sha256": "0" * 64,
        "checkpoint": {"page": 3},
        "oom_score": 901,
        "output": "first line\n\x1b[31mred\x1b[0m \x1b[2J\u202elast\n",
    }
    job_id = scenes.job(max_attempts=1)
    scenes.failed(scenes.claimed(worker), worker, evidence=json.dumps(kept))
    out = sh("jobs", "show", job_id).out
    facts = (
        "  Ran on      web-7, process 4711\n"
        "  CPU         384 ms\n"
        "  Memory      peak 93.0 MiB (shared with other jobs of the process)\n"
        f"  Arguments   {'0' * 64} (not those that the job has now)\n"
        '  Checkpoint  {"page": 3}\n'
        '  Evidence    {"oom_score": 901}\n'
    )
    written = "  Last output\n  | first line\n  | red \\x1b[2J\\u202elast\nTraceback (most recent call last):\n"
    assert facts + written in out
    assert "Not shown" not in out
    scenes.person("vera", role="viewer")
    less = sh("jobs", "show", job_id, "--as", "vera").out
    assert f"{facts}  Not shown   traceback, output: it needs the permission shiftboss.view_traceback\n" in less
    assert "mailbox unavailable" in less
    assert "first line" not in less
    assert "Traceback (most" not in less
    [attempt] = sh("jobs", "show", job_id, "--format", "json").json["attempts"]
    assert (attempt["evidence"], attempt["withheld"]) == (kept, None)
    [attempt] = sh("jobs", "show", job_id, "--format", "json", "--as", "vera").json["attempts"]
    assert attempt["evidence"] == {name: value for name, value in kept.items() if name != "output"}
    assert attempt["withheld"] == {"permission": "shiftboss.view_traceback", "parts": ["traceback", "output"]}


@pytest.mark.parametrize(
    ("state", "allowed"),
    [
        ("scheduled", {"cancel", "expedite", "quarantine", "reprioritise", "reschedule"}),
        ("available", {"cancel", "quarantine", "reprioritise", "reschedule"}),
        ("retryable", {"cancel", "expedite", "quarantine", "reprioritise", "reschedule"}),
        ("quarantined", {"cancel", "reinstate", "discard", "edit"}),
        ("completed", {"rerun", "edit"}),
    ],
)
def test_the_acts_shown_are_those_that_are_done(sh: Shell, worker: int, state: str, allowed: set[str]) -> None:
    job_id = making.NOT_HELD[state](worker).job_id
    assert set(sh("jobs", "show", job_id, "--format", "json").json["acts"]) == allowed


def test_a_number_comes_out_as_it_is_stored(sh: Shell) -> None:
    stored = '{"args": [12345678901234567890123, 0.10000000000000000555], "kwargs": {"ü": "\\n"}}'
    [job_id] = making.enqueued(args=stored)
    told = sh("jobs", "reveal", job_id).out
    assert '"args": [12345678901234567890123, 0.10000000000000000555]' in told
    assert '"kwargs": {"ü": "\\n"}' in told


def test_nothing_that_is_shown_is_obeyed_by_a_terminal(sh: Shell) -> None:
    [job_id] = making.enqueued(task="shop.\x1b[2J\u202eevil", args='{"args": ["a\\u001b[31m"], "kwargs": {}}')
    for words in (["list"], ["show", job_id]):
        out = sh("jobs", *words).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\\x1b[2J\\u202eevil" in out


@pytest.mark.requirement("L17")
def test_what_a_handler_tells_is_shown_under_the_name_that_it_gave(sh: Shell, worker: int) -> None:
    [lease] = making.running(worker)
    notes = [(lease, Note(NoteKind.EVENT, '{"rows": 12}', "imported"))]
    run(store_notes.note(notes, authority=SYSTEM, worker_id=worker))
    shown = sh("jobs", "show", lease.job_id).out.splitlines()[-1].split("  ")
    assert [part.strip() for part in shown if part][-3:] == ["event imported", "1", '{"rows": 12}']


@pytest.mark.parametrize("job_id", [1, 2**63 - 1])
def test_a_job_that_is_not_there_is_not_found(sh: Shell, job_id: int) -> None:
    ran = sh("jobs", "show", job_id)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"shiftboss: there is no job {job_id}\n"


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(
    ("words", "permission"),
    [
        (["jobs", "list"], "view_job"),
        (["jobs", "show", "1"], "view_job"),
        (["queues", "list"], "view_job"),
        (["audit", "list"], "view_audit"),
    ],
)
def test_looking_needs_a_permission_too(sh: Shell, words: list[str], permission: str) -> None:
    [job_id] = making.enqueued()
    words = [str(job_id) if word == "1" else word for word in words]
    user = User.objects.create_user("kim", is_staff=True)
    refused = sh(*words, "--as", "kim")
    assert (refused.code, refused.out) == (1, "")
    assert f"shiftboss.{permission}" in refused.err
    user.user_permissions.add(*Permission.objects.filter(codename=permission))
    assert sh(*words, "--as", "kim").code == 0


@pytest.mark.requirement("L7")
def test_queues_are_listed_with_what_they_hold_who_serves_them_and_their_pause(sh: Shell, worker: int) -> None:
    making.enqueued(3, queue="mail")
    making.enqueued(1)
    run(queues.pause("mail", authority=SYSTEM, by="kim", reason="server is down"))
    heads, default, mail = sh("queues", "list").lines
    assert heads.split() == [
        "QUEUE",
        *["SCHEDULED", "AVAILABLE", "RETRYABLE", "RUNNING", "QUARANTINED", "WORKERS", "LIMIT", "PAUSED"],
    ]
    assert default.split() == ["default", "0", "1", "0", "0", "0", "1", "-", "-"]
    assert mail.split()[:7] == ["mail", "0", "3", "0", "0", "0", "0"]
    assert mail.endswith(" by kim: server is down")
    first, second = sh("queues", "list", "--format", "json").json["queues"]
    assert (first["queue"], first["states"], first["paused"]) == ("default", {"available": 1}, None)
    assert (first["live_workers"], second["live_workers"]) == (1, 0)
    assert (second["paused"]["paused_by"], second["paused"]["reason"]) == ("kim", "server is down")
    assert second["oldest_available_seconds"] >= 0


def test_a_queue_that_only_a_worker_or_a_pause_knows_is_listed(sh: Shell) -> None:
    assert sh("queues", "list").out == "no queues\n"
    making.a_worker("served")
    run(queues.pause("paused", authority=SYSTEM, by="kim", reason="x"))
    assert [line.split()[0] for line in sh("queues", "list").lines] == ["QUEUE", "paused", "served"]


@pytest.mark.requirement("L7", "L28")
def test_status_warns_of_queues_that_nobody_serves_and_of_those_that_are_paused(sh: Shell, worker: int) -> None:
    making.enqueued(2, queue="mail")
    making.enqueued(1, queue="mail", due_in=3600)
    making.enqueued(1)
    run(queues.pause("default", authority=SYSTEM, by="kim", reason="server is down"))
    making.says(making.a_worker("mail"), state="stopped")
    text = sh("status").out
    warnings = text.partition("Warnings\n")[2].partition("Workers\n")[0].splitlines()
    assert warnings[0].startswith("  the queue default is paused since ")
    assert warnings[0].endswith(" by kim: server is down")
    assert warnings[1:] == ["  no live worker serves the queue mail, where 3 jobs wait"]
    assert "  default  paused  available 1" in text
    report = sh("status", "--format", "json").json
    assert [text.strip() for text in warnings] == report["warnings"]
    assert [queue["paused"] is not None for queue in report["queues"]] == [True, False]
    assert {worker["id"] for worker in report["workers"]} >= {str(worker)}
    assert set(report["states"]) == set(State)


def test_status_of_a_record_where_all_is_well_warns_of_nothing(sh: Shell, worker: int) -> None:
    making.enqueued()
    assert "Warnings" not in sh("status").out
    assert sh("status", "--format", "json").json["warnings"] == []


@pytest.mark.requirement("B7", "L28")
def test_status_tells_what_the_maintainer_saw_how_old_that_is_and_counts_itself_where_there_is_none(
    sh: Shell, worker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "ABANDONED_SECONDS", 600.0)
    making.enqueued(2)
    with scenes.maintained():
        making.execute("update shiftboss_sample set at = at - interval '4 s'")
        making.enqueued()
        text = sh("status").out
        assert re.match(r"Jobs \(counted [\d.]+ s ago\)\n  default  available 2", text)
        making.execute("update shiftboss_sample set at = at - interval '1 hour'")
        text = sh("status").out
        assert re.match(r"Jobs \(counted [\d.]+ s ago\)\n  default  available 3", text)
        assert "  no maintainer looks at the record: start one by manage.py shiftboss_maintainer\n" in text


@pytest.mark.requirement("B6")
def test_the_audit_is_listed_of_all_of_a_job_and_of_a_queue(sh: Shell, worker: int) -> None:
    job_id = making.scheduled(worker).job_id
    sh("jobs", "expedite", job_id, "--reason", "it is late\x1b[2J")
    sh("queues", "pause", "default", "--reason", "server is down")
    heads, pause, expedite = sh("audit", "list").lines
    assert heads.split() == ["ID", "AT", "(UTC)", "WHO", "VIA", "ACT", "JOB", "QUEUE", "JOBS", "REASON"]
    assert pause.split()[-7:] == ["pause", "-", "default", "0", "server", "is", "down"]
    assert "it is late\\x1b[2J" in expedite
    [entry] = sh("audit", "list", "--job", job_id, "--format", "json").json["entries"]
    assert (entry["act"], entry["job_id"], entry["after"]["state"]) == ("expedite", str(job_id), "available")
    [entry] = sh("audit", "list", "--queue", "default", "--format", "json").json["entries"]
    assert (entry["act"], entry["via"]) == ("pause", "cli")
    older = sh("audit", "list", "--before", entry["id"], "--limit", "1", "--format", "json").json["entries"]
    assert [entry["act"] for entry in older] == ["expedite"]
    assert sh("audit", "list", "--job", 2**62).out == "no acts\n"


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["jobs", "list"],
        ["jobs", "expedite", "1"],
        ["jobs", "cancel", "--all", "--queue", "mail", "--dry-run"],
        ["queues", "pause", "mail", "--reason", "x"],
        ["audit", "list"],
        ["purge", "--before", "2026-01-01", "--reason", "x", "--yes"],
    ],
)
def test_each_command_says_where_there_is_no_installation(
    sh: Shell, home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    for name in ("DJANGO_SETTINGS_MODULE", "DATABASE_URL"):
        monkeypatch.delenv(name)
    refused = sh(*words)
    assert refused.code == 1
    assert f"no installation in {home}: run `shiftboss up` here" in refused.err


def test_a_database_that_is_away_is_named_with_the_fix(home: Path) -> None:
    away = shiftboss(home, "jobs", "list", DATABASE_URL="postgresql://me:secret@127.0.0.1:9/jobs")
    assert away.returncode == 1
    assert "the database 'jobs' at 127.0.0.1:9 cannot be reached" in away.stderr
    assert "Start it, or correct DATABASE_URL" in away.stderr
    assert "secret" not in away.stderr


@pytest.mark.django_db(transaction=True, available_apps=["django.contrib.postgres"])
def test_a_reader_that_goes_away_is_no_trouble(home: Path) -> None:
    try:
        making.enqueued(3)
        pipe = f"{sys.executable} -P -m shiftboss.cli jobs list | true; echo ${{PIPESTATUS[0]}}"
        gone = subprocess.run(
            ["bash", "-c", pipe],
            # Buffered, as output into a pipe is by default.
            env=environment(home, DATABASE_URL=address_of_tests(), PYTHONUNBUFFERED=""),
            capture_output=True,
            text=True,
            check=True,
        )
        assert (gone.stdout, gone.stderr) == ("1\n", "")
    finally:
        making.empty()


def address_of_tests() -> str:
    """The test database, as DATABASE_URL has it."""
    server = urlsplit(os.environ["DATABASE_URL"])
    return server._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
