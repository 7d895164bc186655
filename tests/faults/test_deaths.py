"""Processes that die: what is lost, what is run again, who is blamed."""

import os
import signal

import pytest

from shiftboss.queue.states import State
from tests.processes import runs
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, job, totals, wait_for_state
from tests.waiting import wait_for


@pytest.mark.requirement("L2", "L30", "N14")
def test_every_job_of_a_killed_keeper_ends_once_and_soon_after_its_lease(house: House) -> None:
    """Acceptance: SIGKILL of a keeper while 100 handlers are running."""
    first = house.worker(threads=100)
    jobs = [tasks.nap.enqueue(number, seconds=1.5).id for number in range(100)]
    house.wait_for_lines("began", 100)
    executors = first.executors()
    first.kill(signal.SIGKILL)
    house.worker(threads=100, wait=False)
    house.maintainer()
    wait_for(lambda: not any(runs(executor) for executor in executors), seconds=20)
    wait_for(
        lambda: all(attempts(one) or job(one).state is State.COMPLETED for one in jobs),
        seconds=30,
    )
    wait_for(lambda: totals() == {State.COMPLETED: 100}, seconds=20)
    for one in jobs:
        assert len(attempts(one)) == job(one).losses == job(one).fence - 1
        assert {attempt.outcome for attempt in attempts(one)} <= {"lost"}


@pytest.mark.requirement("R6", "L29")
def test_a_killed_executor_costs_its_own_jobs_at_once_and_blames_none_of_them(house: House) -> None:
    """Acceptance: SIGKILL of an executor with 8 threads; the other executor's jobs go on untouched."""
    # A lease that outlives the test: what happens at once cannot be the reaper's work.
    worker = house.worker(processes=2, threads=8, LEASE_SECONDS=300, HEARTBEAT_SECONDS=1)
    house.maintainer()
    jobs = [tasks.nap.enqueue(number, seconds=1.0).id for number in range(16)]
    house.wait_for_lines("began", 16)
    victim = worker.executors()[0].pid
    mine = {line.name for line in house.lines() if line.pid == victim}
    os.kill(victim, signal.SIGKILL)
    hit = [one for number, one in enumerate(jobs) if str(number) in mine]
    assert len(hit) == 8
    wait_for(lambda: all(attempts(one) for one in hit), seconds=20)
    wait_for(lambda: totals() == {State.COMPLETED: 16}, seconds=60)
    for number, one in enumerate(jobs):
        if str(number) in mine:
            [attempt] = attempts(one)
            assert (attempt.outcome, attempt.error_code) == ("lost", "executor_died")
            assert '"signal": 9' in attempt.evidence
            assert job(one).losses == 0
        else:
            assert (attempts(one), job(one).fence) == ([], 1)


@pytest.mark.requirement("R6", "L30")
def test_a_running_job_of_a_dead_executor_is_told_from_those_that_had_not_started(house: House) -> None:
    house.worker(threads=1, LEASE_SECONDS=300, HEARTBEAT_SECONDS=1)
    house.maintainer()
    # Fast jobs first, so that the worker leases ahead of its one slot.
    for number in range(50):
        tasks.note.enqueue(f"warm-{number}")
    house.wait_for_lines("ran", 50)
    poison = tasks.crash.enqueue("once", number=int(signal.SIGKILL)).id
    for number in range(50):
        tasks.note.enqueue(f"later-{number}")
    wait_for_state(poison, State.QUARANTINED, seconds=60)
    house.wait_for_lines("ran", 100)
    assert set(house.wrote("ran").values()) == {1}


@pytest.mark.requirement("L7", "L2", "N14")
def test_one_call_that_holds_the_gil_for_two_leases_keeps_its_lease(house: House) -> None:
    """Acceptance: at least 6 renewals are seen in the row meanwhile, one attempt, completed."""
    from shiftboss.queue.models import Job

    house.worker(LEASE_SECONDS=3, HEARTBEAT_SECONDS=0.5)
    house.maintainer()
    job_id = tasks.hog.enqueue(6.5).id
    house.wait_for_lines("began", 1)
    expiries: set[object] = set()

    def finished() -> bool:
        expiries.update(Job.objects.filter(pk=job_id, state="running").values_list("lease_expires_at", flat=True))
        return job(job_id).state is State.COMPLETED

    wait_for(finished, seconds=90)
    assert float(str(job(job_id).result)) >= 6
    assert len(expiries) - 1 >= 6
    assert (job(job_id).fence, attempts(job_id)) == (1, [])


