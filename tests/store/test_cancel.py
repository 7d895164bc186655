"""Cancel beside a claim, beside an end, and while nobody is there: one end, and everybody is told which."""

from typing import Any

import pytest

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.states import State
from shiftboss.queue.store import lease, operate, upkeep
from shiftboss.queue.store.enqueue import enqueue
from shiftboss.queue.store.operate import Changed, Unchanged, Why
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    REPORTS,
    SYSTEM,
    claim,
    enqueued,
    execute,
    expired,
    finished,
    live,
    new_job,
    report,
    running,
    scalar,
    state,
    wait_for_expiry,
)
from tests.store.sessions import Session, together
from tests.store.test_upkeep import now_due
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("C4", "N10", "N11")

ROUNDS = 200


def cancelled(session: Session, job_id: int) -> Changed | Unchanged:
    """What a cancellation that is asked again as long as it is told `busy` leads to."""
    while True:
        answer = session.run(operate.cancel([job_id], authority=SYSTEM))
        [told] = answer.changed or answer.unchanged
        if isinstance(told, Changed) or told.why is not Why.BUSY:
            return told


@pytest.mark.requirement("L30")
def test_cancel_beside_a_claim_either_keeps_the_job_from_starting_or_reaches_the_run(
    connect: Any, worker: int
) -> None:
    operator, keeper = connect(), connect()
    never_started = 0
    for round in range(ROUNDS):
        [job_id] = enqueued()
        calls = [lambda job_id=job_id: cancelled(operator, job_id), lambda: keeper.run(claim(worker))]
        told, jobs = together(*calls) if round % 2 else together(*calls[::-1])[::-1]
        if jobs:
            assert told == Changed(job_id, State.RUNNING, State.RUNNING)
            beat = keeper.run(
                lease.heartbeat([jobs[0].lease], authority=SYSTEM, worker_id=worker, lease_seconds=30)
            )
            assert beat.cancelled == {jobs[0].lease: "user"}
            # Nobody calls it cancelled while it may still run.
            assert state(job_id) == "running"
            keeper.run(report("release", jobs[0].lease, worker))
        else:
            assert told == Changed(job_id, State.AVAILABLE, State.CANCELLED)
            never_started += 1
        assert state(job_id) == "cancelled"
        assert keeper.run(claim(worker)) == []
        execute("delete from shiftboss_finished")
    assert never_started


@pytest.mark.requirement("L30", "L5")
def test_cancel_beside_a_completion_leaves_one_end_and_both_are_told(connect: Any, worker: int) -> None:
    operator, keeper = connect(), connect()
    came_first = 0
    for round in range(ROUNDS):
        [held] = running(worker)
        calls = [
            lambda held=held: cancelled(operator, held.job_id),
            lambda held=held: keeper.run(report("complete", held, worker)),
        ]
        told, settlement = together(*calls) if round % 2 else together(*calls[::-1])[::-1]
        # A completion stands, whether or not its end was wanted by then; the history has both.
        assert settlement == Settlement(settled={held})
        row = finished(held.job_id) or {}
        assert row["state"] == "completed"
        if isinstance(told, Changed):
            came_first += 1
            assert told == Changed(held.job_id, State.RUNNING, State.RUNNING)
            assert (row["cancel_cause"], row["cancel_requested_at"] is None) == ("user", False)
        else:
            assert told == Unchanged(held.job_id, Why.STATE, State.COMPLETED)
            assert row["cancel_cause"] is row["cancel_requested_at"] is None
        execute("delete from shiftboss_finished")
    assert came_first


@pytest.mark.requirement("L30", "L19")
@pytest.mark.parametrize("verb", [verb for verb in REPORTS if verb != "complete"])
def test_cancel_beside_any_other_end_is_the_end_of_the_job(verb: str, connect: Any, worker: int) -> None:
    operator, keeper = connect(), connect()
    for _ in range(30):
        [held] = running(worker)
        told, settlement = together(
            lambda held=held: cancelled(operator, held.job_id),
            lambda held=held: keeper.run(report(verb, held, worker)),
        )
        assert settlement == Settlement(settled={held})
        if told == Unchanged(held.job_id, Why.STATE, State.DISCARDED):
            assert state(held.job_id) == "discarded"
        else:
            assert isinstance(told, Changed)
            assert state(held.job_id) == "cancelled"
        assert live(held.job_id) is None
        execute("delete from shiftboss_finished")


