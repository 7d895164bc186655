"""A job that is completed as the last act of somebody's own transaction."""

from collections.abc import Callable

import pytest
from django.db import DataError, transaction

from shiftboss.queue.authority import Owner
from shiftboss.queue.contract import Lease
from shiftboss.queue.errors import LeaseLost, NotAllowed
from shiftboss.queue.outcomes import Done
from shiftboss.queue.store import lease
from shiftboss.queue.store.statement import Verb, run
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    enqueued,
    events,
    execute,
    finished,
    live,
    rows,
    running,
    state,
    to_be_cancelled,
    whole,
)
from tests.store.sessions import Session

DONE = Done('{"sum": 3}', 12)


def complete_here(held: Lease, worker: int, done: Done = DONE) -> Verb[None]:
    return lease.complete_here(held, done, authority=SYSTEM, worker_id=worker)


@pytest.mark.requirement("B12")
def test_a_completion_is_seen_with_the_commit_and_gone_with_a_rollback(
    connect: Callable[[], Session], worker: int
) -> None:
    beside = connect()
    [held] = running(worker)
    before = whole(held.job_id)
    with transaction.atomic():
        run(complete_here(held, worker))
        transaction.set_rollback(True)
    assert whole(held.job_id) == before
    with transaction.atomic():
        run(complete_here(held, worker))
        assert beside.execute("select state from shiftboss_job where id = %s", [held.job_id]) == [("running",)]
    row = finished(held.job_id)
    assert row is not None
    assert (row["state"], row["result"], row["run_ms"], row["fence"]) == (
        "completed",
        '{"sum": 3}',
        12,
        held.fence,
    )
    assert (row["worker_id"], live(held.job_id)) == (worker, None)


@pytest.mark.requirement("B12", "L4")
@pytest.mark.parametrize("kind", NOT_HELD)
def test_who_no_longer_holds_the_lease_completes_nothing(kind: str, worker: int) -> None:
    held = NOT_HELD[kind](worker)
    before = whole(held.job_id), events(held.job_id)
    with pytest.raises(LeaseLost, match=f"job {held.job_id} is no longer held"), transaction.atomic():
        run(complete_here(held, worker))
    assert (whole(held.job_id), events(held.job_id)) == before


@pytest.mark.requirement("B12", "L4")
def test_another_worker_or_fence_completes_nothing(worker: int) -> None:
    [held] = running(worker)
    for other, by in ((held, worker + 1), (Lease(held.job_id, held.fence + 1), worker)):
        with pytest.raises(LeaseLost), transaction.atomic():
            run(complete_here(other, by))
    assert state(held.job_id) == "running"


@pytest.mark.requirement("B12")
def test_a_completion_stands_where_the_end_had_been_asked_for(worker: int) -> None:
    held = to_be_cancelled(worker)
    with transaction.atomic():
        run(complete_here(held, worker))
    assert state(held.job_id) == "completed"


@pytest.mark.requirement("B12", "R10")
def test_a_completion_that_meets_a_missing_day_makes_it_and_what_came_before_it_stays(worker: int) -> None:
    [held] = running(worker)
    [today] = rows("select to_char(now() at time zone 'UTC', 'YYYYMMDD')")[0]
    execute(f"drop table shiftboss_finished_{today}")
    with transaction.atomic():
        [other] = enqueued()
        run(complete_here(held, worker))
    assert (state(held.job_id), state(other)) == ("completed", "available")


@pytest.mark.requirement("B12", "R7")
def test_a_result_that_jsonb_refuses_is_the_callers_error(worker: int) -> None:
    [held] = running(worker)
    with pytest.raises(DataError), transaction.atomic():
        run(complete_here(held, worker, Done("{", 5)))
    assert state(held.job_id) == "running"


def test_only_the_system_completes(worker: int) -> None:
    [held] = running(worker)
    with pytest.raises(NotAllowed):
        run(lease.complete_here(held, DONE, authority=Owner("kim"), worker_id=worker))
