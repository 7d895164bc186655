"""The API's reads: what the record says, under the record's names."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.test import Client
from django.urls import reverse

from shiftboss import acts, cli
from shiftboss.console import record
from shiftboss.console.api import schemas
from shiftboss.console.api.errors import ANSWERS
from shiftboss.permissions import Act
from shiftboss.queue.states import FINAL, State
from shiftboss.queue.store import audit, read, samples, search
from tests.acts.people import person
from tests.console import scenes
from tests.console.callers import Caller, problem, token_of, told, user
from tests.console.scenes import TASK, claimed, job, worker
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C5")]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def caller(db: None) -> Caller:
    """A program with an operator's token."""
    return Caller(token=token_of(user("ci")))


# Status and queues


@pytest.mark.requirement("B15")
def test_status_says_what_the_command_says_under_the_same_names(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    worker_id = worker("default")
    making.completed(worker_id)
    job(queue="mail")
    job()
    claimed(worker_id)
    acts.pause("mail", by=person(), reason="the relay is down")
    assert cli.main(["status", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    answered = told(caller.get("status"))

    def timeless(value: Any) -> Any:
        match value:
            case dict():
                return {name: timeless(item) for name, item in value.items() if not name.endswith("_seconds")}
            case list():
                return [timeless(item) for item in value]
        return value

    assert timeless(answered) == timeless(said)
    assert answered.keys() == said.keys()
    assert answered["states"]["running"] == 1
    assert "mail" in answered["warnings"][0]


@pytest.mark.requirement("B7")
def test_a_count_that_stops_at_its_limit_says_so(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    worker_id = worker()
    for _ in range(3):
        making.completed(worker_id)
    assert told(caller.get("status"))["capped"] is False
    monkeypatch.setattr(samples, "FINISHED_CAP", 2)
    for path in ("status", "queues"):
        assert told(caller.get(path))["capped"] is True


@pytest.mark.requirement("P6")
def test_a_paused_queue_tells_who_paused_it_and_why(caller: Caller) -> None:
    acts.pause('a/b "ü"', by=person("kim"), reason="because")
    [queue] = told(caller.get("queues"))["queues"]
    assert queue["queue"] == 'a/b "ü"'
    assert (queue["paused"]["paused_by"], queue["paused"]["reason"]) == ("kim", "because")
    assert queue["paused"]["paused_at"].endswith("Z")


@pytest.mark.requirement("B7")
def test_status_and_queues_say_how_old_they_are_and_whether_anybody_looks(caller: Caller) -> None:
    worker("default")
    job()
    with scenes.abandoned():
        for path in ("status", "queues"):
            assert told(caller.get(path))["ages_seconds"] == {}
        answered = told(caller.get("status"))
        assert answered["warnings"] == [
            "no maintainer looks at the record: start one by manage.py shiftboss_maintainer"
        ]
        assert (answered["states"]["available"], answered["workers"][0]["alive"]) == (0, True)
    with scenes.maintained():
        making.execute("update shiftboss_sample set at = at - interval '5 s'")
        answered = told(caller.get("status"))
        assert (answered["states"]["available"], answered["warnings"]) == (1, [])
        assert 5 <= answered["ages_seconds"]["counts"] < 60
        assert 5 <= answered["oldest_available_seconds"] < 60
        assert set(answered["ages_seconds"]) == set(samples.Part)


# Workers


@pytest.mark.requirement("L7", "B15")
def test_workers_are_told_as_the_command_tells_them_and_narrowed_as_on_the_page(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    mail, heavy = worker("mail", host="a"), worker("mail", "default", pool="heavy", host="b")
    acts.drain_worker(heavy, by=person("kim"), reason="its host is to be rebooted")
    making.says(worker("old"), state="stopped")
    assert cli.main(["workers", "list", "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)["workers"]
    answered = told(caller.get("workers"))["workers"]
    assert [{**one, "heartbeat_age_seconds": 0} for one in answered] == [
        {**one, "heartbeat_age_seconds": 0} for one in said
    ]
    assert len(answered) == 3

    def narrowed(**query: str) -> set[int]:
        return {int(one["id"]) for one in told(caller.get("workers", **query))["workers"]}

    assert narrowed(queue="mail") == {mail, heavy}
    assert narrowed(queue="mail", pool="heavy") == narrowed(host="b") == narrowed(state="draining") == {heavy}
    assert narrowed(state="late") == set()
    for query in ({"state": "asleep"}, {"pool": "a\x00"}, {"queue": "x" * 101}, {"pol": "x"}):
        problem(caller.get("workers", **query), 422, "invalid")


@pytest.mark.requirement("L7")
def test_a_worker_is_told_with_what_runs_in_it_and_what_may_be_ordered(caller: Caller) -> None:
    worker_id = worker()
    for _ in range(2):
        job()
    held = claimed(worker_id, limit=2)
    answered = told(caller.get(f"workers/{worker_id}"))
    assert (answered["id"], answered["alive"], answered["running"]) == (str(worker_id), True, 2)
    assert {one["id"] for one in answered["runs"]} == {str(one.id) for one in held}
    assert answered["runs"][0]["task"] == TASK
    assert answered["acts"] == ["drain_worker"]
    assert told(Caller(token=token_of(user("root", "admin"))).get(f"workers/{worker_id}"))["acts"] == [
        "drain_worker",
        "stop_worker",
    ]
    for nobody in ("0", "999", "9" * 30, "x"):
        problem(caller.get(f"workers/{nobody}"), 404, "no_such_worker")


# Jobs


@pytest.mark.requirement("B14")
def test_a_search_in_arguments_is_kept_in_the_audit_once_in_a_while(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One span that ends years from now, and not between two searches.
    monkeypatch.setattr("shiftboss.console.revealing.REVEALED_SECONDS", 1e9)
    job_id = job(args='{"args": [], "kwargs": {"to": "ada"}}')
    told(caller.get("jobs", q="queue:default"))
    problem(caller.get("jobs", q="args.to=ada stat:x"), 422, "invalid")
    assert told(caller.get("audit", act="reveal"))["entries"] == []
    for _ in range(2):
        assert ids(told(caller.get("jobs", q="args.to=ada"))) == [str(job_id)]
    [entry] = told(caller.get("audit", act="reveal"))["entries"]
    assert (entry["asked"], entry["via"]) == ({"of": "lists"}, "api")
    viewer = Caller(token=token_of(user("eye", "viewer")))
    said = problem(viewer.get("jobs", q="args.to=ada"), 403, "not_allowed")
    assert said["permission"] == "shiftboss.view_arguments"
    other = Caller(token=token_of(user("other")))
    told(other.get("jobs", q="args.to=ada"))
    assert [one["actor_name"] for one in told(caller.get("audit", act="reveal"))["entries"]] == [
        "other (token deploy)",
        "ci (token deploy)",
    ]


def ids(page: Any) -> list[str]:
    return [one["id"] for one in page["jobs"]]


@pytest.mark.requirement("C4")
def test_jobs_are_listed_newest_first_by_state_and_queue(caller: Caller) -> None:
    worker_id = worker()
    first = making.completed(worker_id).job_id
    mail, last = job(queue="mail"), job()
    assert ids(told(caller.get("jobs"))) == [str(last), str(mail), str(first)]
    assert ids(told(caller.get("jobs", state="available"))) == [str(last), str(mail)]
    assert ids(told(caller.get("jobs", state="completed,running"))) == [str(first)]
    assert ids(told(caller.get("jobs", queue="mail"))) == [str(mail)]
    assert ids(told(caller.get("jobs", state="available", queue="nothing"))) == []


def test_jobs_are_searched_as_on_the_page(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    first, mail, last = job(tags=("x",)), job(queue="mail", tags=("x",)), job()
    assert ids(told(caller.get("jobs", q="tag:x"))) == [str(mail), str(first)]
    assert ids(told(caller.get("jobs", q="-tag:x"))) == [str(last)]
    assert ids(told(caller.get("jobs", q="tag:x", queue="mail", state="available"))) == [str(mail)]
    assert ids(told(caller.get("jobs", q="state:running", state="available"))) == []
    assert ids(told(caller.get("jobs", q="state:available -state:available"))) == []
    page = told(caller.get("jobs", q="tag:x", limit=1))
    assert (ids(page), page["newer"]) == ([str(mail)], None)
    page = told(caller.get("jobs", q="tag:x", limit=1, before=page["older"]))
    assert (ids(page), page["older"]) == ([str(first)], None)
    assert ids(told(caller.get("jobs", q="tag:x", limit=1, after=page["newer"]))) == [str(mail)]
    answer = caller.get("jobs", q="tag:x stat:running")
    assert answer.status_code == 422
    assert "at character 7: There is no field “stat”" in json.loads(answer.content)["message"]
    assert "(nearest: state:)" in json.loads(answer.content)["message"]
    monkeypatch.setattr(search, "ROWS", 1)
    monkeypatch.setattr(search, "FIRST_WINDOW", 1)
    for wanted in ({"q": "queue:mail"}, {"queue": "mail"}, {"queue": "mail", "state": "available,retryable"}):
        page = told(caller.get("jobs", **wanted))
        assert ids(page) == []
        assert ids(told(caller.get("jobs", **wanted, before=page["older"]))) == [str(mail)]


def test_pages_of_jobs_meet_without_a_gap_in_both_directions(caller: Caller) -> None:
    made = [str(job()) for _ in range(7)]
    newest_first = made[::-1]
    page = told(caller.get("jobs", limit=3))
    walked = [ids(page)]
    assert page["newer"] is None
    while page["older"]:
        page = told(caller.get("jobs", limit=3, before=page["older"]))
        walked.append(ids(page))
    assert walked == [newest_first[:3], newest_first[3:6], newest_first[6:]]
    back = [ids(page)]
    while page["newer"]:
        page = told(caller.get("jobs", limit=3, after=page["newer"]))
        back.append(ids(page))
    assert sorted({one for some in back for one in some}) == sorted(made)
    assert page["newer"] is None


@pytest.mark.requirement("B14")
def test_neither_a_list_nor_a_job_shows_arguments(caller: Caller) -> None:
    job_id = job(args='{"args": ["secret"], "kwargs": {}}')
    for path in ("jobs", f"jobs/{job_id}"):
        assert "secret" not in caller.get(path).content.decode()
    assert told(caller.post(f"jobs/{job_id}/reveal", {}))["args"] == {"args": ["secret"], "kwargs": {}}


def test_a_job_is_told_with_attempts_events_and_what_may_be_done(caller: Caller) -> None:
    worker_id = worker()
    job_id = making.retryable(worker_id).job_id
    acts.reprioritise(job_id, by=person("kim"), priority=3)
    answered = told(caller.get(f"jobs/{job_id}"))
    assert (answered["id"], answered["state"], answered["task"]) == (str(job_id), "retryable", TASK)
    [attempt] = answered["attempts"]
    assert (attempt["job_id"], attempt["outcome"], attempt["error_type"]) == (str(job_id), "failed", "ValueError")
    [event] = answered["events"]
    assert (event["kind"], event["data"]["by"]) == ("reprioritise", "kim")
    assert answered["acts"] == ["cancel", "expedite", "quarantine", "reprioritise", "reschedule"]


@pytest.mark.parametrize("state", State)
def test_the_acts_of_a_state_are_those_that_succeed_there(state: State) -> None:
    legal = acts.legal(state)
    assert (Act.RERUN in legal) == (state in FINAL)
    assert (Act.DISCARD in legal) == (state is State.QUARANTINED)
    assert (Act.CANCEL in legal) == (state not in FINAL)


def test_no_digit_of_a_stored_number_is_lost(caller: Caller) -> None:
    text = '{"args": [12345678901234567890123, 0.1000000000000000055511151231257827, 1e400], "kwargs": {}}'
    job_id = job(args=text)
    body = caller.post(f"jobs/{job_id}/reveal", {}).content.decode()
    assert "12345678901234567890123" in body
    assert "0.1000000000000000055511151231257827" in body
    assert "1" + 400 * "0" in body
    assert json.loads(body, parse_int=str)["args"]["args"][2] == "1" + 400 * "0"


def test_a_text_that_looks_like_a_mark_of_the_writer_is_only_a_text(caller: Caller) -> None:
    job_id = job(args='{"args": ["stored-000000", "\\"stored-"], "kwargs": {}}')
    assert told(caller.post(f"jobs/{job_id}/reveal", {}))["args"]["args"] == ["stored-000000", '"stored-']


def test_ids_are_text_everywhere(caller: Caller) -> None:
    worker_id = worker()
    job_id = making.running(worker_id)[0].job_id
    acts.cancel(job_id, by=person(), reason="because")
    found: list[Any] = []

    def look(value: Any, name: str = "") -> None:
        match value:
            case dict():
                for key, item in value.items():
                    look(item, key)
            case list():
                for item in value:
                    look(item, name)
            case _ if name in {"id", "job_id", "worker_id", "rerun_of", "new_job_id", "key_holder", "older"}:
                found.append(value)

    for path in ("status", "jobs", f"jobs/{job_id}", "audit"):
        look(told(caller.get(path)))
    assert len(found) > 8
    assert {type(one) for one in found if one is not None} == {str}


@pytest.mark.parametrize("job_id", ["0", "2", "4611686018427387904", "9223372036854775808", "9" * 5000, "-1", "x"])
def test_a_job_that_is_not_there_is_not_found_whatever_its_id(caller: Caller, job_id: str) -> None:
    problem(caller.get(f"jobs/{job_id}"), 404, "no_such_job")
    problem(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}), 404, "no_such_job")


@pytest.mark.parametrize(
    "query",
    [
        {"state": "sleeping"},
        {"state": ""},
        {"state": "available,"},
        {"queue": ""},
        {"queue": "a\x00b"},
        {"queue": "x" * 101},
        {"before": "x"},
        {"before": "9223372036854775808"},
        {"before": "9" * 5000},
        {"before": "1", "after": "2"},
        {"limit": "0"},
        {"limit": ""},
        {"limit": "201"},
        {"limit": "many"},
        {"quue": "mail"},
    ],
    ids=str,
)
def test_a_filter_that_cannot_be_is_said_so(caller: Caller, query: dict[str, str]) -> None:
    problem(caller.get("jobs", **query), 422, "invalid")


# The audit


@pytest.mark.requirement("B6")
def test_the_audit_is_told_newest_first_and_narrowed(caller: Caller) -> None:
    job_id, other = making.enqueued(2, due_in=60)
    acts.reprioritise(job_id, by=person("kim"), priority=4, reason="vip")
    acts.expedite(other, by=person("kim"))
    acts.pause("mail", by=person("kim"), reason="because")
    page = told(caller.get("audit", limit=2))
    assert [(one["act"], one["queue"], one["job_id"]) for one in page["entries"]] == [
        ("pause", "mail", None),
        ("expedite", None, str(other)),
    ]
    older = told(caller.get("audit", limit=2, before=page["older"]))["entries"][0]
    assert (older["actor_name"], older["via"], older["reason"]) == ("kim", "code", "vip")
    assert (older["asked"], older["before"]["priority"], older["after"]["priority"]) == ({"priority": 4}, 0, 4)
    assert [one["act"] for one in told(caller.get("audit", job_id=job_id))["entries"]] == ["reprioritise"]
    assert [one["act"] for one in told(caller.get("audit", queue="mail"))["entries"]] == ["pause"]
    problem(caller.get("audit", job_id="x"), 422, "invalid")


# Fields, schema and mounting


@pytest.mark.parametrize(
    ("schema", "row", "more"),
    [
        (schemas.Job, read.JobRow, {"kind"}),
        (schemas.JobDetail, read.JobDetail, {"kind", "retry_kind", "acts", "attempts", "events", "args_sha256"}),
        (schemas.Attempt, read.AttemptRow, {"retry_kind", "withheld"}),
        (schemas.Event, read.EventRow, set()),
        (schemas.Entry, audit.AuditRow, set()),
    ],
)
def test_the_api_shows_all_that_the_record_tells_of_a_row(schema: Any, row: Any, more: set[str]) -> None:
    assert set(schema.model_fields) == {field.name for field in fields(row)} | more


@pytest.mark.requirement("R11")
def test_every_code_of_an_error_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [one.code for one in ANSWERS.values() if f"| {one.status} | `{one.code}`" not in text] == []


def test_the_schema_is_told_to_people_who_may_see_jobs_with_the_addresses_of_this_project(caller: Caller) -> None:
    schema = told(caller.get("openapi.json"))
    assert "/api/v1/jobs/{job_id}/cancel" in schema["paths"]
    problem(Caller().get("openapi.json"), 401, "unauthenticated")
    problem(Caller(token=token_of(user("nobody", None))).get("openapi.json"), 403, "not_allowed")


@pytest.mark.requirement("C7")
def test_the_api_follows_the_console_under_any_prefix(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.console.prefixed_urls"
    client = Client(headers={"Authorization": f"Bearer {token_of(user('ci'))}"})
    assert client.get("/ops/queue/api/v1/status").status_code == 200
    assert reverse("shiftboss:api:status") == "/ops/queue/api/v1/status"
    schema = client.get("/ops/queue/api/v1/openapi.json").json()
    assert "/ops/queue/api/v1/status" in schema["paths"]


@pytest.mark.requirement("C7")
def test_a_project_may_mount_it_twice(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.console.two_mounts"
    token = token_of(user("ci"))
    for prefix in ("/one", "/two"):
        response = Client().get(f"{prefix}/api/v1/status", headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 200


# Trouble


@pytest.mark.parametrize("path", ["", "nothing", "jobs/1/explode", "docs", "jobs/"])
def test_an_address_that_does_not_exist_is_said_so_in_json(caller: Caller, path: str) -> None:
    problem(caller.get(path), 404, "not_found")


def test_a_method_that_an_address_does_not_take_is_said_so(caller: Caller) -> None:
    assert caller.get("jobs/1/cancel").headers["Allow"] == "POST"
    problem(caller.get("jobs/1/cancel"), 405, "method_not_allowed")
    problem(caller.post("status", {}), 405, "method_not_allowed")


@pytest.mark.django_db(transaction=True)
def test_a_database_that_does_not_answer_in_time_is_said_so(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(token=token_of(user("ci")))
    monkeypatch.setattr(record, "PATIENCE_SECONDS", 0.1)
    with psycopg.connect(dsn) as other:
        other.execute("lock table shiftboss_job in access exclusive mode")
        response = caller.get("jobs")
    problem(response, 503, "database_slow")
    assert response.headers["Retry-After"] == "5"


def test_a_database_that_was_not_migrated_is_said_so(caller: Caller) -> None:
    making.execute("alter table shiftboss_worker rename to elsewhere")
    problem(caller.get("status"), 503, "not_migrated")


def lost(*_: Any, **__: Any) -> Any:
    from django.db import OperationalError

    raise OperationalError("connection failed: postgresql://user:hunter2@db/") from psycopg.OperationalError(
        "gone"
    )


@pytest.mark.parametrize(
    ("where", "call"),
    [
        ("shiftboss.console.listing.run", lambda caller: caller.get("jobs")),
        ("shiftboss.acts.jobs.run", lambda caller: caller.post("jobs/1/expedite", {})),
        ("shiftboss.console.tokens._tokens", lambda caller: caller.get("jobs")),
    ],
)
def test_a_database_that_is_away_is_said_so_without_its_address(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, where: str, call: Callable[[Caller], Any]
) -> None:
    monkeypatch.setattr(where, lost)
    response = call(caller)
    problem(response, 503, "database_unavailable")
    assert response.headers["Retry-After"] == "5"
    assert "hunter2" not in response.content.decode()


def test_an_error_that_nobody_foresaw_is_the_projects_to_log(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("shiftboss.console.listing.run", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        caller.get("jobs")
