"""Each act changes its row and leaves its entry, in one transaction and for people to whom it is permitted."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from shiftboss import acts, conf
from shiftboss.acts import Acted, many
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act, Person
from shiftboss.queue.authority import Owner, System
from shiftboss.queue.errors import (
    InvalidJob,
    KeyHeld,
    MovedOn,
    NoSuchJob,
    NotAllowed,
    ReasonNeeded,
    RequestReused,
)
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, enqueue, operate, queues
from shiftboss.queue.store.audit import AuditRow
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C4", "B6")]
SYSTEM = System()
TOMORROW = datetime(2090, 1, 1, 12, tzinfo=UTC)

ON_JOBS: dict[Act, tuple[Callable[[int], Any], Callable[..., Acted], dict[str, Any], str, str]] = {
    Act.CANCEL: (making.scheduled, acts.cancel, {}, "scheduled", "cancelled"),
    Act.EXPEDITE: (making.retryable, acts.expedite, {}, "retryable", "available"),
    Act.RERUN: (making.completed, acts.rerun, {}, "completed", "available"),
    Act.REINSTATE: (making.quarantined, acts.reinstate, {}, "quarantined", "available"),
    Act.DISCARD: (making.quarantined, acts.discard, {}, "quarantined", "discarded"),
    Act.QUARANTINE: (making.available, acts.quarantine, {}, "available", "quarantined"),
    Act.REPRIORITISE: (making.scheduled, acts.reprioritise, {"priority": 7}, "scheduled", "scheduled"),
    Act.RESCHEDULE: (making.available, acts.reschedule, {"due_at": TOMORROW}, "available", "scheduled"),
}
"""How a job is made that the act fits, the act, what it is asked for, and the states before and after."""


def entries(job_id: int) -> list[AuditRow]:
    """What the audit keeps of a job, the newest first."""
    return run(audit.entries(authority=SYSTEM, job_id=job_id))


def test_every_act_on_a_job_is_among_those_tried_here() -> None:
    of_other_things = {Act.PAUSE, Act.RESUME, Act.LIMIT, Act.PURGE, Act.CREATE_TOKEN, Act.REVOKE_TOKEN}
    of_other_things |= {act for act in Act if act.endswith(("_backfill", "_worker", "_program", "_pool", "_roll"))}
    of_other_things |= {Act.EDIT, Act.REVEAL}  # they leave the job as it is: `test_arguments`
    assert set(ON_JOBS) == set(Act) - of_other_things


@pytest.mark.parametrize("act", ON_JOBS)
def test_an_act_changes_the_job_and_the_audit_says_who_why_and_what(worker: int, act: Act) -> None:
    make, do, asked, before, after = ON_JOBS[act]
    job_id = make(worker).job_id
    request = a_request()
    acted = do(job_id, by=person("kim"), reason="  the customer called ", request_id=request, **asked)

    assert (acted.act, acted.job_id, acted.before, acted.after) == (act, job_id, before, after)
    assert making.state(acted.new_job_id or job_id) == after
    [entry] = entries(job_id)
    assert (entry.actor_kind, entry.actor_id, entry.actor_name, entry.via) == ("user", "kim", "kim", "code")
    assert (entry.act, entry.reason, entry.jobs, entry.request_id) == (act, "the customer called", 1, request)
    assert json.loads(entry.before)["state"] == before
    assert json.loads(entry.after)["state"] == after


@pytest.mark.parametrize("act", ON_JOBS)
def test_an_act_that_cannot_be_kept_is_not_done(worker: int, act: Act) -> None:
    make, do, asked, *_ = ON_JOBS[act]
    job_id = make(worker).job_id
    before = making.whole(job_id)
    live = making.scalar("select count(*) from shiftboss_job")
    # The table refuses this name of an act, as it would refuse any entry when it is out of space.
    making.execute("alter table shiftboss_audit add constraint out_of_space check (false) not valid")

    with pytest.raises(DatabaseError):
        do(job_id, by=person(), reason="because", **asked)
    assert making.whole(job_id) == before
    assert making.events(job_id) == []
    assert making.scalar("select count(*) from shiftboss_job") == live


@pytest.mark.parametrize("act", ON_JOBS)
def test_an_act_needs_its_own_permission_and_no_other(worker: int, act: Act) -> None:
    make, do, asked, *_ = ON_JOBS[act]
    job_id = make(worker).job_id
    before = making.whole(job_id)
    with pytest.raises(NotAllowed, match=PERMISSIONS[act]):
        do(job_id, by=person(may=set(PERMISSIONS.values()) - {PERMISSIONS[act]}), reason="because", **asked)
    assert making.whole(job_id) == before
    assert entries(job_id) == []
    do(job_id, by=person(may={PERMISSIONS[act]}), reason="because", **asked)
    assert len(entries(job_id)) == 1


@pytest.mark.parametrize("act", ON_JOBS)
def test_who_lacks_the_permission_does_not_learn_whether_the_job_exists(db: None, act: Act) -> None:
    _, do, asked, *_ = ON_JOBS[act]
    with pytest.raises(NotAllowed):
        do(2**62, by=person(may=[]), reason="because", **asked)


@pytest.mark.parametrize("act", sorted(NEED_REASON & set(ON_JOBS)))
@pytest.mark.parametrize("reason", ["", " \n\t"])
def test_an_act_that_stops_something_wants_a_reason(worker: int, act: Act, reason: str) -> None:
    make, do, asked, *_ = ON_JOBS[act]
    job_id = make(worker).job_id
    before = making.whole(job_id)
    with pytest.raises(ReasonNeeded, match="say in a few words why"):
        do(job_id, by=person(), reason=reason, **asked)
    assert making.whole(job_id) == before


@pytest.mark.parametrize("reason", ["x" * 1001, "a\x00b", "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused_in_words(worker: int, reason: str) -> None:
    job_id = making.scheduled(worker).job_id
    with pytest.raises(ReasonNeeded):
        acts.expedite(job_id, by=person(), reason=reason)
    assert making.state(job_id) == "scheduled"


@pytest.mark.parametrize("act", ON_JOBS)
@pytest.mark.parametrize("job_id", [2**62, 0, -1, 2**63, 2**80])
def test_a_job_that_never_was_is_said_so(db: None, act: Act, job_id: int) -> None:
    _, do, asked, *_ = ON_JOBS[act]
    with pytest.raises(NoSuchJob):
        do(job_id, by=person(), reason="because", **asked)


@pytest.mark.parametrize("act", ON_JOBS)
def test_a_job_that_has_moved_on_is_left_alone_and_its_present_state_is_told(worker: int, act: Act) -> None:
    _, do, asked, *_ = ON_JOBS[act]
    make = making.running if act is Act.RERUN else making.completed
    made = make(worker)
    job_id = made[0].job_id if isinstance(made, list) else made.job_id
    before = making.whole(job_id)
    with pytest.raises(MovedOn) as refused:
        do(job_id, by=person(), reason="because", **asked)
    assert refused.value.state == before[0 if act is Act.RERUN else 1]["state"]
    assert (refused.value.job_id, refused.value.act) == (job_id, act)
    assert making.whole(job_id) == before
    assert entries(job_id) == []


def test_cancelling_a_running_job_asks_for_its_end(worker: int) -> None:
    [lease] = making.running(worker)
    acted = acts.cancel(lease.job_id, by=person(), reason="because")
    assert (acted.before, acted.after) == ("running", "running")
    assert making.live(lease.job_id)["cancel_cause"] == "user"


@pytest.mark.parametrize("act", ON_JOBS)
def test_a_request_is_done_once_and_answers_the_second_time_as_the_first(worker: int, act: Act) -> None:
    make, do, asked, *_ = ON_JOBS[act]
    job_id = make(worker).job_id
    request = a_request()
    first = do(job_id, by=person(), reason="because", request_id=request, **asked)
    live = making.scalar("select count(*) from shiftboss_job")
    again = do(job_id, by=person(), reason="because", request_id=request, **asked)
    assert again.repeated
    assert not first.repeated
    assert (again.before, again.after, again.new_job_id) == (first.before, first.after, first.new_job_id)
    assert len(entries(job_id)) == 1
    assert making.scalar("select count(*) from shiftboss_job") == live


def test_a_request_that_was_done_is_not_done_again_when_the_job_would_allow_it(worker: int) -> None:
    job_id, request = making.scheduled(worker).job_id, a_request()
    acts.reprioritise(job_id, by=person(), priority=5, request_id=request)
    acts.reprioritise(job_id, by=person(), priority=9)
    assert acts.reprioritise(job_id, by=person(), priority=5, request_id=request).repeated
    assert making.live(job_id)["priority"] == 9


def test_who_has_no_id_does_a_request_once_too(worker: int) -> None:
    request, job_id = a_request(), making.completed(worker).job_id
    nobody = replace(person(), kind="system", id=None, name="system")
    first = acts.rerun(job_id, by=nobody, request_id=request)
    again = acts.rerun(job_id, by=nobody, request_id=request)
    assert (again.new_job_id, again.repeated) == (first.new_job_id, True)


@pytest.mark.parametrize("other", ["act", "job", "priority", "reason"])
def test_a_request_id_that_comes_back_with_another_wish_is_refused(worker: int, other: str) -> None:
    job_id, another, request = making.scheduled(worker).job_id, making.scheduled(worker).job_id, a_request()
    acts.reprioritise(job_id, by=person(), priority=5, reason="vip", request_id=request)
    tries: dict[str, Callable[[], Acted]] = {
        "act": lambda: acts.expedite(job_id, by=person(), reason="vip", request_id=request),
        "job": lambda: acts.reprioritise(another, by=person(), priority=5, reason="vip", request_id=request),
        "priority": lambda: acts.reprioritise(job_id, by=person(), priority=6, reason="vip", request_id=request),
        "reason": lambda: acts.reprioritise(job_id, by=person(), priority=5, reason="", request_id=request),
    }
    with pytest.raises(RequestReused, match="used before"):
        tries[other]()
    assert making.live(job_id)["priority"] == 5
    assert making.state(job_id) == "scheduled"
    assert making.live(another)["priority"] == 0


def test_a_request_id_is_the_persons_own(worker: int) -> None:
    job_id, request = making.scheduled(worker).job_id, a_request()
    for name, priority in (("kim", 1), ("ola", 2)):
        acted = acts.reprioritise(job_id, by=person(name), priority=priority, request_id=request)
        assert not acted.repeated
    assert [entry.actor_id for entry in entries(job_id)] == ["ola", "kim"]


@pytest.mark.parametrize("request_id", ["", "x" * 101, "a\x00b", "a\nb", "\ud800"])
def test_a_request_id_that_cannot_be_kept_is_refused(worker: int, request_id: str) -> None:
    job_id = making.scheduled(worker).job_id
    with pytest.raises(InvalidJob, match="request id"):
        acts.expedite(job_id, by=person(), request_id=request_id)
    assert making.state(job_id) == "scheduled"


def test_a_request_at_another_hour_of_the_clock_for_the_same_instant_is_the_same(worker: int) -> None:
    job_id, request = making.scheduled(worker).job_id, a_request()
    acts.reschedule(job_id, by=person(), due_at=TOMORROW, request_id=request)
    there = TOMORROW.astimezone(timezone(timedelta(hours=5)))
    assert acts.reschedule(job_id, by=person(), due_at=there, request_id=request).repeated


@pytest.mark.parametrize(
    "due_at", [datetime(2090, 1, 1), datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14)))]
)
def test_a_time_that_is_no_instant_of_the_record_is_refused(worker: int, due_at: datetime) -> None:
    job_id = making.scheduled(worker).job_id
    before = making.whole(job_id)
    with pytest.raises(InvalidJob, match="due_at"):
        acts.reschedule(job_id, by=person(), due_at=due_at)
    assert making.whole(job_id) == before


@pytest.mark.parametrize("priority", [-101, 101, 2**70])
def test_a_priority_out_of_bounds_is_refused(worker: int, priority: int) -> None:
    job_id = making.scheduled(worker).job_id
    with pytest.raises(InvalidJob, match="priority"):
        acts.reprioritise(job_id, by=person(), priority=priority)


def test_the_audit_keeps_what_priority_and_time_were_before(worker: int) -> None:
    job_id = making.scheduled(worker).job_id
    due_at = making.live(job_id)["due_at"].astimezone(UTC)
    acts.reprioritise(job_id, by=person(), priority=5)
    acts.reschedule(job_id, by=person(), due_at=TOMORROW)
    rescheduled, reprioritised = entries(job_id)
    assert json.loads(reprioritised.before) == {"state": "scheduled", "priority": 0}
    assert json.loads(reprioritised.after) == {"state": "scheduled", "priority": 5}
    assert json.loads(rescheduled.before) == {"state": "scheduled", "due_at": due_at.isoformat()}
    assert json.loads(rescheduled.after) == {"state": "scheduled", "due_at": TOMORROW.isoformat()}


# Keys and limits


def keyed(key: str, **how: Any) -> int:
    """A job with a key of one owner; its id."""
    new = enqueue.NewJob(
        queue="default",
        task=how.pop("task", making.TASK),
        args=making.ARGS,
        failure_limit=1,
        loss_limit=3,
        key=key,
        **how,
    )
    return run(enqueue.enqueue(new, authority=Owner("customer"))).id


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("act", [Act.REINSTATE, Act.RERUN])
def test_an_act_that_needs_a_held_key_names_the_key_and_its_holder(worker: int, act: Act) -> None:
    job_id = keyed("invoice 7")
    [held] = making.claimed(worker)
    run(making.report("fail" if act is Act.REINSTATE else "complete", held.lease, worker))
    holder = keyed("invoice 7")
    assert holder != job_id
    before = making.whole(job_id)

    request = a_request()
    with pytest.raises(KeyHeld, match=f"'invoice 7' is held by job {holder}") as refused:
        ON_JOBS[act][1](job_id, by=person(), reason="because", request_id=request)
    assert refused.value.holder == holder
    assert making.whole(job_id) == before
    assert entries(job_id) == []
    # What was refused was not done: the same request may come again.
    acts.cancel(holder, by=person(), reason="because")
    acted = ON_JOBS[act][1](job_id, by=person(), reason="because", request_id=request)
    assert not acted.repeated
    assert acted.after == "available"


@pytest.mark.requirement("L19")
def test_a_reinstated_job_may_fail_as_often_again_as_its_task_says(worker: int) -> None:
    [lease] = making.running(worker, failure_limit=1)
    run(making.report("fail", lease, worker))
    acts.reinstate(lease.job_id, by=person())
    # Nobody here knows the task, so that the settings decide.
    assert making.live(lease.job_id)["failure_limit"] == 1 + 5


@pytest.mark.requirement("L19")
@pytest.mark.parametrize("act", [Act.REINSTATE, Act.RERUN])
def test_limits_are_those_that_the_tasks_code_has_now(db: None, act: Act) -> None:
    task = "tests.store.tasks.send"
    worker = making.a_worker(tasks=[task])
    making.enqueued(task=task, failure_limit=1)
    [held] = making.claimed(worker, tasks=[task])
    run(making.report("fail" if act is Act.REINSTATE else "complete", held.lease, worker))
    acted = ON_JOBS[act][1](held.id, by=person())
    row = making.live(acted.new_job_id or held.id)
    assert row is not None
    assert row["failure_limit"] - row["failures"] == 2


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("task", ["tests.store.tasks.send", making.TASK])
def test_limits_are_the_queues_own_where_the_settings_say_them(db: None, settings: Any, task: str) -> None:
    settings.SHIFTBOSS = {"QUEUES": {"default": {"max_attempts": 9}}}
    conf.get.cache_clear()
    worker = making.a_worker(tasks=[task])
    making.enqueued(task=task, failure_limit=1)
    [held] = making.claimed(worker, tasks=[task])
    run(making.report("fail", held.lease, worker))
    try:
        acts.reinstate(held.id, by=person())
    finally:
        del settings.SHIFTBOSS
        conf.get.cache_clear()
    assert making.live(held.id)["failure_limit"] == 1 + 9


@pytest.mark.requirement("L19")
def test_a_rerun_is_a_new_job_that_names_the_old_one(worker: int) -> None:
    job_id = making.completed(worker).job_id
    before = making.whole(job_id)
    acted = acts.rerun(job_id, by=person())
    assert acted.new_job_id is not None
    assert making.live(acted.new_job_id)["rerun_of"] == job_id
    assert making.whole(job_id) == before


# Queues and the history


@pytest.mark.requirement("P6")
def test_a_queue_is_paused_with_a_reason_and_resumed(db: None) -> None:
    name = 'mail/"ü" 1'
    acted = acts.pause(name, by=person(), reason=" the relay is down ")
    assert (acted.queue, acted.before, acted.after) == (name, "running", "paused")
    [pause] = run(queues.pauses(authority=SYSTEM))
    assert (pause.queue, pause.paused_by, pause.reason) == (name, "kim", "the relay is down")

    again = acts.pause(name, by=person("ola"), reason="me too")
    assert (again.before, again.after) == ("paused", "paused")
    assert run(queues.pauses(authority=SYSTEM)) == [pause]

    acted = acts.resume(name, by=person())
    assert (acted.before, acted.after) == ("paused", "running")
    assert run(queues.pauses(authority=SYSTEM)) == []
    kept = run(audit.entries(authority=SYSTEM, queue=name))
    assert [(entry.act, entry.actor_id) for entry in kept] == [
        ("resume", "kim"),
        ("pause", "ola"),
        ("pause", "kim"),
    ]


@pytest.mark.requirement("P6")
def test_a_pause_that_cannot_be_kept_is_not_done(db: None) -> None:
    making.execute("alter table shiftboss_audit add constraint out_of_space check (false) not valid")
    with pytest.raises(DatabaseError):
        acts.pause("mail", by=person(), reason="because")
    assert run(queues.pauses(authority=SYSTEM)) == []


@pytest.mark.parametrize("name", ["", "x" * 101, "a\x00b", "a\nb", "\ud800"])
@pytest.mark.parametrize("act", [acts.pause, acts.resume])
def test_a_name_that_no_queue_can_have_is_refused(db: None, name: str, act: Callable[..., Acted]) -> None:
    with pytest.raises(InvalidJob, match="queue name"):
        act(name, by=person(), reason="because")


@pytest.mark.parametrize(
    ("act", "do"),
    [
        (Act.PAUSE, lambda by, reason: acts.pause("mail", by=by, reason=reason)),
        (Act.RESUME, lambda by, reason: acts.resume("mail", by=by, reason=reason)),
        (Act.PURGE, lambda by, reason: acts.purge(date(2020, 1, 1), by=by, reason=reason)),
    ],
)
def test_acts_on_queues_and_the_history_need_their_permission_and_perhaps_a_reason(
    db: None, act: Act, do: Callable[[Person, str], Acted]
) -> None:
    with pytest.raises(NotAllowed, match=PERMISSIONS[act]):
        do(person(may=set(PERMISSIONS.values()) - {PERMISSIONS[act]}), "because")
    if act in NEED_REASON:
        with pytest.raises(ReasonNeeded):
            do(person(), "")
    assert run(queues.pauses(authority=SYSTEM)) == []
    assert making.scalar("select count(*) from shiftboss_purge") == 0
    do(person(may={PERMISSIONS[act]}), "because")


@pytest.mark.requirement("P7")
def test_a_purge_is_ordered_and_kept(db: None) -> None:
    last = making.scalar("select coalesce(max(id), 0) from shiftboss_audit")
    acts.purge(date(2020, 1, 1), by=person(), reason="the law")
    assert making.rows("select before from shiftboss_purge") == [(date(2020, 1, 1),)]
    [entry] = [e for e in run(audit.entries(authority=SYSTEM)) if e.id > last]
    assert (entry.act, json.loads(entry.asked)) == ("purge", {"before": "2020-01-01"})
    with pytest.raises(InvalidJob, match="before today"):
        acts.purge(date(2090, 1, 1), by=person(), reason="a slip of the finger")


# Many at once


def test_all_that_match_are_cancelled_and_the_audit_counts_them_exactly(worker: int) -> None:
    others = making.enqueued(2, queue="mail")
    running = making.running(worker, 3)
    waiting = making.enqueued(4) + making.enqueued(2, due_in=60)
    many.BULK_BATCH, kept = 4, many.BULK_BATCH
    try:
        which = operate.Matching(
            states=frozenset({State.SCHEDULED, State.AVAILABLE, State.RUNNING}), queue="default"
        )
        steps = list(acts.cancel_matching(which, by=person(), reason=" stop it "))
    finally:
        many.BULK_BATCH = kept
    last = steps[-1]
    assert (last.ended, last.requested, last.left) == (6, 3, 0)
    assert [step.ended + step.requested for step in steps][:3] == [4, 8, 9]
    assert run(audit.total(last.operation, authority=SYSTEM)) == 9
    kept_of_it = [
        e for e in run(audit.entries(authority=SYSTEM, queue="default")) if e.operation == last.operation
    ]
    assert {entry.reason for entry in kept_of_it} == {"stop it"}
    assert {making.state(job_id) for job_id in waiting} == {"cancelled"}
    assert all(making.live(lease.job_id)["cancel_cause"] for lease in running)
    assert {making.state(job_id) for job_id in others} == {"available"}


def test_what_is_not_permitted_in_bulk_is_refused_before_anything_is_asked_for(db: None) -> None:
    which = operate.Matching(states=frozenset({State.AVAILABLE}))
    with pytest.raises(NotAllowed):
        acts.cancel_matching(which, by=person(may=[]), reason="because")
    with pytest.raises(ReasonNeeded):
        acts.cancel_matching(which, by=person(), reason=" ")
    with pytest.raises(InvalidJob):
        acts.cancel_matching(
            operate.Matching(states=frozenset({State.AVAILABLE}), queue="a\x00"), by=person(), reason="because"
        )


def test_a_bulk_act_that_matches_nothing_leaves_no_entry(db: None) -> None:
    which = operate.Matching(states=frozenset({State.AVAILABLE}))
    [nothing] = acts.cancel_matching(which, by=person(), reason="because")
    assert (nothing.ended, nothing.requested, nothing.left) == (0, 0, 0)
    assert run(audit.total(nothing.operation, authority=SYSTEM)) == 0


# Within a caller's own transaction


def test_an_act_is_undone_with_the_transaction_of_its_caller(worker: int) -> None:
    job_id = making.scheduled(worker).job_id

    class Regret(Exception):
        pass

    def act_and_regret() -> None:
        acts.expedite(job_id, by=person())
        assert making.state(job_id) == "available"
        raise Regret

    with pytest.raises(Regret), transaction.atomic():
        act_and_regret()
    assert making.state(job_id) == "scheduled"
    assert entries(job_id) == []


def test_a_refused_act_does_not_break_the_transaction_of_its_caller(worker: int) -> None:
    job_id, request = making.scheduled(worker).job_id, a_request()
    with transaction.atomic():
        acts.expedite(job_id, by=person(), request_id=request)
        with pytest.raises(MovedOn):
            acts.expedite(job_id, by=person())
        assert acts.expedite(job_id, by=person(), request_id=request).repeated
    assert making.state(job_id) == "available"


def test_a_caller_keeps_its_own_patience_with_locks(worker: int) -> None:
    job_id = making.scheduled(worker).job_id
    with transaction.atomic():
        making.execute("set local lock_timeout = '77s'")
        acts.expedite(job_id, by=person())
        assert making.scalar("show lock_timeout") == "77s"
        with pytest.raises(MovedOn):
            acts.expedite(job_id, by=person())
        assert making.scalar("show lock_timeout") == "77s"


def test_a_database_that_goes_away_is_no_busy_job(worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = making.scheduled(worker).job_id

    def gone(*_: Any, **__: Any) -> Any:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(audit, "write", gone)
    with pytest.raises(OperationalError, match="lost"):
        acts.expedite(job_id, by=person())
    assert making.state(job_id) == "scheduled"
    assert connection.is_usable()


def test_the_shell_is_named_by_who_runs_it_and_not_by_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    shell = Person.of_shell()
    assert "somebody-else" not in shell.name
    assert all(shell.may(act) for act in Act)
