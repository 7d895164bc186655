"""The API's acts: done once, for whom they are permitted to, and refused in words that a program can read."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss import acts
from shiftboss.permissions import Act
from shiftboss.queue.authority import Owner, System
from shiftboss.queue.store import audit, enqueue, queues
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.console.callers import Caller, problem, token_of, told, user
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C5", "B15")]
SYSTEM = System()


@pytest.fixture
def caller(db: None) -> Caller:
    """A program with an operator's token."""
    return Caller(token=token_of(user("ci")))


@pytest.fixture
def worker(db: None) -> int:
    """A worker of the queue `default`."""
    return making.a_worker()


ON_JOBS: dict[Act, tuple[Any, dict[str, Any], str]] = {
    Act.CANCEL: (making.scheduled, {"reason": "because"}, "cancelled"),
    Act.EXPEDITE: (making.retryable, {}, "available"),
    Act.RERUN: (making.completed, {}, "available"),
    Act.REINSTATE: (making.quarantined, {}, "available"),
    Act.DISCARD: (making.quarantined, {"reason": "because"}, "discarded"),
    Act.QUARANTINE: (making.available, {"reason": "because"}, "quarantined"),
    Act.REPRIORITISE: (making.available, {"priority": -7}, "available"),
    Act.RESCHEDULE: (making.available, {"due_at": "2090-01-31T12:00:00+05:00"}, "scheduled"),
}


@pytest.mark.parametrize("act", ON_JOBS)
def test_an_act_is_done_and_the_audit_names_the_token(caller: Caller, worker: int, act: Act) -> None:
    make, body, after = ON_JOBS[act]
    job_id = make(worker).job_id
    answered = told(caller.post(f"jobs/{job_id}/{act}", body))
    assert (answered["act"], answered["job_id"], answered["after"]) == (act, str(job_id), after)
    assert making.state(int(answered["new_job_id"] or job_id)) == after
    [entry] = run(audit.entries(authority=SYSTEM, job_id=job_id))
    assert (entry.actor_kind, entry.actor_name, entry.via) == ("token", "ci (token deploy)", "api")
    assert (entry.act, entry.reason) == (act, body.get("reason", ""))


@pytest.mark.parametrize("act", [act for act, (_, body, _) in ON_JOBS.items() if not body])
def test_an_act_that_wants_no_reason_wants_no_body(caller: Caller, worker: int, act: Act) -> None:
    make, _, after = ON_JOBS[act]
    answered = told(caller.post(f"jobs/{make(worker).job_id}/{act}"))
    assert answered["after"] == after


def test_priority_and_time_arrive_as_they_were_sent(caller: Caller, worker: int) -> None:
    job_id = making.available(worker).job_id
    told(caller.post(f"jobs/{job_id}/reprioritise", {"priority": -7, "reason": "later"}))
    told(caller.post(f"jobs/{job_id}/reschedule", {"due_at": "2090-01-31T12:00:00+05:00"}))
    row = making.live(job_id)
    assert row is not None
    assert (row["priority"], row["due_at"]) == (-7, datetime(2090, 1, 31, 7, tzinfo=UTC))


@pytest.mark.requirement("P6")
def test_a_queue_is_paused_and_resumed_whatever_its_name_holds(caller: Caller) -> None:
    name = 'mail/"ü" ?#%2F..'
    told(caller.post("queues/pause", {"queue": name, "reason": "the relay is down"}))
    assert [pause.queue for pause in run(queues.pauses(authority=SYSTEM))] == [name]
    answered = told(caller.post("queues/resume", {"queue": name}))
    assert (answered["queue"], answered["before"], answered["after"]) == (name, "paused", "running")
    assert run(queues.pauses(authority=SYSTEM)) == []


# Many at once


MANY: dict[Act, tuple[Any, str]] = {
    Act.REINSTATE: (making.quarantined, "available"),
    Act.RERUN: (making.completed, "available"),
    Act.EXPEDITE: (making.retryable, "available"),
    Act.DISCARD: (making.quarantined, "discarded"),
    Act.CANCEL: (making.scheduled, "cancelled"),
    Act.QUARANTINE: (making.scheduled, "quarantined"),
}


