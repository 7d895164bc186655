"""Rows that somebody else holds, and ends of one job that meet."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from psycopg.errors import LockNotAvailable

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.outcomes import Done
from shiftboss.queue.store import lease, upkeep
from shiftboss.queue.store.statement import run
from tests.store.making import (
    REPORTS,
    SYSTEM,
    attempts,
    claimed,
    enqueued,
    events,
    execute,
    finished,
    live,
    report,
    running,
    scalar,
    state,
    wait_for_expiry,
    whole,
)
from tests.store.sessions import Session, together, watched
from tests.waiting import wait_for


@contextmanager
def locked(*job_ids: int) -> Iterator[None]:
    """A transaction of Django's connection holds the rows' locks."""
    with transaction.atomic():
        execute("select from shiftboss_job where id = any (%s) for update", list(job_ids))
        yield


@pytest.mark.requirement("L3", "S3")
def test_a_locked_lease_is_busy_at_once_and_the_others_are_renewed(connect: Any, worker: int) -> None:
    keeper = connect()
    leases = running(worker, 5)
    with locked(leases[2].job_id):
        # Waiting for the lock would raise after `lock_timeout`.
        keeper.execute("set lock_timeout = '20ms'")
        answer = keeper.run(lease.heartbeat(leases, authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert answer.busy == {leases[2]}
    assert answer.renewed == set(leases) - answer.busy
    assert answer.lost == frozenset()
    assert events(leases[2].job_id) == []
    again = keeper.run(lease.heartbeat(leases, authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert again.renewed == set(leases)


@pytest.mark.requirement("L4", "L3")
def test_a_locked_job_under_a_lease_that_is_not_held_is_lost_and_not_busy(connect: Any, worker: int) -> None:
    [held] = running(worker)
    stale = held._replace(fence=0)
    with locked(held.job_id):
        answer = connect().run(lease.heartbeat([stale], authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert answer.lost == {stale}


@pytest.mark.requirement("L3", "L4", "S3")
def test_a_refusal_that_cannot_be_recorded_now_costs_no_renewal(connect: Any, worker: int, other: int) -> None:
    keeper, holder = connect(), connect()
    keeper.execute("set lock_timeout = '20ms'")
    [held], [foreign] = running(worker), running(other)
    holder.execute("begin")
    # As somebody does who stores events of this job.
    holder.execute("select pg_advisory_xact_lock(hashtextextended('shiftboss_event', %s))", [foreign.job_id])
    verb = partial(lease.heartbeat, [held, foreign], authority=SYSTEM, worker_id=worker, lease_seconds=60)
    answer = keeper.run(verb())
    assert (answer.renewed, answer.busy, answer.lost) == ({held}, {foreign}, frozenset())
    holder.execute("rollback")
    assert keeper.run(verb()).lost == {foreign}
    assert [event["kind"] for event in events(foreign.job_id)] == ["write_rejected"]


@pytest.mark.requirement("L5", "L12")
@pytest.mark.parametrize("verb", REPORTS)
def test_a_locked_job_holds_up_only_its_own_end(verb: str, connect: Any, worker: int) -> None:
    keeper = connect()
    keeper.execute("set lock_timeout = '20ms'")
    leases = running(worker, 8)
    with locked(leases[5].job_id):
        before = whole(leases[5].job_id)
        answer = keeper.run(report(verb, leases, worker))
        assert whole(leases[5].job_id) == before
    rest = set(leases) - {leases[5]}
    assert answer == Settlement(settled=rest, busy={leases[5]})
    assert keeper.run(report(verb, leases[5], worker)) == Settlement(settled={leases[5]})


@pytest.mark.requirement("L5", "L12")
@pytest.mark.parametrize("verb", REPORTS)
def test_a_batch_waits_once_for_all_rows_that_are_locked(verb: str, connect: Any, worker: int) -> None:
    keeper = connect()
    keeper.execute("set lock_timeout = '20ms'")
    leases = running(worker, 200)
    taken = leases[5:200:20]
    errors: list[Exception] = []
    with locked(*[one.job_id for one in taken]):
        answer = keeper.run(watched(report(verb, leases, worker), errors))
    assert answer == Settlement(settled=set(leases) - set(taken), busy=set(taken))
    assert [type(error) for error in errors] == [LockNotAvailable]
    assert keeper.run(report(verb, taken, worker)) == Settlement(settled=set(taken))


@pytest.mark.requirement("L5", "L12", "R7")
def test_a_bad_outcome_beside_locked_rows_costs_no_second_wait(connect: Any, worker: int) -> None:
    keeper = connect()
    keeper.execute("set lock_timeout = '20ms'")
    leases = running(worker, 40)
    bad, *taken = leases[3], leases[8], leases[18], leases[38]
    items = [(one, Done("{" if one is bad else None, 5)) for one in leases]
    errors: list[Exception] = []
    with locked(*[one.job_id for one in taken]):
        answer = keeper.run(watched(lease.complete(items, authority=SYSTEM, worker_id=worker), errors))
    assert answer == Settlement(settled=set(leases) - set(taken), busy=set(taken))
    assert sum(isinstance(error, LockNotAvailable) for error in errors) <= 1
    assert (live(bad.job_id) or {})["error_code"] == "result_not_storable"


@pytest.mark.requirement("L4", "L5")
def test_beside_locked_rows_a_lease_that_is_not_held_is_lost_and_recorded(
    connect: Any, worker: int, other: int
) -> None:
    keeper = connect()
    keeper.execute("set lock_timeout = '20ms'")
    [mine, taken, done], [foreign] = running(worker, 3), running(other)
    run(report("complete", done, worker))
    with locked(taken.job_id, foreign.job_id):
        answer = keeper.run(report("complete", [mine, taken, done, foreign], worker))
    assert answer == Settlement(settled={mine, done}, busy={taken}, lost={foreign})
    assert [event["kind"] for event in events(foreign.job_id)] == ["write_rejected"]
    assert events(taken.job_id) == []


@pytest.mark.requirement("L5")
def test_a_batch_that_met_a_deadlock_is_settled(connect: Any, worker: int) -> None:
    keeper, holder, watcher = connect(), connect(), connect()
    # The keeper is the first to look for a circle, and gives way.
    keeper.execute("set deadlock_timeout = '500ms'")
    holder.execute("set deadlock_timeout = '20s'")
    first, second = sorted(running(worker, 2))
    holder.execute("begin")
    holder.execute("select from shiftboss_job where id = %s for update", [second.job_id])
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"

    def cross() -> None:
        wait_for(lambda: watcher.execute(waits, [keeper.pid]) == [(True,)], seconds=20, every=0.005)
        holder.execute("set local lock_timeout = 0")
        holder.execute("select from shiftboss_job where id = %s for update", [first.job_id])
        holder.execute("rollback")

    keeper.execute("set lock_timeout = '10s'")
    answer, _ = together(lambda: keeper.run(report("complete", [first, second], worker)), cross)
    assert answer.lost == set()
    assert answer.settled | answer.busy == {first, second}
    again = keeper.run(report("complete", [first, second], worker))
    assert again == Settlement(settled={first, second})


@pytest.mark.requirement("L5")
def test_a_finish_waits_for_a_lock_that_is_let_go_in_time(connect: Any, worker: int) -> None:
    keeper, holder, watcher = connect(), connect(), connect()
    keeper.execute("set lock_timeout = '20s'")
    [held] = running(worker)
    holder.execute("begin")
    holder.execute("select from shiftboss_job for update")
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"

    def let_go() -> None:
        wait_for(lambda: watcher.execute(waits, [keeper.pid]) == [(True,)], seconds=20, every=0.005)
        holder.execute("commit")

    answer, _ = together(lambda: keeper.run(report("complete", held, worker)), let_go)
    assert answer == Settlement(settled={held})


@pytest.mark.requirement("L5", "N14")
def test_a_finish_beside_an_open_reap_is_lost_at_once(connect: Any, worker: int) -> None:
    maintainer, keeper = connect(), connect()
    for end in ("commit", "rollback"):
        [held] = running(worker, lease_seconds=0.01)
        wait_for_expiry(held)
        maintainer.execute("begin")
        assert [job.id for job in maintainer.run(upkeep.reap(authority=SYSTEM))] == [held.job_id]
        assert keeper.run(report("complete", held, worker)) == Settlement(lost={held})
        maintainer.execute(end)
        assert finished(held.job_id) is None
        assert state(held.job_id) == ("retryable" if end == "commit" else "running")
        run(upkeep.reap(authority=SYSTEM))
        assert [attempt["outcome"] for attempt in attempts(held.job_id)] == ["lost"]


@pytest.mark.requirement("L5", "N14")
@pytest.mark.parametrize("verb", REPORTS)
def test_a_reap_beside_an_open_finish_passes_it_over(verb: str, connect: Any, worker: int) -> None:
    maintainer, keeper = connect(), connect()
    for end in ("commit", "rollback"):
        [held] = running(worker, lease_seconds=0.1)
        keeper.execute("begin")
        assert keeper.run(report(verb, held, worker)) == Settlement(settled={held})
        wait_for_expiry(held)
        assert maintainer.run(upkeep.reap(authority=SYSTEM)) == []
        keeper.execute(end)
        late = maintainer.run(upkeep.reap(authority=SYSTEM))
        assert [job.id for job in late] == ([] if end == "commit" else [held.job_id])
        assert len(attempts(held.job_id)) == (0 if verb == "complete" and end == "commit" else 1)
        execute("delete from shiftboss_job")


def _meet(keeper: Session, maintainer: Session, worker: int, lease_seconds: float) -> tuple[Lease, bool, bool]:
    [held] = running(worker, lease_seconds=lease_seconds)
    answer, reaped = together(
        lambda: keeper.run(report("complete", held, worker)), lambda: maintainer.run(upkeep.reap(authority=SYSTEM))
    )
    return held, answer.settled == {held}, bool(reaped)


@pytest.mark.requirement("L5", "L30", "N9")
def test_a_finish_and_a_reap_at_one_moment_never_both_count(connect: Any, worker: int) -> None:
    keeper, maintainer = connect(), connect()
    lease_seconds, completed, reaped = 0.004, 0, 0
    for _ in range(200):
        held, is_done, is_reaped = _meet(keeper, maintainer, worker, lease_seconds * random.uniform(0.9, 1.1))
        assert not (is_done and is_reaped)
        assert (finished(held.job_id) is not None) == is_done
        assert (live(held.job_id) is None) == is_done
        assert len(attempts(held.job_id)) == int(is_reaped)
        assert [event["kind"] for event in events(held.job_id)] == [] if is_done else ["write_rejected"]
        completed += is_done
        reaped += is_reaped
        # Steer to where both happen.
        lease_seconds *= 0.95 if is_done else 1.05
        execute("delete from shiftboss_job")
    assert completed >= 20
    assert completed + reaped <= 200


@pytest.mark.requirement("L5", "L12", "L27")
def test_two_reports_of_one_run_at_one_moment_count_once(connect: Any, worker: int) -> None:
    first, second = connect(), connect()
    for verb in REPORTS:
        for _ in range(10):
            [held] = running(worker)
            answers = together(
                lambda held=held, verb=verb: first.run(report(verb, held, worker)),
                lambda held=held, verb=verb: second.run(report(verb, held, worker)),
            )
            assert answers == [Settlement(settled={held})] * 2
            assert len(attempts(held.job_id)) == (verb != "complete")
            execute("delete from shiftboss_job")


@pytest.mark.requirement("L5", "N9")
def test_two_different_reports_of_one_run_at_one_moment_count_once(connect: Any, worker: int) -> None:
    first, second = connect(), connect()
    for _ in range(30):
        [held] = running(worker)
        answers = together(
            lambda held=held: first.run(report("complete", held, worker)),
            lambda held=held: second.run(report("fail", held, worker)),
        )
        assert sorted(len(answer.settled) for answer in answers) == [0, 1]
        assert (finished(held.job_id) is None) != (live(held.job_id) is None)
        execute("delete from shiftboss_job")


@pytest.mark.requirement("L5")
def test_heartbeats_and_finishes_of_the_same_jobs_never_deadlock(connect: Any, worker: int) -> None:
    pulse, work = connect(), connect()
    for _ in range(15):
        leases = running(worker, 20)
        shuffled = random.sample(leases, k=len(leases))
        beat, answer = together(
            lambda shuffled=shuffled: pulse.run(
                lease.heartbeat(shuffled, authority=SYSTEM, worker_id=worker, lease_seconds=60)
            ),
            lambda leases=leases: work.run(report("complete", leases[::-1], worker)),
        )
        assert answer == Settlement(settled=set(leases))
        assert beat.renewed | beat.busy | beat.lost == answer.settled
        # Neither was late: they went two ways.
        assert scalar("select count(*) from shiftboss_event") == 0


@pytest.mark.requirement("C1")
def test_a_claim_beside_a_lock_takes_the_next(connect: Any, worker: int) -> None:
    first, second = enqueued(2)
    with locked(first):
        assert [job.id for job in connect().run(_claim(worker))] == [second]
    assert [job.id for job in claimed(worker)] == [first]


def _claim(worker: int) -> Any:
    return lease.claim(
        authority=SYSTEM,
        worker_id=worker,
        queue="default",
        tasks=["shop.tasks.send_invoice"],
        limit=5,
        lease_seconds=30,
    )
