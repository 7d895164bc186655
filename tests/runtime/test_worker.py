"""A worker and its handlers: what runs, what fails, what is known."""

import json

import pytest
from django.db import transaction

from shiftboss.queue.states import State
from tests.runtime import elsewhere, tasks
from tests.runtime.programs import House, attempts, enqueued_before, job, totals, wait_for_state
from tests.waiting import wait_for


@pytest.mark.requirement("C1", "C2", "C8", "L1")
def test_jobs_enqueued_with_djangos_api_run_and_their_results_come_back(house: House) -> None:
    house.worker()
    results = [tasks.nap.enqueue(number, seconds=0) for number in range(20)]
    wait_for(lambda: totals()[State.COMPLETED] == 20, seconds=20)
    for number, result in enumerate(results):
        result.refresh()
        assert (result.status, result.return_value) == ("SUCCESSFUL", number)


@pytest.mark.requirement("L16")
def test_a_handler_gets_its_own_run_as_context(house: House) -> None:
    house.worker()
    result = tasks.look.enqueue()
    wait_for_state(result.id, State.COMPLETED)
    result.refresh()
    assert result.return_value == {"job": int(result.id), "fence": 1, "attempt": 1, "args": []}


@pytest.mark.requirement("C8")
def test_a_coroutine_function_runs_too(house: House) -> None:
    house.worker()
    assert wait_for_state(tasks.wait_for_nothing.enqueue("x").id, State.COMPLETED).result == '"x"'


@pytest.mark.requirement("L29")
def test_a_job_that_fails_at_every_attempt_is_quarantined_with_its_tracebacks(house: House) -> None:
    house.worker()
    house.maintainer()
    job_id = tasks.fail.enqueue("a NUL \x01 and more").id
    held = wait_for_state(job_id, State.QUARANTINED)
    assert (held.quarantine_reason, held.failures, held.error_type) == ("failures_exhausted", 2, "ValueError")
    first, second = attempts(job_id)
    assert first.fence < second.fence
    assert "raise ValueError(text)" in str(second.traceback)
    assert "executor.py" not in str(second.traceback)


@pytest.mark.requirement("L29")
def test_text_that_postgresql_refuses_does_not_hide_an_error(house: House) -> None:
    house.worker()
    house.maintainer()
    # chr(…) is made by the handler's own exception text, so it has not crossed jsonb.
    job_id = tasks.crashing_text.enqueue().id
    held = wait_for_state(job_id, State.QUARANTINED)
    assert held.error_message == "a NUL \\x00 and a surrogate \\ud800"


@pytest.mark.requirement("R7")
def test_arguments_that_do_not_fit_the_task_quarantine_the_job_at_once(house: House) -> None:
    house.worker()
    args = '{"args": ["x", "y"], "kwargs": {"z": 1}}'
    held = wait_for_state(enqueued_before("tests.runtime.tasks.note", args), State.QUARANTINED)
    assert held.quarantine_reason == "invalid_arguments"
    assert "too many positional arguments" in str(held.error_message)


@pytest.mark.requirement("R7")
def test_a_result_that_json_cannot_hold_is_a_failure_that_says_so(house: House) -> None:
    house.worker()
    job_id = tasks.result_that_cannot_be_stored.enqueue().id
    failed = wait_for_state(job_id, State.RETRYABLE)
    assert failed.error_code == "result_not_storable"
    assert "nan" in str(failed.error_message)


@pytest.mark.requirement("R6")
def test_a_handler_cannot_end_the_executor_by_sys_exit(house: House) -> None:
    worker = house.worker()
    [executor] = worker.executors()
    failed = wait_for_state(tasks.leave.enqueue(3).id, State.RETRYABLE)
    assert failed.error_type == "SystemExit"
    assert [p.pid for p in worker.executors()] == [executor.pid]


@pytest.mark.requirement("L1")
def test_an_unknown_task_is_left_alone_and_quarantined_only_when_nobody_has_known_it_for_long(
    house: House,
) -> None:
    house.worker(UNKNOWN_TASK_SECONDS=2)
    known = tasks.note.using(queue_name="default").enqueue("known")
    unknown = _enqueued_under_another_name("tests.runtime.tasks.gone_in_this_version")
    wait_for_state(known.id, State.COMPLETED)
    assert job(unknown).state is State.AVAILABLE
    assert job(unknown).fence == 0
    house.maintainer(UNKNOWN_TASK_SECONDS=2)
    held = wait_for_state(unknown, State.QUARANTINED)
    assert held.quarantine_reason == "unknown_task"
    assert "gone_in_this_version" in str(held.error_message)


def _enqueued_under_another_name(name: str) -> int:
    from shiftboss.queue.authority import System
    from shiftboss.queue.store.enqueue import NewJob, enqueue
    from shiftboss.queue.store.statement import run

    new = NewJob(
        queue="default", task=name, args=json.dumps({"args": [], "kwargs": {}}), failure_limit=5, loss_limit=3
    )
    return run(enqueue(new, authority=System())).id


@pytest.mark.requirement("L1")
def test_a_task_outside_of_any_tasks_module_is_found_when_a_job_asks_for_it(house: House) -> None:
    house.worker()
    wait_for_state(elsewhere.hidden.enqueue("found").id, State.COMPLETED)
    assert house.wrote("ran") == {"found": 1}


@pytest.mark.requirement("P9")
def test_an_idle_worker_is_woken_by_the_enqueueing_transaction_and_not_by_its_poll(house: House) -> None:
    house.worker(POLL_SECONDS=600)
    wait_for(lambda: _idle(), seconds=10)
    with transaction.atomic():
        job_id = tasks.note.enqueue("woken").id
    wait_for_state(job_id, State.COMPLETED, seconds=10)


def _idle() -> bool:
    from shiftboss.queue.models import Worker

    return Worker.objects.filter(idle=True).exists()


@pytest.mark.requirement("P5")
def test_a_deferred_job_runs_when_it_is_due_and_a_higher_priority_goes_first(house: House) -> None:
    from datetime import timedelta

    from django.utils import timezone

    soon = timezone.now() + timedelta(seconds=1)
    later = tasks.note.using(run_after=soon, priority=-100).enqueue("later")
    assert job(later.id).state is State.SCHEDULED
    for priority in (-5, 7, 0):
        tasks.note.using(priority=priority).enqueue(priority)
    house.worker(threads=1)
    house.maintainer()
    house.wait_for_lines("ran", 4)
    assert [line.name for line in house.lines()] == ["7", "0", "-5", "later"]


@pytest.mark.requirement("L1")
def test_a_worker_whose_tasks_cannot_be_imported_gives_up_with_exit_code_1(house: House) -> None:
    worker = house.worker(apps="tests.runtime,tests.runtime.broken", wait=False)
    assert worker.process.wait(60) == 1
    assert "executors end before they are ready" in worker.log.read_text()
