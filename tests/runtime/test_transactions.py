"""Handlers that complete their jobs in their own transactions."""

from collections.abc import Iterator

import pytest
from django.db import connection

from shiftboss.queue.runtime.context import Context
from shiftboss.queue.states import State
from tests.faults.ledger import TABLE, tasks
from tests.runtime.programs import House, Program, attempts, job, wait_for_state
from tests.waiting import wait_for

APPS = "tests.runtime,tests.faults.ledger"


@pytest.fixture(autouse=True)
def ledger(dsn: str) -> Iterator[None]:
    """The project's own table."""
    with connection.cursor() as cursor:
        cursor.execute(TABLE)
    yield
    with connection.cursor() as cursor:
        cursor.execute("drop table ledger")


def effects() -> list[tuple[int, int, int]]:
    """What stands in the ledger: number, job, fence."""
    with connection.cursor() as cursor:
        cursor.execute("select number, job, fence from ledger order by job")
        return cursor.fetchall()


def worker(house: House, **settings: object) -> Program:
    return house.worker(apps=APPS, LEASE_SECONDS=60, HEARTBEAT_SECONDS=1, STAGE_SECONDS=0.02, **settings)


@pytest.mark.requirement("B12")
def test_effects_and_completion_are_committed_together_in_every_kind_of_run(house: House) -> None:
    """Nothing that comes after the block undoes it."""
    program = worker(house)
    loud = ("raise", "exit", "snooze", "discard", "again", "hook")
    jobs = [int(kind.enqueue(7).id) for kind in (tasks.enter, tasks.enter_in_loop, tasks.savepoints)]
    jobs.append(int(tasks.enter_alone.enqueue(7).id))
    jobs += [int(tasks.end_after.enqueue(7, how).id) for how in (*loud, "nonsense")]
    for one in jobs:
        done = wait_for_state(one, State.COMPLETED)
        assert (done.result, done.fence, attempts(one)) == ("7", 1, [])
    assert effects() == [(7, one, 1) for one in jobs]
    wait_for(lambda: program.log.read_text().count("job.raised_after_completion") == len(loud), seconds=10)


@pytest.mark.requirement("B12")
def test_a_block_that_fails_leaves_no_effect_and_the_run_has_failed_or_ended_as_it_asked(house: House) -> None:
    worker(house)
    expected = {
        "raise": ("handler_raised", "ValueError", "in the block"),
        "rollback": ("handler_raised", "django.db.transaction.TransactionManagementError", "atomic"),
        "close": ("handler_raised", "django.db.utils.OperationalError", "closed"),
        "outer": ("handler_raised", "shiftboss.queue.errors.InTransaction", "leave the outer atomic() out"),
        "no autocommit": (
            "handler_raised",
            "shiftboss.queue.errors.InTransaction",
            "leave the outer atomic() out",
        ),
        "result": ("result_not_storable", "shiftboss.queue.errors.NotStorable", "result is a builtins.object"),
    }
    jobs = {how: tasks.break_off.enqueue(7, how).id for how in (*expected, "snooze")}
    for how, (code, kind, words) in expected.items():
        held = wait_for_state(jobs[how], State.QUARANTINED)
        assert (how, held.error_code, held.error_type) == (how, code, kind)
        assert words in str(held.error_message)
    assert wait_for_state(jobs["snooze"], State.SCHEDULED).failures == 0
    assert effects() == []
    # The connections that they have left behind harm nobody.
    good = [int(tasks.enter.enqueue(number).id) for number in range(20)]
    for one in good:
        assert wait_for_state(one, State.COMPLETED).failures == 0
    assert len(effects()) == 20


@pytest.mark.requirement("B12", "L27")
def test_where_the_answer_to_the_commit_is_lost_the_record_tells_what_became_of_it(house: House) -> None:
    worker(house)
    done, again = (int(tasks.lose_the_answer.enqueue(7, committed).id) for committed in (True, False))
    assert wait_for_state(done, State.COMPLETED).fence == 1
    assert wait_for_state(again, State.COMPLETED).fence == 2
    assert [attempt.error_type for attempt in attempts(again)] == ["django.db.utils.OperationalError"]
    assert effects() == [(7, done, 1), (7, again, 2)]
    wait_for_state(tasks.enter.enqueue(8).id, State.COMPLETED)
    assert (job(done).fence, attempts(done)) == (1, [])


def test_a_local_run_has_nothing_to_complete() -> None:
    context = Context(job_id=0, fence=0, attempt=1)
    with context.complete_in_transaction({"any": "result"}):
        ran = True
    assert ran


@pytest.mark.requirement("B12", "N13")
def test_a_handler_that_goes_on_after_its_completion_is_left_alone(house: House) -> None:
    program = worker(house, GRACE_SECONDS=0.2)
    one = tasks.end_after.enqueue(7, "tidy").id
    house.wait_for_lines("tidies", 1)
    wait_for_state(one, State.COMPLETED)

    def beat() -> object:
        with connection.cursor() as cursor:
            cursor.execute("select heartbeat_at from shiftboss_worker")
            return cursor.fetchone()

    for _ in range(3):  # the first may have been under way
        last = beat()
        wait_for(lambda last=last: beat() != last, seconds=20)
    (house.folder / "tidy").touch()
    house.wait_for_lines("tidied", 1)
    assert not program.says("job.lease_lost")
    assert not program.says("executor.tainted")
