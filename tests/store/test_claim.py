"""Claims: who gets which job, in which order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from shiftboss.queue.contract import Mark
from shiftboss.queue.states import State
from shiftboss.queue.store import queues
from shiftboss.queue.store.enqueue import enqueue
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    TASK,
    a_worker,
    claim,
    enqueued,
    execute,
    live,
    new_job,
    report,
    rows,
    running,
    scalar,
    whole,
)
from tests.store.sessions import together


def mark_of(job_id: int) -> Mark:
    """The mark that a claim of this job leaves."""
    [[priority, due_at]] = rows("select priority, due_at from shiftboss_job where id = %s", job_id)
    return Mark(priority, due_at, job_id)


@pytest.mark.requirement("L2", "C1")
def test_a_claim_takes_a_lease_and_a_fence(perform: Perform, worker: int) -> None:
    [job_id] = enqueued(priority=3)
    [job] = perform(claim(worker, lease_seconds=30))
    row = live(job_id)
    assert row is not None
    assert (row["state"], row["worker_id"], row["fence"]) == ("running", worker, 1)
    assert row["lease_expires_at"] - row["started_at"] == pytest.approx(
        timedelta(seconds=30), abs=timedelta(seconds=1)
    )
    assert (job.id, job.fence, job.queue, job.task, job.priority) == (job_id, 1, "default", TASK, 3)
    assert job.args == '{"args": [1], "kwargs": {"to": "kim"}}'
    assert (job.due_at, job.failures, job.losses, job.suspect) == (row["due_at"], 0, 0, False)


@pytest.mark.requirement("L2", "N9")
def test_every_claim_raises_the_fence(perform: Perform, worker: int, other: int) -> None:
    enqueued()
    for fence, who in ((1, worker), (2, other), (3, worker)):
        [job] = perform(claim(who))
        assert job.fence == fence
        run(report("release", job.lease, who))


@pytest.mark.requirement("C1", "P5")
def test_jobs_come_by_priority_then_due_time_then_id(perform: Perform, worker: int) -> None:
    late, low, *first = [
        *enqueued(due_in=-5),
        *enqueued(priority=-1, due_in=-100),
        *enqueued(priority=5),
        *enqueued(due_in=-10),
    ]
    twins = enqueued(2)
    execute(
        "update shiftboss_job set due_at = (select due_at from shiftboss_job where id = %s) where id = %s", *twins
    )
    expected = [*first, late, *twins, low]
    assert [job.id for job in perform(claim(worker, n=2))] == expected[:2]
    assert [job.id for job in perform(claim(worker, n=10))] == expected[2:]


@pytest.mark.requirement("L2")
def test_only_the_queue_and_the_tasks_that_were_asked_for_are_claimed(perform: Perform, worker: int) -> None:
    enqueued(queue="other")
    enqueued(task="shop.tasks.unknown")
    [mine] = enqueued()
    assert [job.id for job in perform(claim(worker, n=10))] == [mine]
    assert perform(claim(worker, n=10, tasks=[])) == []
    assert perform(claim(worker, n=10, queue="unserved")) == []


@pytest.mark.requirement("L2")
def test_no_more_than_the_limit_is_claimed(perform: Perform, worker: int) -> None:
    enqueued(5)
    assert len(perform(claim(worker, n=3))) == 3
    assert perform(claim(worker, n=0)) == []
    assert scalar("select count(*) from shiftboss_job where state = 'available'") == 2


@pytest.mark.requirement("B13")
def test_with_a_mark_only_what_is_past_it_is_claimed(perform: Perform, worker: int) -> None:
    enqueued(priority=1)
    enqueued(priority=-1)
    jobs = enqueued(4)
    got = perform(claim(worker, n=2, after=mark_of(jobs[1])))
    assert [job.id for job in got] == jobs[2:]
    assert perform(claim(worker, n=10, after=mark_of(jobs[3]))) == []
    assert len(perform(claim(worker, n=10))) == 4


@pytest.mark.requirement("B13")
def test_with_a_mark_queue_and_tasks_still_count(perform: Perform, worker: int) -> None:
    [first] = enqueued(due_in=-5)
    enqueued(queue="other")
    enqueued(task="shop.tasks.unknown")
    assert perform(claim(worker, n=10, after=mark_of(first))) == []


@pytest.mark.requirement("B13", "L5")
def test_a_late_commit_below_the_mark_is_found_by_the_next_sweep(connect: Any, worker: int) -> None:
    keeper = connect()
    with transaction.atomic():
        [late] = enqueued()
        early = keeper.run(enqueue(new_job(), authority=SYSTEM)).id
        assert late < early
        [swept] = keeper.run(claim(worker, n=10))
        assert swept.id == early
        mark = Mark(swept.priority, swept.due_at, swept.id)
    assert keeper.run(claim(worker, n=10, after=mark)) == []
    assert [job.id for job in keeper.run(claim(worker, n=10))] == [late]


@pytest.mark.requirement("C1", "L2")
def test_a_locked_job_is_passed_over(connect: Any, worker: int) -> None:
    first, second = enqueued(2)
    with transaction.atomic():
        execute("select from shiftboss_job where id = %s for update", first)
        assert [job.id for job in connect().run(claim(worker, n=10))] == [second]


@pytest.mark.requirement("C1", "L2", "L30")
def test_two_claimers_at_one_moment_never_share_a_job(connect: Any, worker: int, other: int) -> None:
    jobs = enqueued(240)
    sessions = {worker: connect(), other: connect()}

    def claim_all(who: int) -> list[int]:
        got: list[int] = []
        while batch := sessions[who].run(claim(who, n=7)):
            got += [job.id for job in batch]
        return got

    mine, yours = together(lambda: claim_all(worker), lambda: claim_all(other))
    assert sorted(mine + yours) == jobs
    assert mine
    assert yours
    assert rows("select distinct fence from shiftboss_job") == [(1,)]
    assert {id for (id,) in rows("select id from shiftboss_job where worker_id = %s", worker)} == set(mine)


@pytest.mark.requirement("L2", "N16")
def test_one_job_and_two_claimers_at_one_moment(connect: Any, worker: int, other: int) -> None:
    first, second = connect(), connect()
    for _ in range(30):
        enqueued()
        got = together(lambda: first.run(claim(worker)), lambda: second.run(claim(other)))
        assert sorted(map(len, got)) == [0, 1]


@pytest.mark.requirement("L29")
def test_a_suspect_is_told_as_such(perform: Perform, worker: int) -> None:
    [job_id] = enqueued()
    execute("update shiftboss_job set suspect = true, failures = 2, losses = 1 where id = %s", job_id)
    [job] = perform(claim(worker))
    assert (job.suspect, job.failures, job.losses) == (True, 2, 1)


@pytest.mark.requirement("N4")
def test_claimed_jobs_are_running_for_everybody(worker: int) -> None:
    [held] = running(worker)
    assert State((live(held.job_id) or {})["state"]) is State.RUNNING
    assert run(claim(a_worker(), n=5)) == []


BOTTOM = Mark(0, datetime(2000, 1, 1, tzinfo=UTC), 0)
FROM = pytest.mark.parametrize("after", [None, BOTTOM], ids=["from the bottom", "past a mark"])


@FROM
@pytest.mark.requirement("C1", "L2", "L5")
@pytest.mark.parametrize("kind", [kind for kind in NOT_HELD if kind not in {"available", "missing"}])
def test_a_job_in_any_other_state_is_not_claimed(
    kind: str, after: Mark | None, perform: Perform, worker: int, other: int
) -> None:
    held = NOT_HELD[kind](worker)
    before = whole(held.job_id)
    assert perform(claim(other, n=5, after=after)) == []
    assert whole(held.job_id) == before


@FROM
@pytest.mark.requirement("P5", "P6", "L1")
def test_only_jobs_that_may_run_now_are_claimed(after: Mark | None, perform: Perform, worker: int) -> None:
    [elsewhere] = enqueued(queue="mail")
    [unknown] = enqueued(task="nobody.knows")
    [late] = enqueued(deadline_in=-1)
    in_time = enqueued(deadline_in=3600)
    plain = enqueued()
    run(queues.pause("mail", authority=SYSTEM, by="kim", reason="deploy"))
    # One that was paused and is no more.
    run(queues.pause("default", authority=SYSTEM, by="kim", reason="deploy"))
    assert perform(claim(worker, n=9, after=after)) == []
    run(queues.resume("default", authority=SYSTEM))
    assert [job.id for job in perform(claim(worker, n=9, after=after))] == [*in_time, *plain]
    assert {(live(job_id) or {})["state"] for job_id in (elsewhere, unknown, late)} == {"available"}


@pytest.mark.requirement("B13", "C1")
def test_a_claim_past_a_mark_takes_that_priority_only(perform: Perform, worker: int) -> None:
    enqueued(priority=1)
    mine = enqueued(2)
    enqueued(priority=-1)
    assert [job.id for job in perform(claim(worker, n=9, after=BOTTOM))] == mine


@FROM
@pytest.mark.requirement("C1", "L5")
@pytest.mark.parametrize("lock", ["for update", "for no key update", "for share"])
def test_a_claim_never_waits_for_a_job_that_somebody_has_in_hand(
    lock: str, after: Mark | None, connect: Any, worker: int
) -> None:
    keeper = connect()
    keeper.execute("set lock_timeout = '300ms'")
    taken, free = enqueued(2)
    with transaction.atomic():
        execute(f"select from shiftboss_job where id = %s {lock}", taken)
        assert [job.id for job in keeper.run(claim(worker, n=5, after=after))] == [free]
    assert [job.id for job in keeper.run(claim(worker, n=5, after=after))] == [taken]


@FROM
@pytest.mark.requirement("L2", "C1")
def test_what_another_claims_just_now_is_passed_over(after: Mark | None, connect: Any, worker: int) -> None:
    first, second = connect(), connect()
    second.execute("set lock_timeout = '300ms'")
    jobs = enqueued(4)
    first.execute("begin")
    assert [job.id for job in first.run(claim(worker, n=2, after=after))] == jobs[:2]
    assert [job.id for job in second.run(claim(worker, n=5, after=after))] == jobs[2:]
    first.execute("commit")