@pytest.mark.requirement("L30", "N14")
def test_cancel_beside_a_reap_is_the_end_of_the_job(connect: Any, worker: int) -> None:
    operator, maintainer = connect(), connect()
    for _ in range(30):
        lost = expired(worker)
        together(
            lambda lost=lost: cancelled(operator, lost.job_id),
            lambda: maintainer.run(upkeep.reap(authority=SYSTEM)),
        )
        run(upkeep.reap(authority=SYSTEM))
        assert state(lost.job_id) == "cancelled"
        execute("delete from shiftboss_finished")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_end_waits_for_a_cancellation_that_is_under_way(end: str, connect: Any, worker: int) -> None:
    operator, keeper, watcher = connect(), connect(), connect()
    keeper.execute("set lock_timeout = '20s'")
    [held] = running(worker)
    operator.execute("begin")
    operator.run(operate.cancel([held.job_id], authority=SYSTEM))
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"

    def end_it() -> None:
        wait_for(lambda: watcher.execute(waits, [keeper.pid]) == [(True,)], seconds=20, every=0.005)
        operator.execute(end)

    answer, _ = together(lambda: keeper.run(report("release", held, worker)), end_it)
    assert answer == Settlement(settled={held})
    assert state(held.job_id) == ("cancelled" if end == "commit" else "available")


@pytest.mark.requirement("L19")
def test_a_job_whose_end_was_wanted_fails_for_good_and_its_key_is_free(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    perform(operate.cancel([held.job_id], authority=SYSTEM))
    assert perform(enqueue(new_job(key="k1"), authority=SYSTEM)).existing
    perform(report("fail", held, worker))
    assert state(held.job_id) == "cancelled"
    assert not perform(enqueue(new_job(key="k1"), authority=SYSTEM)).existing


@pytest.mark.requirement("L19")
def test_a_job_that_is_cancelled_in_its_backoff_never_runs_again(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    run(report("fail", held, worker))
    perform(operate.cancel([held.job_id], authority=SYSTEM))
    now_due(held.job_id)
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    assert perform(claim(worker)) == []
    assert not perform(enqueue(new_job(key="k1"), authority=SYSTEM)).existing


@pytest.mark.requirement("L30", "N14")
def test_a_job_whose_end_was_wanted_ends_with_its_dead_worker(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1", lease_seconds=0.2)
    perform(operate.cancel([held.job_id], authority=SYSTEM))
    wait_for_expiry(held)
    [reaped] = perform(upkeep.reap(authority=SYSTEM))
    assert (reaped.id, reaped.state) == (held.job_id, State.CANCELLED)
    row = finished(held.job_id) or {}
    assert (row["cancel_cause"], row["error_code"]) == ("user", "lease_expired")
    assert not perform(enqueue(new_job(key="k1"), authority=SYSTEM)).existing


@pytest.mark.requirement("L9", "L30")
def test_what_was_cancelled_while_nobody_worked_is_not_run(perform: Perform, worker: int) -> None:
    jobs = enqueued(5)
    perform(operate.cancel([jobs[0], jobs[2], jobs[3]], authority=SYSTEM))
    assert [job.id for job in perform(claim(worker, n=10))] == [jobs[1], jobs[4]]


@pytest.mark.requirement("L1")
def test_ids_beyond_31_bits_are_ids_like_others(perform: Perform, worker: int) -> None:
    rows_before = scalar("select setval(pg_get_serial_sequence('shiftboss_job', 'id'), 3000000000)")
    assert rows_before == 3_000_000_000
    for verb in REPORTS:
        [held] = running(worker)
        assert held.job_id > 3_000_000_000
        assert perform(report(verb, held, worker)) == Settlement(settled={held})
        execute("delete from shiftboss_job")
    waits, other = enqueued(2)
    assert [job.id for job in perform(operate.cancel([waits, other], authority=SYSTEM)).changed] == [waits, other]
    [held] = running(worker)
    perform(operate.cancel([held.job_id], authority=SYSTEM))
    assert perform(report("release", held, worker)) == Settlement(settled={held})
    assert perform(operate.expedite(enqueued(due_in=60), authority=SYSTEM, by="kim")).changed
    stale = Lease(held.job_id, 2**62)
    assert perform(report("complete", stale, worker)) == Settlement(lost={stale})