@pytest.mark.parametrize("act", acts.ON_MANY)
def test_many_jobs_are_changed_at_once_and_each_is_told(caller: Caller, worker: int, act: Act) -> None:
    make, after = MANY[act]
    moved_on = 2**40 if act is Act.CANCEL else making.running(worker)[0].job_id
    ids = sorted(make(worker).job_id for _ in range(2))
    wanted = [*map(str, ids), str(moved_on), str(2**41), str(ids[0])]
    done = told(caller.post(f"jobs/many/{act}", {"jobs": wanted, "reason": "because"}))
    assert (done["act"], done["changed"], done["repeated"]) == (act, [*map(str, ids)], False)
    assert [(one["job_id"], one["why"]) for one in done["left"]] == [
        (str(moved_on), "missing" if act is Act.CANCEL else "state"),
        (str(2**41), "missing"),
    ]
    assert done["after"] == {after: 2}
    assert [*done["new_jobs"]] == ([*map(str, ids)] if act is Act.RERUN else [])
    assert {making.state(int(done["new_jobs"].get(str(one), one))) for one in ids} == {after}
    [entry] = run(audit.entries(authority=SYSTEM, act=act))
    assert (entry.actor_name, entry.via, entry.jobs) == ("ci (token deploy)", "api", 2)
    assert str(entry.operation) == done["operation"]


def test_many_jobs_are_changed_once_under_one_key(caller: Caller, worker: int) -> None:
    ids, key = [str(making.completed(worker).job_id) for _ in range(2)], a_request()
    first = told(caller.post("jobs/many/rerun", {"jobs": ids}, key=key))
    assert told(caller.post("jobs/many/rerun", {"jobs": ids[::-1]}, key=key)) == first | {"repeated": True}
    assert making.scalar("select count(*) from shiftboss_job where rerun_of is not null") == 2
    problem(caller.post("jobs/many/rerun", {"jobs": ids[:1]}, key=key), 409, "request_reused")


@pytest.mark.parametrize("jobs", [[], ["x"], ["-1"], ["0"], [7], ["9" * 5000], "7", None, ["7", ["8"]]])
def test_many_jobs_that_cannot_be_are_refused_together(caller: Caller, jobs: Any) -> None:
    [job_id] = making.enqueued()
    wanted = [str(job_id), *jobs] if isinstance(jobs, list) and jobs else jobs
    problem(caller.post("jobs/many/cancel", {"jobs": wanted, "reason": "because"}), 422, "invalid")
    assert making.state(job_id) == "available"


