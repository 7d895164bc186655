"""Runs that should end and do not hear: what they cost, and whom."""

import json
import signal

import psutil
import pytest
from django.db import connection

from shiftboss.queue.authority import System
from shiftboss.queue.runtime.ports import DRAIN, STOP
from shiftboss.queue.states import State
from shiftboss.queue.store import operate, read, workers
from shiftboss.queue.store.read import WorkerRow
from shiftboss.queue.store.statement import run
from tests.processes import runs
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, job, wait_for_state
from tests.waiting import wait_for

LONG = {"LEASE_SECONDS": 300, "HEARTBEAT_SECONDS": 1, "GRACE_SECONDS": 0.5}
"""Leases that outlive the test: what ends is ended by its keeper."""


def cancel(job_id: str) -> None:
    """Ask for the end of a job."""
    assert len(run(operate.cancel([int(job_id)], authority=System())).changed) == 1


def tainted() -> int:
    """As the worker says of itself."""
    [worker] = [row for row in run(read.workers(authority=System())) if row.state == "running"]
    return worker.tainted


def alive(worker_id: int) -> WorkerRow:
    """What this worker says of itself."""
    [worker] = [row for row in run(read.workers(authority=System())) if row.id == worker_id]
    return worker


def children_of(house: House) -> list[psutil.Process]:
    """The processes that `leave_children` has started."""
    house.wait_for_lines("child", 2)
    return [psutil.Process(int(pid)) for pid in house.wrote("child")]


def told(job_id: str) -> list[tuple[str, str | None]]:
    """How a job's attempts ended."""
    return [(attempt.outcome, attempt.error_code) for attempt in attempts(job_id)]


@pytest.mark.requirement("N13", "L16", "R5")
def test_a_deaf_job_with_an_executor_to_itself_ends_with_it_and_with_all_that_it_has_started(house: House) -> None:
    worker = house.worker(threads=1, **LONG)
    # The only shared slot is taken: that does not hold up jobs that do not want it.
    shared = tasks.pass_gate.enqueue("shared", gate="go").id
    house.wait_for_lines("began", 1)
    deaf = tasks.leave_children.enqueue(gate="never").id
    children = children_of(house)
    assert all(map(runs, children))
    cancel(deaf)
    ended = wait_for_state(deaf, State.CANCELLED, seconds=90)
    assert (ended.cancel_cause, ended.failures, ended.losses, ended.fence) == ("user", 0, 0, 1)
    assert told(deaf) == [("cancelled", "user")]
    assert not any(map(runs, children))
    # Another executor serves the next ones, one after the other.
    results = [wait_for_state(tasks.tell_process.enqueue().id, State.COMPLETED, seconds=90) for _ in range(2)]
    [first, thread], [second, _] = [json.loads(str(done.result)) for done in results]
    assert first == second not in {line.pid for line in house.lines()}
    assert thread != "loop"
    assert job(shared).state is State.RUNNING
    assert len(worker.executors()) == 2


@pytest.mark.requirement("N13", "R5")
def test_neighbours_of_a_deaf_job_finish_unharmed_while_a_replacement_takes_the_next_jobs(house: House) -> None:
    worker = house.worker(threads=2, **LONG)
    deaf = tasks.pass_gate.enqueue("deaf", gate="never").id
    neighbour = tasks.pass_gate.enqueue("neighbour", gate="go").id
    house.wait_for_lines("began", 2)
    [first] = worker.executors()
    cancel(deaf)
    wait_for(lambda: tainted() == 1, seconds=90)
    for number in range(4):
        tasks.note.enqueue(number)
    house.wait_for_lines("ran", 4, seconds=90)
    assert first.pid not in {line.pid for line in house.lines() if line.kind == "ran"}
    # Leased as long as its process lives.
    assert [job(one).state for one in (deaf, neighbour)] == [State.RUNNING] * 2
    assert runs(first)
    (house.folder / "go").touch()
    done = wait_for_state(neighbour, State.COMPLETED)
    assert (done.fence, attempts(neighbour)) == (1, [])
    assert wait_for_state(deaf, State.CANCELLED).cancel_cause == "user"
    assert (told(deaf), runs(first)) == ([("cancelled", "user")], False)
    wait_for(lambda: tainted() == 0, seconds=90)
    assert house.wrote("began")["deaf"] == 1


@pytest.mark.requirement("N13", "R5", "L16")
def test_an_attempt_that_outlives_its_timeout_fails_and_its_retry_never_runs_beside_it(house: House) -> None:
    house.worker(threads=2, **LONG)
    deaf = tasks.tick.using(timeout=0.5).enqueue("deaf").id
    alone = tasks.tick.using(timeout=0.5, isolation="process").enqueue("alone").id
    polite = tasks.polite.using(timeout=0.3, max_attempts=1).enqueue("polite").id
    for one, count in ((deaf, 2), (alone, 2), (polite, 1)):
        held = wait_for_state(one, State.QUARANTINED, seconds=60)
        assert (held.quarantine_reason, held.failures, held.losses) == ("failures_exhausted", count, 0)
        assert told(one) == [("failed", "timeout")] * count
    for name in ("deaf", "alone"):
        mine = [line for line in house.lines() if line.name == name]
        [first, second] = [line for line in mine if line.kind == "began"]
        last = max(line.at for line in mine if line.pid == first.pid)
        assert first.pid != second.pid
        assert last < second.at


