"""What people do to jobs, many at a time: who may, what is kept, what is passed over, what the answer names."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from shiftboss import Owner
from shiftboss.queue.authority import System
from shiftboss.queue.errors import Busy, InvalidJob
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store import lease, many, operate, upkeep
from shiftboss.queue.store.enqueue import Enqueued
from shiftboss.queue.store.operate import Answer, Changed, Limits, Matching, Unchanged, Why
from shiftboss.queue.store.statement import Verb, run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    TASK,
    available,
    claimed,
    completed,
    discarded,
    enqueued,
    events,
    execute,
    finished,
    live,
    quarantined,
    report,
    rows,
    running,
    scalar,
    state,
    to_be_cancelled,
    whole,
)
from tests.store.sessions import together
from tests.store.test_locks import locked
from tests.store.test_upkeep import hours_pass, now_due

LIMITS = Limits(failures=4, losses=2, by_task={TASK: (7, 6)})
LATER = datetime(2030, 1, 1, 12, tzinfo=UTC)
OPERATOR = QuarantineReason.OPERATOR

WAITING_VERBS: dict[str, Callable[[list[int]], Verb[Answer]]] = {
    "cancel": partial(operate.cancel, authority=SYSTEM),
    "expedite": partial(operate.expedite, authority=SYSTEM, by="kim"),
    "quarantine": partial(operate.quarantine, authority=SYSTEM, by="kim"),
    "hold again": partial(operate.hold_again, authority=SYSTEM, by="kim", since=LATER, reason=OPERATOR),
    "reprioritise": partial(operate.reprioritise, authority=SYSTEM, by="kim", priority=7),
    "reschedule": partial(operate.reschedule, authority=SYSTEM, by="kim", due_at=LATER),
}
HELD_VERBS: dict[str, Callable[[list[int]], Verb[Answer]]] = {
    "cancel held": partial(operate.cancel, authority=SYSTEM),
    "reinstate": partial(operate.reinstate, authority=SYSTEM, by="kim", limits=LIMITS),
    "discard": partial(operate.discard, authority=SYSTEM),
}
ON_RUNNING: dict[str, Callable[[list[int]], Verb[Answer]]] = {
    "cancel running": partial(operate.cancel, authority=SYSTEM)
}
BULK = WAITING_VERBS | HELD_VERBS | ON_RUNNING


def held_back(n: int) -> list[int]:
    """Jobs that an operator has put into the quarantine."""
    ids = enqueued(n)
    run(operate.quarantine(ids, authority=SYSTEM, by="kim"))
    return ids


def jobs_for(verb: str, worker: int, n: int) -> list[int]:
    """Jobs on which the verb may act."""
    if verb in HELD_VERBS:
        return held_back(n)
    if verb in ON_RUNNING:
        return [one.job_id for one in running(worker, n)]
    return enqueued(n, due_in=3600)


@pytest.mark.requirement("C4", "L5")
@pytest.mark.parametrize("verb", BULK)
def test_jobs_are_changed_once_each_and_the_others_left_alone(verb: str, perform: Perform, worker: int) -> None:
    first, bystander, second, third = jobs_for(verb, worker, 4)
    before = whole(bystander), events(bystander)
    answer = perform(BULK[verb]([third, first, second, first]))
    assert [job.id for job in answer.changed] == [first, second, third]
    assert answer.unchanged == ()
    assert (whole(bystander), events(bystander)) == before
    for job in answer.changed:
        assert state(job.id) == job.after


@pytest.mark.requirement("C4", "L5")
@pytest.mark.parametrize("verb", BULK)
def test_a_locked_job_is_busy_at_once_and_the_others_are_changed(verb: str, connect: Any, worker: int) -> None:
    first, taken, second = jobs_for(verb, worker, 3)
    session = connect()
    session.execute("set lock_timeout = '300ms'")
    with locked(taken):
        before = whole(taken)
        answer = session.run(BULK[verb]([first, taken, second]))
        assert whole(taken) == before
    assert [job.id for job in answer.changed] == [first, second]
    [left] = answer.unchanged
    assert (left.id, left.why) == (taken, Why.BUSY)
    assert [job.id for job in session.run(BULK[verb]([taken])).changed] == [taken]


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("verb", BULK)
def test_no_jobs_no_answer(verb: str, perform: Perform) -> None:
    assert perform(BULK[verb]([])) == Answer()


@pytest.mark.requirement("C4")
def test_each_job_that_was_left_is_told_why(perform: Perform, worker: int) -> None:
    done, [held], [waits] = completed(worker).job_id, running(worker), enqueued()
    answer = perform(operate.expedite([2**62, done, held.job_id, waits], authority=SYSTEM, by="kim"))
    assert answer == Answer(
        (),
        (
            Unchanged(done, Why.STATE, State.COMPLETED),
            Unchanged(held.job_id, Why.STATE, State.RUNNING),
            Unchanged(waits, Why.STATE, State.AVAILABLE),
            Unchanged(2**62, Why.MISSING),
        ),
    )


@pytest.mark.requirement("C4", "L5")
def test_a_bulk_act_on_many_thousands_of_jobs_is_one_statement(connect: Any) -> None:
    execute(
        "insert into shiftboss_job (id, queue, task, args, state, failure_limit, loss_limit) "
        "select 3000000000 + n, 'default', 't', '{}', 'available', 5, 3 from generate_series(1, 5000) n"
    )
    ids = list(range(3_000_000_001, 3_000_005_001))
    answer = connect().run(operate.cancel(ids, authority=SYSTEM))
    assert [job.id for job in answer.changed] == ids
    assert scalar("select count(*) from shiftboss_finished where state = 'cancelled'") == 5000


# Cancel


@pytest.mark.requirement("N6", "C4")
def test_an_owner_and_a_watcher_cancel_their_jobs_and_nobody_elses(perform: Perform) -> None:
    [owned] = enqueued(authority=Owner("kim"))
    [watched] = enqueued(authority=Owner("lee"), watchers=("kim", "sam"))
    [foreign] = enqueued(authority=Owner("lee"))
    [systems] = enqueued()
    answer = perform(operate.cancel([owned, watched, foreign, systems], authority=Owner("kim")))
    assert [job.id for job in answer.changed] == [owned, watched]
    assert answer.unchanged == (Unchanged(foreign, Why.MISSING), Unchanged(systems, Why.MISSING))
    assert [state(job_id) for job_id in (foreign, systems)] == ["available"] * 2
    # Whose it is not is not told either that it has ended.
    run(operate.cancel([foreign], authority=SYSTEM))
    again = perform(operate.cancel([owned, watched, foreign], authority=Owner("kim")))
    assert again.unchanged == (
        Unchanged(owned, Why.STATE, State.CANCELLED),
        Unchanged(watched, Why.STATE, State.CANCELLED),
        Unchanged(foreign, Why.MISSING),
    )


@pytest.mark.requirement("N6", "L29")
def test_a_quarantined_job_is_an_operators_to_cancel(perform: Perform) -> None:
    [job_id] = enqueued(authority=Owner("kim"))
    run(operate.quarantine([job_id], authority=SYSTEM, by="lee"))
    answer = perform(operate.cancel([job_id], authority=Owner("kim")))
    assert answer == Answer((), (Unchanged(job_id, Why.STATE, State.QUARANTINED),))
    assert state(job_id) == "quarantined"


@pytest.mark.requirement("N11")
def test_the_first_cause_of_a_cancellation_is_kept(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    for cause in ("superseded", "user"):
        answer = perform(operate.cancel([held.job_id], authority=SYSTEM, cause=cause))
        assert answer == Answer((Changed(held.job_id, State.RUNNING, State.RUNNING),))
    first = (live(held.job_id) or {})["cancel_requested_at"]
    perform(report("release", held, worker))
    row = finished(held.job_id) or {}
    assert (row["state"], row["cancel_cause"], row["cancel_requested_at"]) == ("cancelled", "superseded", first)


@pytest.mark.requirement("N11", "L3")
def test_a_heartbeat_tells_whose_end_is_wanted_and_why(perform: Perform, worker: int) -> None:
    wanted, calm = running(worker, 2)
    run(operate.cancel([wanted.job_id], authority=SYSTEM, cause="timeout"))
    answer = perform(lease.heartbeat([wanted, calm], authority=SYSTEM, worker_id=worker, lease_seconds=30))
    assert (answer.renewed, answer.cancelled) == ({wanted, calm}, {wanted: "timeout"})


@pytest.mark.requirement("C4", "L5")
def test_a_cancelled_job_keeps_what_it_was(perform: Perform) -> None:
    [job_id] = enqueued(
        authority=Owner("kim"), key="k1", tags=("a", "b"), watchers=("lee",), meta='{"m": 1}', tenant="acme"
    )
    before = live(job_id) or {}
    perform(operate.cancel([job_id], authority=SYSTEM))
    after = finished(job_id) or {}
    own = {"state", "cancel_cause", "cancel_requested_at", "finished_at", "follow_up", "slot_id"}
    assert {name: after[name] for name in before if name not in own} == {
        name: before[name] for name in before if name not in own
    }
    assert after["run_ms"] is after["result"] is None


@pytest.mark.requirement("N11", "L19")
def test_a_job_that_failed_after_its_end_was_wanted_keeps_its_error(perform: Perform, worker: int) -> None:
    held = to_be_cancelled(worker)
    perform(report("fail", held, worker))
    row = finished(held.job_id) or {}
    assert (row["state"], row["error_type"], row["error_fingerprint"]) == ("cancelled", "ValueError", "1b0c9e4f")
    assert (row["run_ms"], row["worker_id"], row["fence"]) == (12, worker, 1)


# Expedite, reschedule, reprioritise


@pytest.mark.requirement("P5")
def test_an_expedited_job_is_due_now_and_the_next_in_its_turn(perform: Perform, worker: int) -> None:
    [early] = enqueued()
    [later] = enqueued(due_in=3600)
    perform(operate.expedite([later], authority=SYSTEM, by="kim"))
    row = live(later) or {}
    assert row["state"] == "available"
    assert scalar("select due_at <= clock_timestamp() from shiftboss_job where id = %s", later)
    assert [job.id for job in claimed(worker, 2)] == [early, later]


@pytest.mark.requirement("P5")
def test_an_overdue_job_keeps_its_place_when_it_is_expedited(perform: Perform) -> None:
    [job_id] = enqueued(due_in=3600)
    now_due(job_id)
    before = live(job_id) or {}
    perform(operate.expedite([job_id], authority=SYSTEM, by="kim"))
    assert live(job_id) == before | {"state": "available"}


@pytest.mark.requirement("P5")
def test_a_rescheduled_job_runs_at_its_new_time_and_not_before(perform: Perform, worker: int) -> None:
    [job_id] = enqueued()
    due_at = datetime.now(UTC) + timedelta(hours=1)
    answer = perform(operate.reschedule([job_id], authority=SYSTEM, by="kim", due_at=due_at))
    assert answer.changed == (Changed(job_id, State.AVAILABLE, State.SCHEDULED),)
    assert (live(job_id) or {})["due_at"] == due_at
    run(upkeep.stage(authority=SYSTEM))
    assert state(job_id) == "scheduled"
    perform(operate.reschedule([job_id], authority=SYSTEM, by="kim", due_at=due_at - timedelta(hours=2)))
    run(upkeep.stage(authority=SYSTEM))
    assert [job.id for job in claimed(worker)] == [job_id]
    assert [event["kind"] for event in events(job_id)] == ["reschedule"] * 2


@pytest.mark.requirement("P5", "B6")
def test_priorities_that_were_are_kept_job_by_job(perform: Perform) -> None:
    low, high = enqueued(priority=-3)[0], enqueued(priority=40)[0]
    perform(operate.reprioritise([low, high], authority=SYSTEM, by="kim", priority=7))
    for job_id, before in ((low, -3), (high, 40)):
        assert scalar("select priority from shiftboss_job where id = %s", job_id) == 7
        assert scalar("select data ->> 'priority_before' from shiftboss_event where job_id = %s", job_id) == str(
            before
        )


@pytest.mark.requirement("P5", "B6")
def test_the_states_and_times_that_were_are_kept_job_by_job(perform: Perform, worker: int) -> None:
    now, later = enqueued()[0], enqueued(due_in=7200)[0]
    due = {job_id: (live(job_id) or {})["due_at"] for job_id in (now, later)}
    answer = perform(operate.reschedule([now, later], authority=SYSTEM, by="kim", due_at=LATER))
    assert [job.before for job in answer.changed] == [State.AVAILABLE, State.SCHEDULED]
    for job_id, before in due.items():
        question = "select (data ->> 'due_before')::timestamptz from shiftboss_event where job_id = %s"
        assert scalar(question, job_id) == before


@pytest.mark.requirement("L17", "B6")
@pytest.mark.parametrize(
    "verb", ["expedite", "quarantine", "hold again", "reprioritise", "reschedule", "reinstate"]
)
def test_events_of_a_person_are_numbered_job_by_job(verb: str, perform: Perform, worker: int, other: int) -> None:
    [loud] = running(worker)
    for _ in range(3):
        run(report("complete", loud, other))
    [calm] = jobs_for(verb, worker, 1)
    before = len(events(calm))
    perform(BULK[verb]([calm]))
    assert [event["seq"] for event in events(calm)] == list(range(1, before + 2))


@pytest.mark.requirement("L17")
def test_acts_and_rejections_at_one_moment_get_different_numbers(connect: Any, worker: int, other: int) -> None:
    jobs = enqueued(4)
    first, second = connect(), connect()

    def act(session: Any, priority: int) -> None:
        for n in range(5):
            session.run(operate.reprioritise(jobs, authority=SYSTEM, by="kim", priority=priority + n))

    together(lambda: act(first, 0), lambda: act(second, 50))
    for job_id in jobs:
        numbers = [event["seq"] for event in events(job_id)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= 5


@pytest.mark.parametrize("priority", [-101, 101])
def test_an_impossible_priority_is_refused(priority: int) -> None:
    with pytest.raises(InvalidJob, match="priority"):
        run(operate.reprioritise(enqueued(), authority=SYSTEM, by="kim", priority=priority))


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(InvalidJob, match="aware"):
        run(operate.reschedule(enqueued(), authority=SYSTEM, by="kim", due_at=datetime(2030, 1, 1)))


# Reinstate, discard, rerun


@pytest.mark.requirement("L29", "L19")
def test_a_reinstated_job_has_as_many_more_attempts_as_its_task(perform: Perform, worker: int) -> None:
    [known] = running(worker, failure_limit=1)
    run(report("fail", known, worker))
    [other] = running(worker, loss_limit=1)
    execute("update shiftboss_job set task = 'shop.tasks.other' where id = %s", other.job_id)
    run(report("reap_own", other, worker))
    perform(operate.reinstate([known.job_id, other.job_id], authority=SYSTEM, by="kim", limits=LIMITS))
    for job_id, counts in ((known.job_id, (1, 0, 1 + 7, 0 + 6)), (other.job_id, (0, 1, 0 + 4, 1 + 2))):
        row = live(job_id) or {}
        assert row["state"] == "available"
        assert (row["failures"], row["losses"], row["failure_limit"], row["loss_limit"]) == counts
        assert (row["quarantine_reason"], row["quarantined_at"]) == (None, None)


@pytest.mark.requirement("L29")
def test_the_system_discards_what_has_been_held_for_too_long_and_nothing_else(perform: Perform) -> None:
    old, young = held_back(2)
    [waits] = enqueued()
    execute("update shiftboss_job set quarantined_at = now() - interval '8 days' where id = %s", old)
    assert perform(upkeep.discard_held_too_long(authority=SYSTEM, seconds=7 * 86_400)) == 1
    assert [state(job_id) for job_id in (old, young, waits)] == ["discarded", "quarantined", "available"]


@pytest.mark.requirement("L29", "N10")
def test_a_job_that_was_reinstated_and_held_again_in_the_meantime_is_not_discarded(perform: Perform) -> None:
    old, other = held_back(2)
    execute("update shiftboss_job set quarantined_at = now() - interval '8 days'")
    run(operate.reinstate([old], authority=SYSTEM, by="kim", limits=LIMITS))
    run(operate.quarantine([old], authority=SYSTEM, by="kim"))
    # The list of those to be discarded was read before that.
    answer = perform(operate.discard([old, other], authority=SYSTEM, held_seconds=86_400))
    assert [job.id for job in answer.changed] == [other]
    assert state(old) == "quarantined"


@pytest.mark.requirement("L19", "N17")
def test_a_rerun_is_a_new_job_of_the_same_owner_with_no_watchers_and_no_past(
    perform: Perform, worker: int
) -> None:
    how = {"key": "k1", "tags": ("a",), "watchers": ("lee",), "priority": 9, "tenant": "acme", "meta": '{"m": 1}'}
    [job_id] = enqueued(authority=Owner("kim"), deadline_in=3600, **how)
    [job] = claimed(worker)
    run(report("discard", job.lease, worker))
    before = finished(job_id)
    old = before or {}
    answer = perform(operate.rerun(job_id, authority=SYSTEM, limits=LIMITS))
    assert isinstance(answer, Enqueued)
    row = live(answer.id) or {}
    same = ("queue", "task", "args", "priority", "owner", "tenant", "key", "tags", "meta")
    assert {name: row[name] for name in same} == {name: old[name] for name in same}
    assert (row["rerun_of"], row["watchers"], row["deadline"], row["state"]) == (job_id, [], None, "available")
    assert (row["failures"], row["losses"], row["fence"], row["error_code"]) == (0, 0, 0, None)
    assert (row["failure_limit"], row["loss_limit"]) == (7, 6)
    assert finished(job_id) == before


@pytest.mark.requirement("L19")
def test_many_are_rerun_as_new_jobs_that_name_them_each_told_with_its_state(perform: Perform, worker: int) -> None:
    done, bystander, given_up = (make(worker).job_id for make in (completed, completed, discarded))
    standings = perform(many.named([done, given_up], authority=SYSTEM))
    made = perform(many.rerun(standings, authority=SYSTEM, limits=LIMITS))
    assert [(old, state) for old, _, state in made] == [(done, State.COMPLETED), (given_up, State.DISCARDED)]
    assert rows("select rerun_of, id from shiftboss_job order by id") == [(old, new) for old, new, _ in made]
    assert (live(made[0][1]) or {})["failure_limit"] == 7
    assert bystander not in [old for old, *_ in made]


@pytest.mark.requirement("L19")
def test_what_has_run_since_is_not_held_again(perform: Perform, worker: int) -> None:
    elsewhere, [waits], [tried] = available(worker).job_id, enqueued(), enqueued(queue="mail")
    before = scalar("select clock_timestamp()")
    [job] = claimed(worker, queue="mail")
    run(report("release", job.lease, worker))
    hold = partial(operate.hold_again, authority=SYSTEM, by="kim", since=before, reason=QuarantineReason.POISON)
    # An attempt that had ended before does not count, nor do those of others.
    answer = perform(hold([tried, waits, elsewhere]))
    assert [one.id for one in answer.changed] == [elsewhere, waits]
    assert [(one.id, one.why) for one in answer.unchanged] == [(tried, Why.BUSY)]
    assert (live(waits) or {})["quarantine_reason"] == "poison"


@pytest.mark.requirement("C4")
def test_jobs_are_reinstated_that_are_held_for_the_reason_that_is_named(perform: Perform, worker: int) -> None:
    failed, [by_hand] = quarantined(worker).job_id, held_back(1)
    again = partial(operate.reinstate, authority=SYSTEM, by="kim", limits=LIMITS, held_for=OPERATOR)
    answer = perform(again([failed, by_hand]))
    assert [one.id for one in answer.changed] == [by_hand]
    assert state(failed) == "quarantined"


@pytest.mark.requirement("L19")
def test_a_rerun_is_of_the_job_that_was_named(perform: Perform, worker: int) -> None:
    jobs = [completed(worker).job_id for _ in range(4)]
    for job_id in (jobs[2], jobs[0]):
        answer = perform(operate.rerun(job_id, authority=SYSTEM, limits=LIMITS))
        assert scalar("select rerun_of from shiftboss_job where id = %s", answer.id) == job_id
    assert perform(operate.rerun(2**62, authority=SYSTEM, limits=LIMITS)) == Unchanged(2**62, Why.MISSING)


@pytest.mark.requirement("L19", "C4")
def test_a_job_is_run_with_other_arguments_where_it_has_ended_or_is_held_and_stays_as_it_is(
    perform: Perform, worker: int
) -> None:
    other = '{"args": [7], "kwargs": {}}'
    bystanders = [completed(worker).job_id, quarantined(worker).job_id]
    ended, held = completed(worker).job_id, quarantined(worker).job_id
    before = [whole(job_id) for job_id in (ended, held, *bystanders)]
    for job_id in (held, ended):
        answer = perform(operate.edit(job_id, authority=SYSTEM, args=other, limits=LIMITS))
        assert isinstance(answer, Enqueued)
        row = live(answer.id) or {}
        assert (row["rerun_of"], row["state"], row["failures"], row["fence"]) == (job_id, "available", 0, 0)
        assert scalar("select args::text from shiftboss_job where id = %s", answer.id) == other
    assert [whole(job_id) for job_id in (ended, held, *bystanders)] == before


@pytest.mark.requirement("C4")
def test_a_job_that_may_still_run_by_itself_is_not_run_with_other_arguments(perform: Perform, worker: int) -> None:
    [waiting] = enqueued()
    answer = perform(operate.edit(waiting, authority=SYSTEM, args='{"args": [], "kwargs": {}}', limits=LIMITS))
    assert answer == Unchanged(waiting, Why.STATE, State.AVAILABLE)
    assert scalar("select count(*) from shiftboss_job") == 1
    missing = perform(operate.edit(2**62, authority=SYSTEM, args='{"args": [], "kwargs": {}}', limits=LIMITS))
    assert missing == Unchanged(2**62, Why.MISSING)


# Hold


@pytest.mark.requirement("C4")
def test_a_held_job_stays_as_it_is_until_the_transaction_ends(connect: Any, worker: int) -> None:
    first, second = enqueued(2)
    session = connect()
    with transaction.atomic():
        run(operate.hold([first], authority=SYSTEM))
        assert [job.id for job in session.run(operate.cancel([first, second], authority=SYSTEM)).changed] == [
            second
        ]
    assert [job.id for job in session.run(operate.cancel([first], authority=SYSTEM)).changed] == [first]


@pytest.mark.requirement("C4")
def test_who_holds_a_job_that_another_has_in_hand_is_told_after_a_bounded_time(connect: Any) -> None:
    [job_id] = enqueued()
    session = connect()
    session.execute("begin")
    session.execute("select from shiftboss_job where id = %s for update", [job_id])
    with pytest.raises(Busy, match="try again"), transaction.atomic():
        run(operate.hold([job_id], authority=SYSTEM))
    session.execute("rollback")


# Upkeep beside locks


@pytest.mark.requirement("N14", "L5")
@pytest.mark.parametrize("verb", ["expire", "quarantine_unknown", "discard_held_too_long"])
def test_what_is_locked_is_passed_over_by_the_rest_of_the_upkeep(verb: str, connect: Any, worker: int) -> None:
    maintainer = connect()
    maintainer.execute("set lock_timeout = '300ms'")
    acts: dict[str, Callable[[], Verb[int]]] = {
        "expire": lambda: upkeep.expire(authority=SYSTEM),
        "quarantine_unknown": lambda: upkeep.quarantine_unknown(authority=SYSTEM, seconds=600),
        "discard_held_too_long": lambda: upkeep.discard_held_too_long(authority=SYSTEM, seconds=600),
    }
    if verb == "discard_held_too_long":
        jobs = held_back(3)
        execute("update shiftboss_job set quarantined_at = now() - interval '1 hour'")
    else:
        jobs = enqueued(3, task="nobody.knows", deadline_in=-1)
        hours_pass()
    with locked(jobs[1]):
        assert maintainer.run(acts[verb]()) == 2
    assert maintainer.run(acts[verb]()) == 1


@pytest.mark.requirement("P5", "C4")
def test_what_still_waits_after_its_deadline_is_cancelled_and_what_runs_goes_on(
    perform: Perform, worker: int
) -> None:
    kept = NOT_HELD["quarantined"](worker).job_id
    [held] = running(worker, deadline_in=3600)
    late = [*enqueued(deadline_in=3600), *enqueued(due_in=3600, deadline_in=3600)]
    in_time, unlimited = [*enqueued(deadline_in=3600), *enqueued()]
    execute(
        "update shiftboss_job set deadline = now() - interval '1 second' where id = any (%s)",
        [held.job_id, kept, *late],
    )
    assert perform(upkeep.expire(authority=SYSTEM)) == 2
    assert [(finished(job_id) or {})["cancel_cause"] for job_id in late] == ["deadline"] * 2
    assert [state(job_id) for job_id in (held.job_id, in_time, unlimited, kept)] == [
        "running",
        "available",
        "available",
        "quarantined",
    ]


@pytest.mark.requirement("C4")
def test_a_bulk_act_finds_the_jobs_that_it_means(perform: Perform, worker: int) -> None:
    [mail] = enqueued(queue="mail", task="a.b")
    [later] = enqueued(queue="mail", due_in=3600)
    [other] = enqueued()
    waiting = frozenset({State.SCHEDULED, State.AVAILABLE})

    def found(**which: Any) -> list[int]:
        asked = Matching(states=which.pop("states", waiting), **which)
        ids = perform(operate.matching(asked, authority=System(), before_id=None, limit=10))
        assert perform(operate.count_matching(asked, authority=System())) == len(ids)
        return list(ids)

    assert found() == [other, later, mail]
    assert found(queue="mail") == [later, mail]
    assert found(task="a.b") == [mail]
    assert found(states=frozenset({State.SCHEDULED})) == [later]
    asked = Matching(states=waiting)
    assert perform(operate.matching(asked, authority=System(), before_id=other, limit=1)) == [later]
    assert rows("select count(*) from shiftboss_job") == [(3,)]