@pytest.mark.requirement("L30", "L9")
def test_connections_that_the_server_ends_cost_nothing_but_time(house: House) -> None:
    from django.db import connection

    house.worker()
    house.maintainer()
    jobs = [tasks.nap.enqueue(number, seconds=0.2).id for number in range(80)]
    for threshold in (10, 30, 50):
        house.wait_for_lines("ended", threshold)
        with connection.cursor() as cursor:
            cursor.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'shiftboss%'"
            )
    wait_for(lambda: totals() == {State.COMPLETED: 80}, seconds=60)
    assert set(house.wrote("ended").values()) == {1}
    assert all(attempts(one) == [] for one in jobs)


@pytest.mark.requirement("L26", "N12", "N11")
def test_a_drain_lets_jobs_finish_sets_their_tokens_and_releases_the_rest_unharmed(house: House) -> None:
    worker = house.worker(DRAIN_SECONDS=2, LEASE_SECONDS=60, HEARTBEAT_SECONDS=1)
    listening = tasks.listen.enqueue("listens").id
    short = tasks.nap.enqueue("short", seconds=1.0).id
    deaf = tasks.nap.enqueue("deaf", seconds=600).id
    house.wait_for_lines("began", 3)
    assert worker.stop() == 0
    assert job(listening).result == '"shutdown"'
    assert job(short).state is State.COMPLETED
    interrupted = job(deaf)
    assert (interrupted.state, interrupted.failures, interrupted.losses) == (State.AVAILABLE, 0, 0)
    assert [attempt.outcome for attempt in attempts(deaf)] == ["released"]
    assert worker.executors() == [] if worker.process.poll() is None else True
    again = house.worker()
    wait_for(lambda: house.wrote("began")["deaf"] == 2, seconds=10)
    assert again.process.poll() is None


@pytest.mark.requirement("L26", "N11")
def test_a_handler_that_ends_because_it_was_asked_to_is_released_and_not_failed(house: House) -> None:
    worker = house.worker(LEASE_SECONDS=60, HEARTBEAT_SECONDS=1)
    polite = tasks.polite.enqueue("polite").id
    house.wait_for_lines("began", 1)
    assert worker.stop() == 0
    assert (job(polite).state, job(polite).failures) == (State.AVAILABLE, 0)
    assert [(attempt.outcome, attempt.error_code) for attempt in attempts(polite)] == [("released", "shutdown")]


@pytest.mark.requirement("C2", "L26")
def test_a_worker_stopped_while_its_executors_start_exits_0(house: House) -> None:
    worker = house.worker(processes=2, wait=False, apps="tests.runtime,tests.runtime.broken")
    wait_for(lambda: worker.says("executor.died"), seconds=90)
    assert worker.stop() == 0


@pytest.mark.requirement("L26", "N12")
def test_a_second_sigterm_shortens_the_drain(house: House) -> None:
    worker = house.worker(DRAIN_SECONDS=600, LEASE_SECONDS=60, HEARTBEAT_SECONDS=1)
    deaf = tasks.nap.enqueue("deaf", seconds=600).id
    house.wait_for_lines("began", 1)
    worker.kill(signal.SIGTERM)
    wait_for(lambda: worker.says("keeper.draining"), seconds=10)
    assert job(deaf).state is State.RUNNING
    worker.kill(signal.SIGTERM)
    assert worker.process.wait(20) == 0
    assert job(deaf).state is State.AVAILABLE


@pytest.mark.requirement("L26", "N14")
def test_a_sentinel_that_is_killed_is_replaced(house: House) -> None:
    worker = house.worker()
    [sentinel] = worker.children("sentinel")
    sentinel.kill()
    wait_for(lambda: [p for p in worker.children("sentinel") if p.pid != sentinel.pid], seconds=10)


@pytest.mark.requirement("N14")
def test_an_executor_that_outlived_its_keeper_is_ended_by_the_next_keeper(house: House) -> None:
    import json
    import subprocess
    import sys

    from shiftboss.queue.runtime.leftovers import start_time

    outlived = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        notes = house.folder / "run" / "keeper-default-999999999.json"
        notes.parent.mkdir()
        keeper = {"pid": 999999999, "started": 1}
        # The bystander has the pid of an executor of old, but not its start time.
        executors = [[outlived.pid, start_time(outlived.pid)], [bystander.pid, 1]]
        notes.write_text(json.dumps({"keeper": keeper, "executors": executors}))
        house.worker()
        assert outlived.wait(10) == -signal.SIGKILL
        assert bystander.poll() is None
        assert not notes.exists()
    finally:
        outlived.kill()
        bystander.kill()
        outlived.wait()
        bystander.wait()