def test_more_jobs_than_one_act_takes_are_refused(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftboss.acts.named.MOST", 2)
    ids = [*map(str, making.enqueued(3))]
    said = problem(caller.post("jobs/many/cancel", {"jobs": ids, "reason": "because"}), 422, "invalid")
    assert "choose 1 to 2 jobs" in said["message"]


def test_an_act_that_is_not_done_to_many_has_no_address_for_them(caller: Caller) -> None:
    problem(caller.post("jobs/many/reprioritise", {"jobs": ["1"], "priority": 3}), 422, "invalid")
    problem(caller.post("jobs/many/explode", {"jobs": ["1"]}), 404, "not_found")


# Refused


LIMITS = "must be a whole number, or must be one of none, sequential, settings"
OFFSET = "must tell its offset from UTC, as in 2026-01-31T12:00:00Z"
PLAIN = [
    ("queues/limit", {"queue": "a", "limit": "3"}, f"body.limit: {LIMITS}"),
    ("queues/limit", {"queue": 3, "limit": 1}, "body.queue: must be a text"),
    ("queues/limit", {"queue": "a"}, "body.limit: is missing"),
    ("queues/limit", {"queue": "a", "limit": 3, "resaon": "x"}, "body.resaon: is not known here"),
    ("jobs/1/reprioritise", {"priority": True}, "body.priority: must be a whole number"),
    ("jobs/1/reprioritise", [1], "body: must be an object"),
    ("jobs/1/reprioritise", None, "body: is missing"),
    ("jobs/1/reschedule", {"due_at": 7}, "body.due_at: a time is written as in 2026-01-31T12:00:00Z"),
    ("jobs/1/reschedule", {"due_at": "2026-01-31T12:00:00"}, f"body.due_at: {OFFSET}"),
    ("jobs/1/edit", {"arguments": {"args": 3, "kwargs": {}}}, "body.arguments.args: must be a list"),
    ("jobs/1/rerun", {"revision": "old"}, "body.revision: must be one of same, current"),
    ("jobs/many/cancel", {"jobs": ["1", 2], "reason": "x"}, "body.jobs.1: must be a text"),
    ("jobs/many/cancel", {"jobs": ["x"], "reason": "x"}, "body.jobs.0: must be an id, as it was given out"),
]


@pytest.mark.parametrize(("path", "body", "words"), PLAIN)
def test_what_is_wrong_with_a_request_is_told_in_plain_words(
    caller: Caller, path: str, body: Any, words: str
) -> None:
    said = problem(caller.post(path, body), 422, "invalid")
    assert [f"{one['where']}: {one['message']}" for one in said["errors"]] == [words]


def test_a_job_that_has_moved_on_tells_its_state(caller: Caller, worker: int) -> None:
    job_id = making.completed(worker).job_id
    said = problem(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}), 409, "moved_on")
    assert (said["job_id"], said["act"], said["state"]) == (str(job_id), "cancel", "completed")


def test_a_held_key_tells_its_holder(caller: Caller, worker: int) -> None:
    new = enqueue.NewJob(
        queue="default", task=making.TASK, args=making.ARGS, failure_limit=1, loss_limit=3, key="invoice 7"
    )
    done = run(enqueue.enqueue(new, authority=Owner("customer"))).id
    [held] = making.claimed(worker)
    run(making.report("complete", held.lease, worker))
    holder = run(enqueue.enqueue(new, authority=Owner("customer"))).id
    said = problem(caller.post(f"jobs/{done}/rerun"), 409, "key_held")
    assert (said["key"], said["holder"]) == ("invoice 7", str(holder))


def test_a_missing_reason_is_said_so(caller: Caller, worker: int) -> None:
    job_id = making.available(worker).job_id
    for body in (None, {}, {"reason": "  "}):
        problem(caller.post(f"jobs/{job_id}/cancel", body), 422, "reason_needed")
    assert making.state(job_id) == "available"


def test_a_missing_permission_is_named(worker: int) -> None:
    caller = Caller(token=token_of(user("eye", "viewer")))
    job_id = making.available(worker).job_id
    said = problem(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}), 403, "not_allowed")
    assert said["permission"] == "shiftboss.cancel_job"
    assert problem(caller.get("audit"), 403, "not_allowed")["permission"] == "shiftboss.view_audit"