@pytest.mark.requirement("N13", "L7", "R6")
def test_a_handler_that_lets_nobody_else_go_on_is_ended_and_its_neighbours_are_not_blamed(house: House) -> None:
    house.worker(threads=2, **LONG)
    neighbour = tasks.pass_gate.enqueue("neighbour", gate="go").id
    house.wait_for_lines("began", 1)
    hog = tasks.hog.using(timeout=0.5, max_attempts=1).enqueue(600.0).id
    assert wait_for_state(hog, State.QUARANTINED, seconds=60).quarantine_reason == "failures_exhausted"
    assert told(hog) == [("failed", "timeout")]
    (house.folder / "go").touch()
    done = wait_for_state(neighbour, State.COMPLETED, seconds=90)
    assert (done.losses, done.failures) == (0, 0)
    assert told(neighbour) == [("lost", "executor_died")]


@pytest.mark.requirement("N13", "R5", "L26")
def test_a_worker_with_more_deaf_jobs_than_it_can_replace_executors_for_gives_up_and_says_so(house: House) -> None:
    worker = house.worker(threads=2, DRAIN_SECONDS=1, **LONG)
    jobs = []
    for number in range(2):
        deaf = tasks.pass_gate.enqueue(f"deaf-{number}", gate="never").id
        neighbour = tasks.pass_gate.enqueue(f"neighbour-{number}", gate="never").id
        house.wait_for_lines("began", 2 * number + 2, seconds=90)
        cancel(deaf)
        jobs.append((deaf, neighbour))
        if not number:
            wait_for(lambda: worker.says("executor.tainted"), seconds=90)
    assert worker.process.wait(60) == 1
    assert worker.says("executor.too_many_tainted")
    for deaf, neighbour in jobs:
        assert (job(deaf).state, told(deaf)) == (State.CANCELLED, [("cancelled", "user")])
        assert (job(neighbour).state, told(neighbour)) == (State.AVAILABLE, [("released", "shutdown")])


@pytest.mark.requirement("N14", "L30")
def test_what_the_handlers_of_a_killed_keeper_have_started_is_ended_by_its_sentinel_or_the_next_keeper(
    house: House,
) -> None:
    first = house.worker(threads=1, **LONG)
    tasks.leave_children.enqueue(gate="never")
    child, _ = children_of(house)
    first.kill(signal.SIGKILL)
    wait_for(lambda: not runs(child), seconds=20)
    second = house.worker(threads=1, **LONG)
    tasks.leave_children.enqueue(gate="never")
    house.wait_for_lines("child", 4, seconds=90)
    child = psutil.Process(int([line.name for line in house.lines() if line.kind == "child"][2]))
    [sentinel] = second.children("sentinel")
    second.kill(signal.SIGSTOP)  # it starts no other one
    sentinel.kill()
    wait_for(lambda: not runs(sentinel), seconds=10)
    second.kill(signal.SIGKILL)
    wait_for(lambda: second.process.poll() is not None, seconds=10)
    assert runs(child)
    house.worker(threads=1, **LONG)
    assert not runs(child)


@pytest.mark.requirement("L26", "N12")
def test_a_worker_drains_and_stops_by_orders_too(house: House) -> None:
    worker = house.worker(DRAIN_SECONDS=600, **LONG)
    deaf = tasks.pass_gate.enqueue("deaf", gate="never").id
    house.wait_for_lines("began", 1)
    number = job(deaf).worker_id
    assert number is not None
    with connection.cursor() as cursor:  # as the verb does, but for the notification: it was lost
        cursor.execute("update shiftboss_worker set ordered = %s where id = %s", [DRAIN, number])
    wait_for(lambda: worker.says("keeper.draining"), seconds=20)
    # At the next heartbeats not once more: its runs may finish.
    wait_for(lambda: alive(number).state == "draining", seconds=20)
    assert job(deaf).state is State.RUNNING
    worker_told = alive(number)
    assert worker_told.memory_kb is not None
    assert worker_told.memory_kb > 20_000  # a keeper and its executors, each of them an interpreter
    assert worker_told.cpu_ms
    was = run(workers.order(number, authority=System(), word=STOP, by="kim"))
    assert was is not None
    assert was.given
    assert worker.process.wait(30) == 0
    assert (job(deaf).state, told(deaf)) == (State.AVAILABLE, [("released", "shutdown")])


@pytest.mark.requirement("L16", "N13")
def test_a_worker_without_executors_for_single_jobs_leaves_those_to_others(house: House) -> None:
    pool = {"processes": 1, "threads": 2, "queues": ("default",), "isolated": 0}
    house.worker(POOLS={"default": pool}, **LONG)
    alone = tasks.pass_gate_alone.enqueue("alone", gate="go").id
    # Its task has become one that wants a process only after this one was enqueued.
    other = tasks.note.using(isolation="process").enqueue("other").id
    tasks.nap.enqueue("shared", seconds=0)
    house.wait_for_lines("ended", 1)
    assert job(alone).fence == 0
    wait_for(lambda: told(other), seconds=20)
    assert told(other)[0] == ("released", "task_not_here")
