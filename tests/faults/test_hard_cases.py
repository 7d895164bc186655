"""What once stopped a worker, or could hang a job for ever."""

import dataclasses
import os
import shutil
import subprocess
import sys

import pytest
from django.db import connection, transaction

from shiftboss.queue.authority import System
from shiftboss.queue.launch import keeper_config
from shiftboss.queue.models import Worker
from shiftboss.queue.states import State
from shiftboss.queue.store.enqueue import NewJob, enqueue
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, copies_of, enqueued_before, job, totals, wait_for_state
from tests.waiting import wait_for


@pytest.mark.requirement("L13")
def test_a_queue_with_a_backlog_does_not_starve_the_pools_other_queues(house: House) -> None:
    with transaction.atomic():
        copies_of(tasks.nap.using(queue_name="heavy").enqueue(0, seconds=0.002).id, 5_000)
    light = [tasks.note.using(queue_name="light").enqueue(number).id for number in range(10)]
    house.worker(threads=1, queues=("heavy", "light"))
    for one in light:
        wait_for_state(one, State.COMPLETED)
    assert totals()[State.AVAILABLE] > 0


@pytest.mark.requirement("R6")
def test_a_result_that_ends_its_encoder_fails_its_job_and_leaves_the_slot(house: House) -> None:
    house.worker(threads=1)
    failed = wait_for_state(tasks.trap.enqueue().id, State.RETRYABLE)
    assert (failed.error_code, failed.error_type) == ("executor_error", "KeyboardInterrupt")
    wait_for_state(tasks.note.enqueue("after").id, State.COMPLETED)


@pytest.mark.requirement("R7")
def test_wrong_arguments_of_a_coroutine_function_quarantine_too(house: House) -> None:
    house.worker()
    args = '{"args": [], "kwargs": {}}'
    held = wait_for_state(enqueued_before("tests.runtime.tasks.wait_for_nothing", args), State.QUARANTINED)
    assert held.quarantine_reason == "invalid_arguments"


@pytest.mark.requirement("R6", "N14")
def test_a_run_folder_that_goes_away_loses_nothing(house: House) -> None:
    worker = house.worker(LEASE_SECONDS=300, HEARTBEAT_SECONDS=1)
    house.maintainer()
    jobs = [tasks.nap.enqueue(number, seconds=1).id for number in range(2)]
    house.wait_for_lines("began", 2)
    shutil.rmtree(house.folder / "run")
    worker.executors()[0].kill()
    for one in jobs:
        wait_for_state(one, State.COMPLETED)


@pytest.mark.requirement("C2")
def test_executors_that_cannot_be_started_end_the_worker_with_a_reason(house: House) -> None:
    config = dataclasses.replace(
        keeper_config("default"),
        dsn=house.dsn,
        executor_argv=(str(house.folder / "no-such-python"),),
        run_folder=str(house.folder / "run"),
    )
    reader, writer = os.pipe()
    os.write(writer, config.to_json().encode())
    os.close(writer)
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "shiftboss.queue.runtime", str(reader)],
        pass_fds=(reader,),
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(reader)
    assert ended.returncode == 1
    assert ended.stderr.count("executor.not_started") == 5
    assert "executors end before they are ready" in ended.stderr


@pytest.mark.requirement("L1")
def test_an_import_that_takes_long_holds_up_nobody_else(house: House) -> None:
    house.worker()
    args = '{"args": ["late"], "kwargs": {}}'
    name = "tests.runtime.slow_import.late"
    new = NewJob(queue="default", task=name, args=args, failure_limit=5, loss_limit=3)
    late = run(enqueue(new, authority=System())).id
    wait_for((house.folder / "importing").exists, seconds=20)
    for number in range(3):
        wait_for_state(tasks.note.enqueue(number).id, State.COMPLETED)
    assert job(late).state is State.AVAILABLE
    (house.folder / "go").touch()
    wait_for_state(late, State.COMPLETED)


@pytest.mark.requirement("L30")
def test_many_large_results_are_all_stored(house: House) -> None:
    with transaction.atomic():
        first = tasks.big.enqueue(400_000).id
        with connection.cursor() as cursor:
            cursor.execute(
                "insert into shiftboss_job (queue, task, args, state, failure_limit, loss_limit)"
                " select queue, task, args, state, failure_limit, loss_limit"
                " from shiftboss_job, generate_series(1, 79) where id = %s",
                [first],
            )
    house.worker()
    wait_for(lambda: totals() == {State.COMPLETED: 80}, seconds=60)
    assert len(str(job(first).result)) == 400_002


@pytest.mark.requirement("P9")
def test_a_notification_that_nobody_understands_does_not_end_listening(house: House) -> None:
    house.worker(POLL_SECONDS=600)
    wait_for(lambda: Worker.objects.filter(idle=True).exists(), seconds=10)
    with connection.cursor() as cursor:
        cursor.execute("select pg_notify('shiftboss_available', '')")
        cursor.execute("select pg_notify('shiftboss_available', 'of another version')")
    wait_for_state(tasks.note.enqueue("woken").id, State.COMPLETED, seconds=10)


@pytest.mark.requirement("L30", "N14")
def test_heartbeats_go_on_while_the_loss_of_a_dead_executor_cannot_be_written(house: House) -> None:
    worker = house.worker(processes=2, threads=1)
    house.maintainer()
    jobs = [tasks.nap.enqueue(number, seconds=4).id for number in range(2)]
    house.wait_for_lines("began", 2)
    victim = worker.executors()[0].pid
    names = {line.pid: line.name for line in house.lines()}
    other = next(name for pid, name in names.items() if pid != victim)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("lock table shiftboss_attempt in share mode")
        os.kill(victim, 9)
        wait_for(lambda: house.wrote("ended")[other] == 1, seconds=20)
    wait_for(lambda: totals() == {State.COMPLETED: 2}, seconds=40)
    assert (job(jobs[int(other)]).fence, attempts(jobs[int(other)])) == (1, [])


@pytest.mark.requirement("N14", "L2")
def test_a_worker_whose_row_is_deleted_keeps_its_leases(house: House) -> None:
    house.worker()
    house.maintainer()
    long = tasks.nap.enqueue("long", seconds=3.5).id
    house.wait_for_lines("began", 1)
    before = job(long).worker_id
    with connection.cursor() as cursor:
        cursor.execute("delete from shiftboss_worker")
    wait_for_state(long, State.COMPLETED)
    assert (job(long).fence, attempts(long), job(long).worker_id) == (1, [], before)
    assert list(Worker.objects.values_list("id", flat=True)) == [before]
