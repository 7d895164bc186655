"""A worker's guard, condition by condition: job, fence, worker and expiry, also where the job's end is wanted."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from shiftboss.queue.contract import Heartbeat, Lease, Settlement
from shiftboss.queue.outcomes import Done
from shiftboss.queue.store import lease, operate, upkeep
from shiftboss.queue.store.statement import Statement, Verb, run
from tests.store.conftest import Perform
from tests.store.making import (
    REPORTS,
    SYSTEM,
    TASK,
    claimed,
    events,
    expired,
    finished,
    live,
    report,
    running,
    scalar,
    wait_for_expiry,
    whole,
)
from tests.store.test_locks import locked
from tests.store.test_rejections import VERBS

Offer = Callable[[int, int], list[Lease]]


def strangers(worker: int, other: int) -> list[Lease]:
    """A lease that another worker holds."""
    return running(other)


def older_and_newer(worker: int, other: int) -> list[Lease]:
    """The worker's own job under fences that are not its own."""
    [held] = running(worker)
    return [held._replace(fence=0), held._replace(fence=2)]


def too_late(worker: int, other: int) -> list[Lease]:
    """A lease that has expired."""
    return [expired(worker)]


def exchanged(worker: int, other: int) -> list[Lease]:
    """Two of the worker's own jobs, each under the other's fence."""
    second = expired(other)
    run(upkeep.reap(authority=SYSTEM))
    run(upkeep.stage(authority=SYSTEM))
    [again] = claimed(worker)
    [first] = running(worker)
    assert (again.id, again.fence, first.fence) == (second.job_id, 2, 1)
    return [Lease(again.id, 1), Lease(first.job_id, 2)]


OFFERS: list[Offer] = [strangers, older_and_newer, too_late, exchanged]


def offered(verb: str, leases: list[Lease], worker: int) -> Any:
    """A write under several leases."""
    if verb == "heartbeat":
        return lease.heartbeat(leases, authority=SYSTEM, worker_id=worker, lease_seconds=60)
    return report(verb, leases, worker)


def all_lost(answer: Settlement | Heartbeat, leases: list[Lease]) -> bool:
    """Whether the answer is that all of these are lost."""
    rest = answer.renewed if isinstance(answer, Heartbeat) else answer.settled
    return (set(answer.lost), set(answer.busy), set(rest)) == (set(leases), set(), set())


@pytest.mark.requirement("L4", "L5", "S13", "N9")
@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("wanted", [False, True], ids=["", "to be cancelled"])
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_held_is_lost_and_stays_as_it_is(
    verb: str, wanted: bool, offer: Offer, perform: Perform, worker: int, other: int
) -> None:
    leases = offer(worker, other)
    ids = sorted({one.job_id for one in leases})
    if wanted:
        run(operate.cancel(ids, authority=SYSTEM))
    before = [whole(job_id) for job_id in ids]
    assert all_lost(perform(offered(verb, leases, worker)), leases)
    assert [whole(job_id) for job_id in ids] == before


@pytest.mark.requirement("L4", "L3", "L5")
@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_locked_row_does_not_make_busy_what_is_lost(
    verb: str, offer: Offer, connect: Any, worker: int, other: int
) -> None:
    leases = offer(worker, other)
    keeper = connect()
    keeper.execute("set lock_timeout = '300ms'")
    with locked(*[one.job_id for one in leases]):
        assert all_lost(keeper.run(offered(verb, leases, worker)), leases)


@pytest.mark.requirement("L4", "L5")
@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_write_that_is_refused_locks_nothing_of_the_job(
    verb: str, offer: Offer, connect: Any, worker: int, other: int
) -> None:
    leases = offer(worker, other)
    keeper = connect()
    keeper.execute("begin")
    assert all_lost(keeper.run(offered(verb, leases, worker)), leases)
    free = "select count(*) from (select from shiftboss_job where id = any (%s) for update nowait) free"
    ids = sorted({one.job_id for one in leases})
    assert scalar(free, ids) == len(ids)
    keeper.execute("rollback")


@pytest.mark.requirement("L4", "L5")
@pytest.mark.parametrize("offer", OFFERS)
def test_of_a_batch_only_leases_that_are_held_are_locked(
    offer: Offer, connect: Any, worker: int, other: int
) -> None:
    leases = offer(worker, other)
    free, busy = running(worker, 2, priority=9)
    keeper, holder = connect(), connect()
    holder.execute("begin")
    holder.execute("select from shiftboss_job where id = %s for update", [busy.job_id])
    batch = [*leases, free, busy]

    def lock() -> Verb[list[Lease]]:
        ids, fences = [one.job_id for one in batch], [one.fence for one in batch]
        return (yield Statement("lock", Lease).call(ids=ids, fences=fences, worker_id=worker))

    keeper.execute("begin")
    assert keeper.run(lock()) == [busy]
    ids = sorted({one.job_id for one in leases})
    unlocked = "select count(*) from (select from shiftboss_job where id = any (%s) for update skip locked) free"
    assert scalar(unlocked, ids) == len(ids)
    assert scalar(unlocked, [free.job_id]) == 0
    keeper.execute("rollback")
    holder.execute("rollback")


