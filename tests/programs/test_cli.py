"""`shiftboss run` and `shiftboss status` without anything running, and what they say to bad input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shiftboss.cli import main
from shiftboss.queue.authority import System
from shiftboss.queue.errors import UnsupportedDatabase
from shiftboss.queue.store import workers
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf import readiness
from tests.console import scenes
from tests.programs.tree import environment, shiftboss
from tests.store.making import a_worker, execute, says

JOBS = "tests.programs.jobs"
OWN = "tests.programs.own_settings"
NOWHERE = "postgresql://nobody@127.0.0.1:9/nothing"


@pytest.mark.requirement("L32")
@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["add", "--args", "[1]"], 2),
        (["add", "--args", "[1]", "--kwargs", '{"two": 4}'], 5),
        (["attempt"], 1),
        (["slowly", "--args", '["ü"]'], "ü"),
        (["call"], ["line"]),
    ],
)
def test_a_task_runs_with_no_server_and_no_database(home: Path, words: list[str], result: object) -> None:
    name, *options = words
    ran = shiftboss(home, "run", f"{JOBS}.{name}", *options, DATABASE_URL=NOWHERE)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == result
    assert not home.exists()


@pytest.mark.requirement("L32")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([f"{JOBS}.missing"], "'tests.programs.jobs.missing' cannot be imported"),
        (["nothing.at.all"], "No module named 'nothing'"),
        ([f"{JOBS}.plain"], "decorate it with @task"),
        ([f"{JOBS}.broken"], "failed: ValueError: broken on purpose"),
        ([f"{JOBS}.add"], "failed: TypeError"),
        ([f"{JOBS}.unstorable"], "cannot be stored as JSON"),
        ([f"{JOBS}.later"], "later asked to run again in 90 s: do so by hand, nothing is enqueued here"),
        ([f"{JOBS}.hopeless"], "hopeless gave the job up: the customer is gone"),
        ([f"{JOBS}.stopped"], "stopped ended because it saw itself cancelled"),
        ([f"{JOBS}.work"], "failed: SecretUnavailable: there is nobody to give the secret 'key'"),
        ([f"{JOBS}.work"], "closed desk"),
        ([f"{JOBS}.stranded"], "failed: UnknownResource: there is no resource 'nothing'"),
        ([f"{JOBS}.add", "--settings", "no.such.settings"], "--pythonpath"),
    ],
)
def test_what_cannot_run_is_named_with_exit_code_1(home: Path, words: list[str], complaint: str) -> None:
    ran = shiftboss(home, "run", *words, DATABASE_URL=NOWHERE)
    assert ran.returncode == 1
    assert complaint in ran.stderr
    assert ran.stdout == ""


@pytest.mark.requirement("L32")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([f"{JOBS}.add", "--args", "{}"], "--args must be a JSON list"),
        ([f"{JOBS}.add", "--args", "["], "--args is not JSON"),
        ([f"{JOBS}.add", "--args", "[NaN]"], "JSON cannot hold"),
        ([f"{JOBS}.add", "--kwargs", "[]"], "--kwargs must be a JSON object"),
        (["send_receipt"], "'send_receipt': give the dotted path of the task, as in shop.tasks.send_receipt"),
        ([".send_receipt"], "give the dotted path of the task"),
    ],
)
def test_what_cannot_be_meant_is_named_with_exit_code_2(home: Path, words: list[str], complaint: str) -> None:
    ran = shiftboss(home, "run", *words, DATABASE_URL=NOWHERE)
    assert ran.returncode == 2
    assert complaint in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["run"], ["up", "--port", "many"], ["status", "--format", "x"]]
)
def test_wrong_usage_has_exit_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: shiftboss" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["up"], ["status"], ["run"]])
def test_help_has_examples(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert "examples:\n  shiftboss " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["status", "up"])
def test_an_unreachable_database_is_named_without_its_password(home: Path, command: str) -> None:
    refused = shiftboss(home, command, DATABASE_URL="postgresql://me:secret@127.0.0.1:9/jobs")
    assert refused.returncode == 1
    assert "the database 'jobs' at 127.0.0.1:9 cannot be reached" in refused.stderr
    assert "? Start it, or correct DATABASE_URL\n" in refused.stderr
    assert "secret" not in refused.stderr + refused.stdout


def test_an_unreachable_database_of_the_project_is_named_by_its_alias(home: Path) -> None:
    refused = shiftboss(home, "status", "--settings", OWN)
    assert refused.returncode == 1
    assert "the database 'shop' at 127.0.0.1:9 cannot be reached" in refused.stderr
    assert f"? Start it, or correct DATABASES['default'] in {OWN}\n" in refused.stderr
    assert "DATABASE_URL" not in refused.stderr


@pytest.mark.parametrize("command", ["shiftboss_worker", "shiftboss_maintainer"])
def test_worker_and_maintainer_name_an_unreachable_database_too(home: Path, command: str) -> None:
    asked = [sys.executable, "-P", "-m", "django", command]
    refused = subprocess.run(
        asked, env=environment(home, DJANGO_SETTINGS_MODULE=OWN), capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "the database 'shop' at 127.0.0.1:9 cannot be reached" in refused.stderr
    assert f"correct DATABASES['default'] in {OWN}" in refused.stderr


def test_status_where_nothing_was_ever_started_says_so(home: Path) -> None:
    for more in ({}, {"DJANGO_SETTINGS_MODULE": "", "DATABASE_URL": ""}):
        refused = shiftboss(home, "status", **more)
        assert refused.returncode == 1
        assert f"no installation in {home}" in refused.stderr
        for way_out in ("shiftboss up", "--settings", "--pythonpath", "SHIFTBOSS_HOME"):
            assert way_out in refused.stderr


def test_an_empty_name_of_settings_counts_as_none(home: Path) -> None:
    ran = shiftboss(home, "run", f"{JOBS}.attempt", DJANGO_SETTINGS_MODULE="", DATABASE_URL="")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.requirement("L7", "L28")
@pytest.mark.django_db
def test_status_in_words_calls_a_silent_worker_lost_and_leaves_out_those_long_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHIFTBOSS_HOME", str(home))
    silent, stopped, long_stopped = a_worker(), a_worker(), a_worker()
    for worker in (stopped, long_stopped):
        says(worker, state="stopped")
    execute("update shiftboss_worker set heartbeat_at = now() - interval '40 seconds' where id = %s", silent)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '11 minutes' where id = %s", long_stopped)
    assert main(["status"]) == 0
    workers = capsys.readouterr().out.partition("Workers\n")[2].splitlines()
    assert [line.split()[2] for line in workers] == ["lost", "stopped"]
    assert "running" not in "".join(workers)
    assert main(["status", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["workers"]) == 3


@pytest.mark.requirement("N13", "R3")
@pytest.mark.django_db
def test_status_says_what_is_ordered_how_many_executors_are_to_end_and_what_no_observer_got(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHIFTBOSS_HOME", str(home))
    worker = a_worker()
    scenes.heartbeat(worker, tainted=2, dropped=1200)
    run(workers.order(worker, authority=System(), word="drain", by="kim"))
    assert main(["status"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "    drain ordered by kim",
        "    2 executors are to be ended: handlers did not end when they were asked to",
        "    observations that reached no observer: 1,200",
    ]


@pytest.mark.parametrize("command", ["status", "up"])
def test_a_database_that_is_not_postgresql_is_refused(home: Path, command: str) -> None:
    by_address = shiftboss(home, command, DATABASE_URL="mysql://me:secret@db/jobs")
    by_settings = shiftboss(home, command, "--settings", "tests.programs.sqlite_settings")
    for refused in (by_address, by_settings):
        assert refused.returncode == 1
        assert "PostgreSQL 15 or newer" in refused.stderr
        assert "secret" not in refused.stderr
    assert not (home / "postgres" / "data").exists()


def test_status_of_a_database_without_migrations_says_how_to_apply_them(home: Path, empty_database: str) -> None:
    refused = shiftboss(home, "status", DATABASE_URL=empty_database)
    assert refused.returncode == 1
    assert "migrate" in refused.stderr


@pytest.mark.django_db
def test_an_old_postgresql_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "OLDEST", 99)
    with pytest.raises(UnsupportedDatabase, match="needs 99 or newer"):
        readiness.check_server()
