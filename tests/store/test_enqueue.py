"""Jobs come into the record in the transaction of whoever enqueues them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DataError, transaction
from hypothesis import example, given, settings

from shiftboss import Owner
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.payload import decode_arguments, encode_arguments
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.enqueue import enqueue
from shiftboss.queue.store.statement import run
from tests.core.test_payload import values
from tests.store.conftest import Perform
from tests.store.making import ARGS, SYSTEM, TASK, a_worker, enqueued, live, new_job, rows, says, scalar
from tests.store.sessions import Ear, Session


@pytest.mark.requirement("C1", "L5")
def test_a_job_is_available_at_once_with_all_that_was_asked_for(perform: Perform) -> None:
    job = new_job(priority=7, failure_limit=9, loss_limit=4, meta='{"a": 1}')
    answer = perform(enqueue(job, authority=SYSTEM))
    row = live(answer.id)
    assert row is not None
    assert answer.state is State.AVAILABLE
    assert row["enqueued_at"] == row["due_at"] == answer.enqueued_at
    assert (row["queue"], row["task"], row["state"], row["priority"]) == ("default", TASK, "available", 7)
    assert (row["failure_limit"], row["loss_limit"]) == (9, 4)
    assert (row["failures"], row["losses"], row["fence"], row["owner"]) == (0, 0, 0, None)
    assert scalar("select args = %s::jsonb and meta = '{\"a\": 1}' from shiftboss_job", ARGS)


@pytest.mark.requirement("P5")
def test_a_job_that_is_not_yet_due_is_scheduled(perform: Perform) -> None:
    due_at = datetime(2999, 1, 1, tzinfo=UTC)
    answer = perform(enqueue(new_job(due_in=3600), authority=SYSTEM))
    assert answer.state is State.SCHEDULED
    row = live(answer.id)
    assert row is not None
    assert timedelta(minutes=59) < row["due_at"] - row["enqueued_at"] < timedelta(minutes=61)
    assert row["due_at"] < due_at


@pytest.mark.requirement("P5")
def test_a_job_that_was_due_earlier_is_available_and_keeps_its_time(perform: Perform) -> None:
    answer = perform(enqueue(new_job(due_in=-3600), authority=SYSTEM))
    row = live(answer.id)
    assert row is not None
    assert row["state"] == "available"
    assert row["due_at"] < row["enqueued_at"] - timedelta(minutes=59)


@pytest.mark.requirement("N4", "N5")
def test_an_owner_owns_what_it_enqueues(perform: Perform) -> None:
    answer = perform(enqueue(new_job(), authority=Owner("user_123")))
    assert scalar("select owner from shiftboss_job where id = %s", answer.id) == "user_123"


@pytest.mark.requirement("N4")
@pytest.mark.parametrize("authority", [None, "system", "user_123"])
def test_no_job_is_enqueued_without_authority(authority: Any) -> None:
    with pytest.raises(TypeError, match="authority must be"):
        run(enqueue(new_job(), authority=authority))
    assert scalar("select count(*) from shiftboss_job") == 0


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "no queue": ({"queue": ""}, "queue name"),
    "a queue name too long": ({"queue": "x" * 101}, "queue name is 1 to 100"),
    "a queue name with NUL": ({"queue": "a\x00"}, "printable"),
    "no task": ({"task": ""}, "task name has 1 to 500 characters, not 0"),
    "a task name too long": ({"task": "x" * 501}, "task name has 1 to 500 characters, not 501"),
    "a priority too high": ({"priority": 101}, "priority is a whole number from -100 to 100, not 101"),
    "a priority too low": ({"priority": -101}, "priority"),
    "no attempt": ({"failure_limit": 0}, "max_attempts is a whole number from 1 on, not 0"),
    "a negative limit": ({"failure_limit": -1}, "max_attempts"),
    "no loss": ({"loss_limit": 0}, "max_losses is a whole number from 1 on, not 0"),
    "a limit too high for the column": ({"failure_limit": 2**31}, "max_attempts"),
}


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(("how", "told"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_job_is_refused_where_it_is_made(how: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidJob, match=told):
        new_job(**how)


@pytest.mark.requirement("P5")
def test_a_time_without_zone_is_refused() -> None:
    job = new_job()
    with pytest.raises(InvalidJob, match="run_after must be an aware datetime"):
        replace(job, due_at=datetime(2026, 1, 1))


@pytest.mark.requirement("C1")
def test_extremes_that_are_allowed_are_held() -> None:
    job = new_job(queue="ä" * 100, task="x" * 500, priority=-100, failure_limit=2**31 - 1)
    assert live(run(enqueue(job, authority=Owner("x" * 200))).id) is not None


@pytest.mark.requirement("P5")
@pytest.mark.parametrize("args", ["", "{", "NaN", '"\\u0000"', '"\\ud800"'])
def test_arguments_that_are_no_json_leave_nothing(args: str) -> None:
    with pytest.raises(DataError):
        run(enqueue(new_job(args=args), authority=SYSTEM))
    assert scalar("select count(*) from shiftboss_job") == 0


@pytest.mark.requirement("C7", "P5")
def test_a_rollback_takes_the_job_with_it_and_wakes_nobody(ear: Ear) -> None:
    a_worker(idle=True)
    with transaction.atomic():
        enqueued()
        transaction.set_rollback(True)
    with transaction.atomic():
        with transaction.atomic():
            enqueued()
            transaction.set_rollback(True)
        enqueued(priority=5)
    assert scalar("select count(*) from shiftboss_job") == 1
    assert ear.heard() == "5 default"


@pytest.mark.requirement("C7")
def test_nobody_sees_a_job_before_its_transaction_commits(keepers_connection: Session) -> None:
    question = "select count(*) from shiftboss_job"
    with transaction.atomic():
        enqueued()
        assert keepers_connection.execute(question) == [(0,)]
    assert keepers_connection.execute(question) == [(1,)]


@pytest.mark.requirement("C1", "L9")
def test_only_a_queue_with_an_idle_worker_is_notified(ear: Ear, perform: Perform) -> None:
    a_worker("idle", idle=True)
    a_worker("busy")
    asleep = a_worker("asleep", idle=True)
    # A worker that has not been heard of for long wakes up for nothing.
    rows(
        "update shiftboss_worker set heartbeat_at = now() - interval '6 minutes' where id = %s returning id",
        asleep,
    )
    for queue in ("busy", "asleep", "unserved", "idle"):
        perform(enqueue(new_job(queue=queue, priority=-3), authority=SYSTEM))
    assert ear.heard() == "-3 idle"


@pytest.mark.requirement("C1")
def test_a_worker_that_is_idle_no_more_is_not_notified(ear: Ear) -> None:
    worker = a_worker("one", idle=True)
    a_worker("two", idle=True)
    says(worker, idle=False)
    enqueued(queue="one")
    enqueued(queue="two")
    assert ear.heard() == "0 two"


@pytest.mark.requirement("C1")
def test_a_job_that_is_not_yet_due_wakes_nobody(ear: Ear) -> None:
    a_worker(idle=True)
    enqueued(due_in=3600)
    enqueued(priority=1)
    assert ear.heard() == "1 default"


@pytest.mark.requirement("R7", "P5")
@settings(max_examples=60, deadline=None, database=None)
@example(value=[1e16, 1e300, -1.5e22, 5e-324, 0.1, 10**300, {"$float": 1}])
@given(value=values)
def test_any_arguments_come_back_from_the_record_as_they_went(value: Any) -> None:
    text = encode_arguments([value], {}, max_bytes=2**20)
    [job_id] = enqueued(args=text)
    found = run(read.job(authority=SYSTEM, job_id=job_id))
    assert found is not None
    assert _typed(decode_arguments(found.args)[0]) == _typed([value])


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return type(value), value