@pytest.mark.requirement("L5", "L17")
@pytest.mark.parametrize("wanted", [False, True], ids=["", "to be cancelled"])
@pytest.mark.parametrize("verb", VERBS)
def test_the_jobs_of_a_batch_keep_what_is_their_own_and_others_are_left_alone(
    verb: str, wanted: bool, perform: Perform, worker: int
) -> None:
    first, bystander, second = running(worker, 3)
    if wanted:
        run(operate.cancel([first.job_id, bystander.job_id, second.job_id], authority=SYSTEM))
    before = whole(bystander.job_id)
    answer = perform(offered(verb, [first, second], worker))
    assert (answer.renewed if isinstance(answer, Heartbeat) else answer.settled) == {first, second}
    assert whole(bystander.job_id) == before
    for one in (first, second):
        row = live(one.job_id) or finished(one.job_id) or {}
        assert row["id"] == one.job_id


@pytest.mark.requirement("L5", "R10")
def test_each_job_of_a_batch_gets_its_own_result(perform: Perform, worker: int) -> None:
    leases = running(worker, 5)
    items = [(one, Done(json.dumps(one.job_id), one.job_id % 7)) for one in leases]
    perform(lease.complete(items, authority=SYSTEM, worker_id=worker))
    for one in leases:
        row = finished(one.job_id) or {}
        assert (json.loads(row["result"]), row["run_ms"]) == (one.job_id, one.job_id % 7)


@pytest.mark.requirement("S8", "L27", "N9")
@pytest.mark.parametrize("verb", REPORTS)
def test_the_same_end_of_another_job_is_no_trace_of_this_one(verb: str, perform: Perform, worker: int) -> None:
    [ended] = running(worker)
    run(report(verb, ended, worker))
    late = expired(worker, priority=9)
    assert late.fence == ended.fence
    assert perform(report(verb, late, worker)) == Settlement(lost={late})
    answer = perform(lease.heartbeat([late], authority=SYSTEM, worker_id=worker, lease_seconds=30))
    assert answer.lost == {late}
    assert [event["kind"] for event in events(late.job_id)] == ["write_rejected"] * 2
    assert events(ended.job_id) == []


@pytest.mark.requirement("S8", "N9")
def test_a_job_that_returned_nothing_was_not_discarded(perform: Perform, worker: int) -> None:
    [held] = running(worker)
    run(lease.complete([(held, Done(None, 12))], authority=SYSTEM, worker_id=worker))
    assert perform(report("discard", held, worker)) == Settlement(lost={held})


@pytest.mark.requirement("S8", "L27")
@pytest.mark.parametrize("verb", [verb for verb in REPORTS if verb != "complete"])
def test_the_end_of_a_job_that_was_to_be_cancelled_may_be_reported_again(
    verb: str, perform: Perform, worker: int
) -> None:
    [held] = running(worker)
    run(operate.cancel([held.job_id], authority=SYSTEM))
    for _ in range(2):
        assert perform(report(verb, held, worker)) == Settlement(settled={held})
    row = finished(held.job_id) or {}
    assert (row["state"], row["cancel_cause"], row["fence"]) == ("cancelled", "user", held.fence)
    assert scalar("select count(*) from shiftboss_attempt") == 1
    assert events(held.job_id) == []


@pytest.mark.requirement("B4", "L4")
def test_a_rejection_tells_of_its_own_job(perform: Perform, worker: int, other: int) -> None:
    done, first, bystander = running(other, 3)
    run(report("complete", done, other))
    wait_for_expiry(expired(other))
    held = [*running(worker), *running(worker)]
    run(report("complete", held[0], worker))
    perform(report("fail", held, other))
    for one in held:
        [event] = events(one.job_id)
        told = json.loads(event["data"])
        row = live(one.job_id) or finished(one.job_id) or {}
        assert (told["worker_held"], told["state"]) == (worker, row["state"])
    assert {row["task"] for row in (live(first.job_id), live(bystander.job_id)) if row} == {TASK}


@pytest.mark.requirement("L17")
def test_the_events_of_a_job_are_numbered_by_themselves(perform: Perform, worker: int, other: int) -> None:
    busy, calm = running(worker, 2)
    for _ in range(3):
        run(report("complete", busy, other))
    perform(report("complete", calm, other))
    assert [event["seq"] for event in events(calm.job_id)] == [1]


@pytest.mark.requirement("L4")
@pytest.mark.parametrize("locked_one", [False, True], ids=["", "locked"])
def test_heartbeats_of_two_jobs_are_answered_by_their_own_rows(
    locked_one: bool, connect: Any, worker: int, other: int
) -> None:
    mine, foreign = [*running(worker), *running(other)]
    keeper = connect()
    with locked(mine.job_id) if locked_one else nullcontext():
        answer = keeper.run(offered("heartbeat", [mine, foreign], worker))
    assert answer.lost == {foreign}
    assert (answer.busy if locked_one else answer.renewed) == {mine}