BAD_BODIES: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 422, "invalid"),
    "no json": (b"priority=3", 400, "malformed"),
    "half": (b'{"priority": 3', 400, "malformed"),
    "no utf-8": (b'{"priority": 3, "reason": "\xff"}', 400, "malformed"),
    "utf-16": ('{"priority": 3, "reason": "x"}'.encode("utf-16-le")[:9], 400, "malformed"),
    "NaN": (b'{"priority": NaN}', 400, "malformed"),
    "Infinity": (b'{"priority": -Infinity}', 400, "malformed"),
    "twice": (b'{"priority": 3, "priority": 4}', 400, "malformed"),
    "deep": (b"[" * 60_000, 400, "malformed"),
    "digits": (b'{"priority": ' + b"9" * 5000 + b"}", 400, "malformed"),
    "a list": (b"[3]", 422, "invalid"),
    "null": (b"null", 422, "invalid"),
    "a text": (b'{"priority": "3"}', 422, "invalid"),
    "true": (b'{"priority": true}', 422, "invalid"),
    "a half": (b'{"priority": 3.5}', 422, "invalid"),
    "too high": (b'{"priority": 101}', 422, "invalid"),
    "far too high": (b'{"priority": 36893488147419103232}', 422, "invalid"),
    "unknown field": (b'{"priority": 3, "resaon": "x"}', 422, "invalid"),
    "reason is a number": (b'{"priority": 3, "reason": 3}', 422, "invalid"),
    "NUL": (b'{"priority": 3, "reason": "a\\u0000b"}', 422, "reason_needed"),
    "surrogate": (b'{"priority": 3, "reason": "\\ud800"}', 422, ""),
    "long reason": (b'{"priority": 3, "reason": "' + b"x" * 1001 + b'"}', 422, "reason_needed"),
    "100 KB": (b'{"priority": 3, "reason": "' + b"x" * 100_000 + b'"}', 413, "too_large"),
    "10 MB": (b'{"priority": 3, "reason": "' + b"x" * 10_000_000 + b'"}', 413, "too_large"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_body_that_cannot_be_is_refused_in_words_and_changes_nothing(
    caller: Caller, worker: int, name: str
) -> None:
    job_id = making.available(worker).job_id
    before = making.whole(job_id)
    body, status, code = BAD_BODIES[name]
    response = caller.post(f"jobs/{job_id}/reprioritise", body)
    said = problem(response, status, code or told(response, status)["code"])
    assert len(response.content) < 2000
    assert "hint" not in said
    assert making.whole(job_id) == before


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"]
)
def test_a_body_that_is_not_said_to_be_json_is_refused(caller: Caller, worker: int, content_type: str) -> None:
    job_id = making.available(worker).job_id
    body = b'{"reason": "because"}'
    problem(caller.post(f"jobs/{job_id}/cancel", body, content_type=content_type), 415, "not_json")
    assert making.state(job_id) == "available"


def test_a_body_in_chunks_is_refused_and_not_taken_for_none(caller: Caller, worker: int) -> None:
    done = making.completed(worker).job_id
    response = caller.post(f"jobs/{done}/rerun", **{"Transfer-Encoding": "chunked"})
    problem(response, 411, "length_required")
    assert making.scalar("select count(*) from shiftboss_job where rerun_of = %s", done) == 0


def test_a_body_over_the_projects_own_limit_is_too_large(caller: Caller, worker: int, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    job_id = making.available(worker).job_id
    problem(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}), 413, "too_large")


@pytest.mark.parametrize(
    "due_at",
    [
        "2090-01-31",
        "2090-01-31T12:00:00",
        "2090",
        "3786912000",
        3786912000,
        None,
        "9999-12-31T23:00:00-14:00",
        "x",
    ],
)
def test_a_time_that_is_no_instant_is_refused(caller: Caller, worker: int, due_at: Any) -> None:
    job_id = making.available(worker).job_id
    problem(caller.post(f"jobs/{job_id}/reschedule", {"due_at": due_at}), 422, "invalid")
    assert making.state(job_id) == "available"


@pytest.mark.parametrize("name", ["", "a\x00b", "a\nb", "\ud800", "x" * 101, None, 3])
def test_a_name_that_no_queue_can_have_is_refused(caller: Caller, name: Any) -> None:
    problem(caller.post("queues/pause", {"queue": name, "reason": "because"}), 422, "invalid")
    problem(caller.post("queues/resume", {"queue": name}), 422, "invalid")


# Repeats


def test_a_repeat_is_answered_as_the_first_was_and_done_once(caller: Caller, worker: int) -> None:
    done, key = making.completed(worker).job_id, a_request()
    first = told(caller.post(f"jobs/{done}/rerun", {"reason": "again"}, key=key))
    again = told(caller.post(f"jobs/{done}/rerun", {"reason": "again"}, key=key))
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again | {"repeated": False} == first
    assert making.scalar("select count(*) from shiftboss_job where rerun_of = %s", done) == 1


