"""`shiftboss jobs cancel` and its like: the acts of the console and the API, by hand and by script."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Permission, User

from shiftboss.acts import performing
from shiftboss.cli import jobs
from shiftboss.permissions import PERMISSIONS, Act, Person
from shiftboss.queue.authority import System
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.store import audit, operate, queues
from shiftboss.queue.store.audit import AuditRow
from shiftboss.queue.store.statement import run
from tests.programs.shell import Shell
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B15")]
SYSTEM = System()
ADD = "tests.store.tasks.add"
WHY = ["--reason", "wrong recipients"]

ACTS: dict[Act, tuple[Callable[[int], Any], list[str], str]] = {
    Act.CANCEL: (making.scheduled, ["--yes"], "cancelled"),
    Act.EXPEDITE: (making.scheduled, [], "available"),
    Act.RERUN: (making.completed, [], "completed"),
    Act.REINSTATE: (making.quarantined, [], "available"),
    Act.DISCARD: (making.quarantined, ["--yes"], "discarded"),
    Act.QUARANTINE: (making.scheduled, [], "quarantined"),
    Act.REPRIORITISE: (making.scheduled, ["--priority", "-7"], "scheduled"),
    Act.RESCHEDULE: (making.scheduled, ["--due", "2090-01-01T12:00:00+02:00"], "scheduled"),
    Act.EDIT: (making.quarantined, ["--args", '{"args": [2], "kwargs": {}}'], "quarantined"),
}
"""How a job is made that the act fits, what it wants to know, and where the job stands then."""


@pytest.fixture
def worker(db: None) -> int:
    """A worker of the queue `default`."""
    return making.a_worker()


def a_user(name: str = "kim", *, permitted: tuple[str, ...] = (), **how: Any) -> User:
    """Somebody of the staff, with these permissions."""
    user = User.objects.create_user(name, **{"is_staff": True, **how})
    for permission in permitted:
        user.user_permissions.add(Permission.objects.get(codename=permission.partition(".")[2]))
    return user


def entries(**of: Any) -> list[AuditRow]:
    """What the audit keeps, the newest first."""
    return run(audit.entries(authority=SYSTEM, **of))


def test_every_act_on_a_job_is_a_command_and_is_tried_here() -> None:
    beside_jobs = {Act.PAUSE, Act.RESUME, Act.LIMIT, Act.PURGE, Act.CREATE_TOKEN, Act.REVOKE_TOKEN, Act.REVEAL}
    of_others = {act for act in Act if act.endswith(("_backfill", "_worker", "_program", "_pool", "_roll"))}
    assert set(ACTS) == set(jobs.CALLS) == set(Act) - beside_jobs - of_others


@pytest.mark.parametrize("act", ACTS)
def test_an_act_changes_the_job_and_the_audit_names_who_runs_the_command(sh: Shell, worker: int, act: Act) -> None:
    make, words, state = ACTS[act]
    job_id = make(worker).job_id
    ran = sh("jobs", act, job_id, *WHY, *words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"job {job_id}: ")
    assert making.state(job_id) == state
    [entry] = entries(job_id=job_id)
    shell = Person.of_shell()
    assert (entry.act, entry.via, entry.reason) == (act, "cli", "wrong recipients")
    assert (entry.actor_kind, entry.actor_id, entry.actor_name) == ("os", shell.id, shell.name)


@pytest.mark.parametrize("act", ACTS)
def test_a_user_needs_the_permission_of_the_act_and_is_told_its_name(sh: Shell, worker: int, act: Act) -> None:
    make, words, state = ACTS[act]
    job_id = make(worker).job_id
    a_user("kim", permitted=tuple(set(PERMISSIONS.values()) - {PERMISSIONS[act]}))
    a_user("lee", permitted=(PERMISSIONS[act],))
    before = making.whole(job_id)
    refused = sh("jobs", act, job_id, *WHY, *words, "--as", "kim")
    assert refused.code == 1
    assert PERMISSIONS[act] in refused.err
    assert making.whole(job_id) == before
    assert entries(job_id=job_id) == []
    assert sh("jobs", act, job_id, *WHY, *words, "--as", "lee").code == 0
    assert making.state(job_id) == state
    [entry] = entries(job_id=job_id)
    # No password was asked for: the audit says whose shell it was.
    assert (entry.actor_kind, entry.actor_name) == ("user", f"lee ({Person.of_shell().name})")


@pytest.mark.parametrize(
    ("name", "how", "complaint"),
    [
        ("nobody", {}, "there is no user 'nobody'"),
        ("kim", {"is_active": False, "is_superuser": True}, "the user 'kim' is not active"),
        ("kim", {"is_staff": False, "is_superuser": True}, "kim"),
    ],
)
def test_nobody_acts_who_could_not_enter_the_console(
    sh: Shell, worker: int, name: str, how: dict[str, Any], complaint: str
) -> None:
    a_user("kim", **how)
    job_id = making.scheduled(worker).job_id
    refused = sh("jobs", "expedite", job_id, "--as", name)
    assert refused.code == 1
    assert complaint in refused.err
    assert making.state(job_id) == "scheduled"


def test_several_jobs_are_several_acts_and_each_that_is_refused_says_why(sh: Shell, worker: int) -> None:
    done, waits, runs = making.completed(worker), making.scheduled(worker), making.running(worker)[0]
    ids = [waits.job_id, done.job_id, 2**62, runs.job_id, waits.job_id]
    ran = sh("jobs", "cancel", *ids, *WHY, "--yes")
    assert ran.code == 1
    assert ran.lines == [
        f"job {waits.job_id}: cancelled (was scheduled)",
        f"job {done.job_id}: not done: it is completed, and a completed job cannot be changed by cancel",
        f"job {2**62}: not done: there is no such job",
        f"job {runs.job_id}: running, its end is asked for",
    ]
    assert len(entries(job_id=waits.job_id)) == 1


def test_the_outcome_of_each_job_is_there_for_programs(sh: Shell, worker: int) -> None:
    done, waits = making.completed(worker), making.scheduled(worker)
    ran = sh("jobs", "rerun", done.job_id, waits.job_id, 2**62, "--format", "json")
    assert ran.code == 1
    [again, refused, missing] = ran.json["jobs"]
    assert (ran.json["act"], ran.json["done"], ran.json["refused"]) == ("rerun", 1, 2)
    assert (again["job_id"], again["done"], again["after"]) == (str(done.job_id), True, "available")
    assert making.state(int(again["new_job_id"])) == "available"
    assert (refused["code"], refused["state"], refused["done"]) == ("moved_on", "scheduled", False)
    assert missing["code"] == "no_such_job"


def test_a_rerun_names_the_new_job(sh: Shell, worker: int) -> None:
    done = making.completed(worker)
    [line] = sh("jobs", "rerun", done.job_id).lines
    new = making.scalar("select id from shiftboss_job where rerun_of = %s", done.job_id)
    assert line == f"job {done.job_id}: runs again as job {new}, available"


@pytest.mark.requirement("L20")
def test_a_rerun_is_by_the_same_configuration_or_by_the_current_one(sh: Shell, worker: int) -> None:
    then = TaskConfig(task=ADD, timeout_seconds=2.5)
    making.enqueued(task=ADD, revision=then)
    [held] = making.claimed(worker, tasks=[ADD])
    run(making.report("complete", held.lease, worker))
    for words in ((), ("--revision", "same"), ("--revision", "current")):
        assert sh("jobs", "rerun", held.id, *words).code == 0
    found = making.rows("select revision_id from shiftboss_job where rerun_of = %s order by id", held.id)
    assert found == [(then.revision,), (then.revision,), (TaskConfig(task=ADD).revision,)]
    assert sh("jobs", "rerun", held.id, "--revision", "newest").code == 2
    gone = making.completed(worker)
    said = sh("jobs", "rerun", gone.job_id, "--revision", "current")
    assert (said.code, "there is no current revision" in said.err) == (2, True)


def test_who_holds_the_key_is_named(sh: Shell, worker: int) -> None:
    held = making.quarantined(worker)
    making.execute("update shiftboss_job set key = 'k' where id = %s", held.job_id)
    [holder] = making.enqueued()
    making.execute("update shiftboss_job set key = 'k' where id = %s", holder)
    ran = sh("jobs", "reinstate", held.job_id)
    assert ran.code == 1
    assert f"its key is held by job {holder}: wait for its end, or cancel it first" in ran.out
    [refused] = sh("jobs", "reinstate", held.job_id, "--format", "json").json["jobs"]
    assert (refused["code"], refused["holder"]) == ("key_held", str(holder))


@pytest.mark.django_db(transaction=True, available_apps=["django.contrib.postgres"])
def test_a_job_that_somebody_else_has_in_hand_is_busy(sh: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (operate, performing):
        monkeypatch.setattr(place, "HOLD_MILLISECONDS", 50)
    try:
        [job_id] = making.enqueued()
        with psycopg.connect(making.address()) as other:
            other.execute("select 1 from shiftboss_job where id = %s for update", [job_id])
            ran = sh("jobs", "cancel", job_id, *WHY, "--yes")
        assert (ran.code, ran.lines) == (
            1,
            [f"job {job_id}: not done: somebody else is changing it just now: try again"],
        )
    finally:
        making.empty()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["jobs", "cancel", "1", "--yes"], 'cancel wants a reason, which the audit keeps: give --reason "…"'),
        (["jobs", "quarantine", "1", "--reason", " "], "quarantine wants a reason"),
        (["queues", "pause", "mail"], "pause wants a reason"),
        (["purge", "--before", "2026-01-01", "--yes"], "purge wants a reason"),
        (["jobs", "cancel", "1", *WHY], "cancel cannot be taken back, and there is no terminal to ask: add --yes"),
        (["jobs", "discard", "1", *WHY], "add --yes"),
        (["purge", "--before", "2026-01-01", *WHY], "add --yes"),
        (["jobs", "cancel", *WHY, "--yes"], "give the ids of jobs, or --all with --queue or --task"),
        (["jobs", "cancel", "--all", *WHY, "--yes"], "add --queue or --task"),
        (["jobs", "cancel", "1", "--all", "--queue", "mail", *WHY], "ids and --all do not go together"),
        (["jobs", "cancel", "1", "--dry-run", *WHY], "ids and --dry-run do not go together"),
        (["jobs", "cancel", "1", "--queue", "mail", *WHY, "--yes"], "ids and --queue do not go together"),
        (["jobs", "cancel", "--all", "--queue", "m", "--state", "completed"], "completed jobs have ended already"),
        (["jobs", "cancel", "--all", "--queue", "m" * 101, *WHY, "--yes"], "queue"),
        (["jobs", "reprioritise", "1", "--priority", "101"], "from -100 to 100"),
        (["jobs", "expedite", "1", "--reason", "x" * 1001], "at most 1000 characters"),
        (["queues", "resume", "m" * 101], "queue"),
        (["jobs", "list", "--before", "5", "--after", "2"], "give --before or --after, not both"),
        # These the parser finds.
        (["jobs", "expedite"], "required: ID"),
        (["jobs", "expedite", "one"], "'one' is not an id: give a whole number"),
        (["jobs", "expedite", "9223372036854775808"], "is not an id"),
        (["jobs", "expedite", "²"], "is not an id"),
        (["jobs", "reprioritise", "1"], "required: --priority"),
        (["jobs", "reschedule", "1", "--due", "2026-01-01T12:00:00"], "with its offset from UTC or Z"),
        (["jobs", "reschedule", "1", "--due", "soon"], "'soon' is not a moment"),
        (["jobs", "list", "--state", "waiting"], "'waiting': the states are scheduled, available"),
        (["jobs", "list", "--limit", "0"], "'0' is not a number from 1 to 9999"),
        (["purge", "--before", "yesterday", *WHY, "--yes"], "'yesterday' is not a day"),
        (["jobs"], "required: COMMAND"),
    ],
)
def test_words_that_cannot_be_meant_are_wrong_usage(sh: Shell, words: list[str], complaint: str) -> None:
    [waits] = making.enqueued(due_in=3600)
    words = [str(waits) if word == "1" else word for word in words]
    refused = sh(*words)
    assert refused.code == 2
    assert complaint in refused.err
    assert refused.out == ""
    assert making.state(waits) == "scheduled"


def test_at_a_terminal_the_jobs_are_shown_and_nothing_is_done_without_a_yes(sh: Shell, worker: int) -> None:
    waits = making.scheduled(worker).job_id
    for answer in ("", "n", "no"):
        sh.at_a_terminal(answer)
        refused = sh("jobs", "cancel", waits, 2**62, *WHY)
        assert (refused.code, refused.out) == (1, "")
        assert "nothing was done" in refused.err
        assert making.state(waits) == "scheduled"
    shown = [line.split() for line in refused.err.splitlines()]
    assert shown[1] == [str(waits), "scheduled", "default", making.TASK]
    assert shown[2][1:4] == ["no", "such", "job"]
    assert "Cancel 2 jobs? [y/N]" in refused.err
    sh.at_a_terminal("y")
    assert sh("jobs", "cancel", waits, *WHY).code == 0
    assert making.state(waits) == "cancelled"


def test_a_terminal_that_is_gone_is_no_yes(sh: Shell, worker: int) -> None:
    waits = making.scheduled(worker).job_id
    sh.at_a_terminal()
    assert sh("jobs", "cancel", waits, *WHY).code == 1
    assert making.state(waits) == "scheduled"


def test_of_many_jobs_only_the_first_are_shown(sh: Shell) -> None:
    ids = making.enqueued(jobs.SHOWN_BEFORE + 2)
    sh.at_a_terminal("no")
    refused = sh("jobs", "cancel", *ids, *WHY)
    assert "… and 2 more\nCancel 12 jobs?" in refused.err
    assert len(refused.err.splitlines()) == jobs.SHOWN_BEFORE + 3


def test_who_may_not_is_not_asked_first(sh: Shell, worker: int) -> None:
    waits = making.scheduled(worker).job_id
    a_user("kim")
    sh.at_a_terminal("y")
    refused = sh("jobs", "cancel", waits, *WHY, "--as", "kim")
    assert refused.code == 1
    assert "[y/N]" not in refused.err


def test_a_moment_means_the_same_everywhere(sh: Shell, worker: int) -> None:
    waits = making.scheduled(worker).job_id
    ran = sh("jobs", "reschedule", waits, "--due", "2090-01-01T12:00:00+02:00")
    assert (ran.code, ran.lines) == (0, [f"job {waits}: rescheduled to 2090-01-01T10:00:00Z, scheduled as before"])
    assert making.live(waits)["due_at"] == datetime(2090, 1, 1, 10, tzinfo=UTC)  # type: ignore[index]


def test_queues_are_paused_and_resumed_and_the_audit_knows(sh: Shell, worker: int) -> None:
    first = sh("queues", "pause", "default", "mail", "--reason", "mail server is down")
    assert (first.code, first.lines) == (0, ["queue default: paused", "queue mail: paused"])
    again = sh("queues", "pause", "default", "--reason", "another one")
    assert (again.code, again.lines) == (0, ["queue default: paused already"])
    assert [p.reason for p in run(queues.pauses(authority=SYSTEM))] == ["mail server is down"] * 2
    resumed = sh("queues", "resume", "mail", "reports", "--format", "json")
    assert resumed.json == {
        "act": "resume",
        "queues": [
            {"queue": "mail", "before": "paused", "after": "running"},
            {"queue": "reports", "before": "running", "after": "running"},
        ],
    }
    assert [p.queue for p in run(queues.pauses(authority=SYSTEM))] == ["default"]
    assert [entry.act for entry in entries(queue="mail")] == ["resume", "pause"]


def test_a_queue_that_nothing_uses_is_paused_with_a_doubt(sh: Shell, worker: int) -> None:
    ran = sh("queues", "pause", "default", "maill", "--reason", "mail server is down")
    assert (ran.code, ran.lines) == (0, ["queue default: paused", "queue maill: paused"])
    assert ran.err == "shiftboss: queue maill has no job and no live worker: is it the right name?\n"


def test_a_purge_is_ordered(sh: Shell) -> None:
    a_user("kim", permitted=tuple(set(PERMISSIONS.values()) - {PERMISSIONS[Act.PURGE]}))
    words = ["purge", "--before", "2001-02-03", "--reason", "kept long enough", "--yes"]
    refused = sh(*words, "--as", "kim")
    assert refused.code == 1
    assert PERMISSIONS[Act.PURGE] in refused.err
    assert making.rows("select before from shiftboss_purge") == []
    ran = sh(*words)
    assert (ran.code, ran.out) == (0, "the history before 2001-02-03 is going to be dropped\n")
    assert str(making.scalar("select before from shiftboss_purge")) == "2001-02-03"
    assert entries()[0].act == "purge"
