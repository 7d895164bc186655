"""Jobs run inside of a test."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import TestCase
from django.utils import timezone

from shiftboss import System
from shiftboss.queue.clients.memory import MemoryStore
from shiftboss.queue.jobs import NewJob
from shiftboss.queue.states import State
from shiftboss.queue.store import operate, queues, read
from shiftboss.queue.store.statement import run
from shiftboss.testing import enqueued, run_jobs
from tests.testing import tasks

pytestmark = pytest.mark.requirement("P10")


def outcomes(**how: Any) -> list[tuple[str, str]]:
    """How each run ended and where its job stands."""
    return [(one.outcome, str(one.state)) for one in run_jobs(**how)]


class InsideOfATestCase(TestCase):
    """The test's transaction is rolled back at its end, and nobody may close its connection."""

    @pytest.mark.requirement("C8")
    def test_a_job_runs_on_the_connection_of_the_test(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            before = cursor.fetchone()
        result = tasks.make_group.enqueue("a")
        [done] = run_jobs()
        assert (done.job_id, done.task, done.queue) == (
            int(result.id),
            "tests.testing.tasks.make_group",
            "default",
        )
        assert (done.attempt, done.outcome, done.state) == (1, "completed", State.COMPLETED)
        assert Group.objects.get(name="a").pk == done.result
        result.refresh()
        assert (result.status, result.return_value) == ("SUCCESSFUL", done.result)
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            assert cursor.fetchone() == before
        assert connection.in_atomic_block

    def test_nothing_is_left_of_the_test_before(self) -> None:
        assert (Group.objects.count(), enqueued(), run_jobs()) == (0, [], [])

    def test_a_coroutine_uses_the_connection_of_the_test_too(self) -> None:
        Group.objects.create(name="by the test")
        tasks.make_group_in_a_coroutine.enqueue("b")
        [done] = run_jobs(reraise=True)
        assert Group.objects.get(name="b").pk == done.result

    def test_a_statement_that_fails_does_not_end_the_test(self) -> None:
        Group.objects.create(name="by the test")
        tasks.break_the_transaction.enqueue("lost")
        tasks.make_group.enqueue("after it")
        failed, done = run_jobs()
        assert (failed.outcome, failed.state, type(failed.error).__name__) == (
            "failed",
            State.RETRYABLE,
            "DataError",
        )
        assert done.state == State.COMPLETED
        assert sorted(Group.objects.values_list("name", flat=True)) == ["after it", "by the test"]

    @pytest.mark.requirement("N4")
    def test_the_worker_command_refuses_and_names_the_helper(self) -> None:
        for command in ("shiftboss_worker", "shiftboss_maintainer"):
            with pytest.raises(CommandError, match=r"shiftboss\.testing\.run_jobs"):
                call_command(command)
        assert connection.in_atomic_block
        assert connection.is_usable()


pytest_db = pytest.mark.django_db


@pytest_db
def test_what_a_handler_raises_is_told_or_raised_again() -> None:
    tasks.fail.enqueue("x")
    [failed] = run_jobs()
    assert isinstance(failed.error, ValueError)
    assert (failed.outcome, failed.state) == ("failed", State.RETRYABLE)
    assert Group.objects.filter(name="x").exists()  # there was no atomic() around it
    tasks.fail.enqueue("y")
    with pytest.raises(ValueError, match="y"):
        run_jobs(reraise=True)
    [attempt] = run(read.attempts(authority=System(), job_id=failed.job_id))
    assert (attempt.outcome, attempt.error_type) == ("failed", "ValueError")
    assert "inline.py" not in str(attempt.traceback)


@pytest_db
@pytest.mark.requirement("L29")
def test_retries_and_what_is_not_due_wait_unless_they_are_asked_for() -> None:
    tasks.fail.enqueue("x")
    later = tasks.make_group.using(run_after=timezone.now() + timedelta(days=1)).enqueue("tomorrow")
    assert outcomes() == [("failed", "retryable")]
    assert outcomes() == []
    found = run_jobs(scheduled=True)
    assert [(one.attempt, str(one.state)) for one in found if one.job_id != int(later.id)] == [
        (2, "retryable"),
        (3, "quarantined"),
    ]
    assert [str(one.state) for one in found if one.job_id == int(later.id)] == ["completed"]


@pytest_db
@pytest.mark.requirement("L16")
def test_the_context_works_as_in_a_worker() -> None:
    snoozed = tasks.use_context.enqueue("snooze")
    discarded = tasks.use_context.enqueue("discard")
    completed = tasks.use_context.enqueue("complete")
    again = tasks.use_context.enqueue("fail once")
    within = tasks.use_context.enqueue("complete within")
    plain = tasks.use_context.enqueue("plain")
    found = {one.job_id: one for one in run_jobs()}

    def of(result: Any) -> tuple[str, str, Any]:
        one = found[int(result.id)]
        return one.outcome, str(one.state), one.result

    assert of(snoozed) == ("snoozed", "scheduled", None)
    assert of(discarded) == ("discarded", "discarded", None)
    assert of(completed) == ("completed", "completed", {"by": "itself"})
    assert of(plain) == ("completed", "completed", [1, 1, None, None])
    assert of(again)[:2] == of(within)[:2] == ("failed", "retryable")
    assert type(found[int(within.id)].error).__name__ == "InTransaction"
    assert Group.objects.filter(name="complete").exists()
    [second] = [one for one in run_jobs(scheduled=True, limit=6) if one.job_id == int(again.id)]
    assert second.result == [2, 2, {"at": 7}, None]
    [event] = run(read.events(authority=System(), job_id=int(plain.id)))
    assert "used" in event.data


@pytest_db
def test_the_context_of_a_coroutine_works_too() -> None:
    tasks.context_in_a_coroutine.enqueue()
    [done] = run_jobs(reraise=True)
    assert done.result == 3


@pytest_db
def test_jobs_that_jobs_enqueue_run_too_unless_only_those_that_wait_are_meant() -> None:
    tasks.enqueue_another.enqueue(3)
    assert [one.result for one in run_jobs()] == [3, 2, 1, 0]
    tasks.enqueue_another.enqueue(2)
    tasks.send.enqueue("kim")
    assert sorted(str(one.result) for one in run_jobs(until_idle=False)) == ["2", "kim"]
    assert [one.args for one in enqueued()] == [(1,)]
    assert [one.result for one in run_jobs(limit=1)] == [1]
    assert len(run_jobs()) == 1


@pytest_db
def test_one_queue_may_be_meant_and_pauses_hold() -> None:
    tasks.send.enqueue("kim")
    tasks.make_group.enqueue("a")
    assert [one.task for one in run_jobs(queue="mail")] == ["tests.testing.tasks.send"]
    run(queues.pause("default", authority=System(), by="kim", reason="not now"))
    assert run_jobs() == []
    run(queues.resume("default", authority=System()))
    assert len(run_jobs()) == 1


@pytest_db
@pytest.mark.requirement("R7")
def test_arguments_that_do_not_fit_are_quarantined_and_unknown_tasks_left_alone() -> None:
    tasks.make_group.enqueue("a")
    with connection.cursor() as cursor:  # it was enqueued by another version of the project
        cursor.execute("""update shiftboss_job set args = '{"args": ["a", "b", "c"], "kwargs": {}}'""")
    assert outcomes() == [("quarantined", "quarantined")]
    tasks.make_group.enqueue("gone")
    with connection.cursor() as cursor:
        cursor.execute("update shiftboss_job set task = 'tests.testing.tasks.gone' where state = 'available'")
    assert run_jobs() == []
    assert [job.task for job in enqueued()] == ["tests.testing.tasks.gone"]


@pytest_db
@pytest.mark.requirement("R6")
def test_a_handler_cannot_end_the_tests_process_and_a_cancelled_job_does_not_run() -> None:
    tasks.leave.enqueue()
    cancelled = tasks.make_group.enqueue("never")
    run(operate.cancel([int(cancelled.id)], authority=System()))
    [left] = run_jobs()
    assert isinstance(left.error, SystemExit)


@pytest_db
def test_a_job_that_enqueues_itself_for_ever_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shiftboss.testing.inline.MOST_RUNS", 5)
    tasks.enqueue_another.enqueue(20)
    with pytest.raises(RuntimeError, match="enqueue_another"):
        run_jobs()


@pytest.mark.django_db(transaction=True)
def test_it_works_outside_of_a_transaction_too() -> None:
    tasks.make_group.enqueue("a")
    tasks.break_the_transaction.enqueue("b")
    assert outcomes() == [("completed", "completed"), ("failed", "retryable")]
    assert Group.objects.filter(name="b").exists()  # as in a worker: it was committed by itself


def test_a_store_in_memory_needs_no_database() -> None:
    store = MemoryStore()
    new = NewJob(
        queue="mail",
        task=tasks.send.module_path,
        args='{"args": ["kim"], "kwargs": {}}',
        failure_limit=1,
        loss_limit=1,
    )
    store.enqueue(new, authority=System())
    [done] = run_jobs(store=store)
    assert (done.outcome, done.result, done.state) == ("completed", "kim", State.COMPLETED)
    assert run_jobs(store=store) == []
