"""Acts on many jobs at once: chosen ones, all of a reason, and the undo."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shiftboss import acts
from shiftboss.acts import Many, many, undoing
from shiftboss.permissions import PERMISSIONS, Act
from shiftboss.queue.errors import (
    CannotUndo,
    InvalidJob,
    NoSuchOperation,
    NotAllowed,
    ReasonNeeded,
    RequestReused,
)
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store import audit, operate
from shiftboss.queue.store.many import Held
from shiftboss.queue.store.operate import Why
from shiftboss.queue.store.statement import run
from tests.acts.people import a_request, person
from tests.store import making

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("C4", "B6")]
SYSTEM = making.SYSTEM
FAILED = Held(reason=QuarantineReason.FAILURES_EXHAUSTED)

MADE: dict[Act, tuple[Callable[[int], Any], str]] = {
    Act.CANCEL: (making.scheduled, "cancelled"),
    Act.EXPEDITE: (making.retryable, "available"),
    Act.RERUN: (making.completed, "completed"),
    Act.REINSTATE: (making.quarantined, "available"),
    Act.DISCARD: (making.quarantined, "discarded"),
    Act.QUARANTINE: (making.available, "quarantined"),
}
"""How a job is made that the act fits, and the state in which it leaves it."""


def made(worker: int, act: Act, n: int = 2) -> list[int]:
    """Jobs that the act fits."""
    if act is Act.QUARANTINE:
        return making.enqueued(n)
    return [MADE[act][0](worker).job_id for _ in range(n)]


def kept(operation: Any) -> list[audit.AuditRow]:
    """What the audit keeps of an operation."""
    rows = run(audit.entries(authority=SYSTEM))
    return [row for row in rows if row.operation == operation]


def test_every_act_on_many_is_tried_here() -> None:
    assert set(MADE) == set(acts.ON_MANY)


@pytest.mark.parametrize("act", MADE)
def test_each_chosen_job_is_changed_or_told_why_not_in_one_entry_of_the_audit(worker: int, act: Act) -> None:
    [other] = making.running(worker) if act is not Act.CANCEL else [making.completed(worker)]
    ids = made(worker, act)
    done = acts.on_many(act, [*ids, other.job_id, 2**62], by=person(), reason=" the customer called ")

    assert done.changed == tuple(ids)
    assert {making.state(job_id) for job_id in ids} == {MADE[act][1]}
    assert [(one.id, one.why) for one in done.left] == [(other.job_id, Why.STATE), (2**62, Why.MISSING)]
    assert done.left[0].state == making.state(other.job_id)
    [row] = kept(done.operation)
    assert (row.act, row.reason, row.jobs, row.job_id) == (act, "the customer called", 2, None)
    assert sum(json.loads(row.before).values()) == sum(json.loads(row.after).values()) == 2
    for new in done.new_jobs.values():
        assert making.state(new) == "available"
    assert set(done.new_jobs) == (set(ids) if act is Act.RERUN else set())


@pytest.mark.parametrize("act", MADE)
def test_the_same_request_sent_twice_is_done_once_and_answers_the_same(worker: int, act: Act) -> None:
    ids, request = made(worker, act), a_request()
    first = acts.on_many(act, ids, by=person(), reason="because", request_id=request)
    second = acts.on_many(act, ids, by=person(), reason="because", request_id=request)
    assert second.repeated
    assert not first.repeated
    for name in ("operation", "changed", "left", "before", "after", "new_jobs"):
        assert getattr(first, name) == getattr(second, name)
    with pytest.raises(RequestReused):
        acts.on_many(act, ids[:1], by=person(), reason="because", request_id=request)


@pytest.mark.parametrize("act", MADE)
def test_an_act_on_many_needs_the_permission_that_the_act_on_one_needs(worker: int, act: Act) -> None:
    ids = made(worker, act)
    before = [making.whole(job_id) for job_id in ids]
    others = set(PERMISSIONS.values()) - {PERMISSIONS[act]}
    with pytest.raises(NotAllowed, match=PERMISSIONS[act]):
        acts.on_many(act, ids, by=person(may=others), reason="because")
    assert [making.whole(job_id) for job_id in ids] == before


def test_where_nothing_could_be_changed_nothing_is_kept(worker: int) -> None:
    done = acts.on_many(Act.CANCEL, [making.completed(worker).job_id], by=person(), reason="because")
    assert (done.operation, done.changed) == (None, ())
    assert [one.state for one in done.left] == [State.COMPLETED]


def test_running_jobs_among_the_chosen_are_asked_to_end(worker: int) -> None:
    [running] = making.running(worker)
    [waiting] = making.enqueued()
    done = acts.on_many(Act.CANCEL, [running.job_id, waiting], by=person(), reason="because")
    assert done.before == {"running": 1, "available": 1}
    assert done.after == {"running": 1, "cancelled": 1}


def test_of_two_reruns_with_one_key_one_is_made_and_the_other_is_told_who_holds_it(worker: int) -> None:
    jobs = []
    for _ in range(2):
        [held] = making.running(worker, key="invoice-7")
        run(making.report("complete", held, worker))
        jobs.append(held.job_id)
    done = acts.on_many(Act.RERUN, jobs, by=person())
    assert done.changed == (jobs[0],)
    assert [(one.id, one.why, one.holder) for one in done.left] == [
        (jobs[1], Why.KEY_HELD, done.new_jobs[jobs[0]])
    ]


@pytest.mark.parametrize(("act", "ids"), [(Act.CANCEL, []), (Act.CANCEL, [0]), (Act.PAUSE, [1])])
def test_what_cannot_be_meant_is_refused(act: Act, ids: list[int]) -> None:
    with pytest.raises(InvalidJob):
        acts.on_many(act, ids, by=person(), reason="because")


def test_more_jobs_than_one_act_takes_are_refused() -> None:
    with pytest.raises(InvalidJob, match="1,000"):
        acts.on_many(Act.CANCEL, range(1, 1002), by=person(), reason="because")


def test_an_act_on_many_that_destroys_wants_a_reason(worker: int) -> None:
    with pytest.raises(ReasonNeeded):
        acts.on_many(Act.DISCARD, made(worker, Act.DISCARD), by=person(), reason=" ")


def held(worker: int, n: int, *, task: str = making.TASK) -> list[int]:
    """Jobs that failed as often as they may."""
    ids = making.enqueued(n, task=task, failure_limit=1)
    for job in making.claimed(worker, n, tasks=[task]):
        run(making.report("fail", job.lease, worker))
    return ids


@pytest.mark.parametrize(
    ("do", "after"), [(acts.reinstate_matching, "available"), (acts.discard_matching, "discarded")]
)
def test_all_jobs_of_a_reason_are_changed_in_batches_of_one_operation(
    worker: int, monkeypatch: pytest.MonkeyPatch, do: Any, after: str
) -> None:
    monkeypatch.setattr(many, "BULK_BATCH", 2)
    ids = held(worker, 5)
    [other] = making.enqueued()
    acts.quarantine(other, by=person(), reason="look at it first")
    steps = do(FAILED, by=person(), reason="mail server is back")
    first = next(steps)
    assert (first.changed, first.done) == (2, False)
    *_, last = steps
    assert (last.changed, last.left, last.done) == (5, 0, True)
    assert {making.state(job_id) for job_id in ids} == {after}
    assert making.state(other) == "quarantined"
    assert [row.jobs for row in kept(last.operation)] == [1, 2, 2]


def test_a_bulk_act_can_be_narrowed_to_a_task(worker: int) -> None:
    mine = held(worker, 2)
    others = held(worker, 1, task="shop.tasks.other")
    *_, last = acts.reinstate_matching(
        Held(reason=QuarantineReason.FAILURES_EXHAUSTED, task="shop.tasks.other"), by=person()
    )
    assert last.ended == 1
    assert making.state(others[0]) == "available"
    assert {making.state(job_id) for job_id in mine} == {"quarantined"}


def test_jobs_whose_key_is_held_are_left_by_a_bulk_act_and_told(worker: int) -> None:
    [first] = making.running(worker, key="invoice-7", failure_limit=1)
    run(making.report("fail", first, worker))
    making.enqueued(key="invoice-7")
    *_, last = acts.reinstate_matching(FAILED, by=person())
    assert (last.changed, last.left) == (0, 1)
    assert making.state(first.job_id) == "quarantined"


def test_a_bulk_act_on_the_quarantine_is_refused_before_anything_is_done(worker: int) -> None:
    held(worker, 1)
    with pytest.raises(NotAllowed):
        acts.reinstate_matching(FAILED, by=person(may=[]))
    with pytest.raises(ReasonNeeded):
        acts.discard_matching(FAILED, by=person(), reason="")


def swept(which: Held) -> many.Swept:
    """A whole reason, reinstated."""
    *_, last = acts.reinstate_matching(which, by=person())
    return last


def test_a_reinstatement_is_undone_for_the_jobs_that_nobody_has_claimed_since(worker: int) -> None:
    ids = held(worker, 4)
    operation = swept(FAILED).operation
    [claimed] = making.claimed(worker, 1)
    [failed] = making.claimed(worker, 1)
    run(making.report("fail", failed.lease, worker))
    *_, last = acts.undo(operation, by=person("ola"), reason="too early").steps()
    assert (last.changed, last.left) == (2, 2)
    states = {job_id: making.state(job_id) for job_id in ids}
    assert states.pop(claimed.id) == "running"
    assert states.pop(failed.id) == "retryable"
    assert set(states.values()) == {"quarantined"}
    # Under the reason that they had, where they are looked for.
    reason = "select quarantine_reason from shiftboss_job where id = %s"
    assert {making.scalar(reason, job_id) for job_id in states} == {"failures_exhausted"}
    [row] = kept(last.operation)
    assert (row.act, row.actor_name, row.reason) == (Act.QUARANTINE, "ola", "too early")
    assert json.loads(row.asked)["undoes"] == str(operation)


def test_a_quarantine_is_undone_by_reinstating_what_is_still_held_for_it(worker: int) -> None:
    ids = making.enqueued(3)
    done = acts.on_many(Act.QUARANTINE, ids, by=person(), reason="look at it first")
    assert done.operation
    run(operate.cancel(ids[:1], authority=SYSTEM))
    *_, last = acts.undo(done.operation, by=person(), reason="it was fine").steps()
    assert (last.changed, last.left) == (2, 1)
    assert [making.state(job_id) for job_id in ids] == ["cancelled", "available", "available"]


def test_an_act_on_one_job_is_undone_as_well(worker: int) -> None:
    job_id = making.quarantined(worker).job_id
    acts.reinstate(job_id, by=person())
    [row] = run(audit.entries(authority=SYSTEM, job_id=job_id))
    *_, last = acts.undo(row.operation, by=person(), reason="by mistake").steps()
    assert last.changed == 1
    assert making.state(job_id) == "quarantined"


def test_an_act_on_many_stands_among_those_on_each_of_its_jobs(worker: int) -> None:
    ids = making.enqueued(3)
    done = acts.on_many(Act.CANCEL, ids[:2], by=person(), reason="a wrong deploy")
    for job_id in ids[:2]:
        [row] = run(audit.entries(authority=SYSTEM, job_id=job_id))
        assert (row.operation, row.reason) == (done.operation, "a wrong deploy")
    assert run(audit.entries(authority=SYSTEM, job_id=ids[2])) == []


def test_an_undo_can_be_undone(worker: int) -> None:
    [job_id] = held(worker, 1)
    *_, undone = acts.undo(swept(FAILED).operation, by=person(), reason="too early").steps()
    *_, last = acts.undo(undone.operation, by=person(), reason="it was right").steps()
    assert last.changed == 1
    assert making.state(job_id) == "available"


def test_what_cannot_be_undone_is_refused(worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: Many = acts.on_many(Act.CANCEL, making.enqueued(), by=person(), reason="because")
    assert cancelled.operation
    with pytest.raises(CannotUndo, match="cancel cannot be undone"):
        acts.undo(cancelled.operation, by=person(), reason="because")
    with pytest.raises(NoSuchOperation):
        acts.undo(making.scalar("select gen_random_uuid()"), by=person(), reason="because")
    held(worker, 1)
    operation = swept(FAILED).operation
    with pytest.raises(NotAllowed, match=PERMISSIONS[Act.QUARANTINE]):
        acts.undo(operation, by=person(may=[PERMISSIONS[Act.REINSTATE]]), reason="because")
    monkeypatch.setattr(undoing, "UNDO_SECONDS", 0.0)
    with pytest.raises(CannotUndo, match="only within"):
        acts.undo(operation, by=person(), reason="because")