@pytest.mark.parametrize("act", [*ON_JOBS, Act.PAUSE, Act.RESUME])
def test_every_act_takes_a_key(caller: Caller, worker: int, act: Act) -> None:
    key = a_request()
    make, body, _ = ON_JOBS.get(act, (None, {"queue": "mail", "reason": "because"}, ""))
    path = f"jobs/{make(worker).job_id}/{act}" if make else f"queues/{act}"
    first, again = told(caller.post(path, body, key=key)), told(caller.post(path, body, key=key))
    assert again == first | {"repeated": True}
    assert making.rows("select act from shiftboss_audit where request_id = %s", key) == [(act,)]


def test_a_key_that_comes_back_with_another_body_is_refused(caller: Caller, worker: int) -> None:
    job_id, key = making.available(worker).job_id, a_request()
    told(caller.post(f"jobs/{job_id}/reprioritise", {"priority": 3}, key=key))
    for body in ({"priority": 4}, {"priority": 3, "reason": "vip"}):
        problem(caller.post(f"jobs/{job_id}/reprioritise", body, key=key), 409, "request_reused")
    problem(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}, key=key), 409, "request_reused")
    assert making.state(job_id) == "available"


def test_a_key_belongs_to_the_caller_and_not_to_all(worker: int) -> None:
    key = a_request()
    ours, theirs = making.completed(worker).job_id, making.completed(worker).job_id
    ci, other = user("ci"), user("other")
    callers = [
        Caller(token=token_of(ci, "one")),
        Caller(token=token_of(ci, "two")),
        Caller(token=token_of(other, "one")),
        Caller(session=ci),
    ]
    answers = [told(callers[0].post(f"jobs/{ours}/rerun", key=key))]
    answers += [told(caller.post(f"jobs/{theirs}/rerun", key=key)) for caller in callers[1:]]
    assert [one["repeated"] for one in answers] == [False] * 4
    assert len({one["new_job_id"] for one in answers}) == 4
    # And each has its own answer again.
    assert told(callers[0].post(f"jobs/{ours}/rerun", key=key))["new_job_id"] == answers[0]["new_job_id"]
    problem(callers[0].post(f"jobs/{theirs}/rerun", key=key), 409, "request_reused")


@pytest.mark.parametrize("key", ["", "x" * 101, "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(caller: Caller, worker: int, key: str) -> None:
    job_id = making.available(worker).job_id
    problem(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}, key=key), 422, "invalid")
    assert making.state(job_id) == "available"


def test_a_refused_act_may_come_again_under_its_key(caller: Caller, worker: int) -> None:
    job_id, key = making.available(worker).job_id, a_request()
    problem(caller.post(f"jobs/{job_id}/cancel", {}, key=key), 422, "reason_needed")
    assert not told(caller.post(f"jobs/{job_id}/cancel", {"reason": "because"}, key=key))["repeated"]


@pytest.mark.django_db(transaction=True)
def test_an_act_stands_whatever_the_project_wraps_around_its_views(settings: Any, dsn: str) -> None:
    from django.db import connection

    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        job_id = making.enqueued(due_in=60)[0]
        caller = Caller(token=token_of(user("ci")))
        key = a_request()
        told(caller.post(f"jobs/{job_id}/expedite", key=key))
        assert told(caller.post(f"jobs/{job_id}/expedite", key=key))["repeated"]
        problem(caller.post(f"jobs/{job_id}/expedite"), 409, "moved_on")
        assert making.state(job_id) == "available"
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False


def test_acts_of_others_do_not_show_in_an_answer(caller: Caller, worker: int) -> None:
    job_id, key = making.available(worker).job_id, a_request()
    acts.reprioritise(job_id, by=person("kim"), priority=9, reason="between us", request_id=key)
    response = caller.post(f"jobs/{job_id}/reprioritise", {"priority": 9}, key=key)
    assert told(response)["repeated"] is False
    assert "between us" not in response.content.decode()
