"""Coroutine jobs: one loop in an executor, as many at once as it has slots."""

import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import operate
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, job, totals, wait_for_state
from tests.waiting import wait_for


@pytest.mark.requirement("C8", "L16")
def test_200_coroutines_run_at_once_in_one_executor_each_with_its_own_context(house: House) -> None:
    house.worker(threads=200)
    results = {str(number): tasks.meet.enqueue(str(number), 200) for number in range(200)}
    wait_for(lambda: totals() == {State.COMPLETED: 200}, seconds=30)
    for name, result in results.items():
        result.refresh()
        assert result.return_value == [int(result.id), None, "", name]


@pytest.mark.requirement("R6")
def test_whatever_a_coroutine_does_it_has_one_outcome_and_the_loop_goes_on(house: House) -> None:
    worker = house.worker(threads=2)
    [executor] = worker.executors()
    ends = {
        "exit": "SystemExit",
        "exit in a child": "SystemExit",
        "run a loop": "RuntimeError",
        "raise in finally": "LookupError",
        "swallow a cancellation": None,
        "cancel itself": None,
        "cancel itself and wait": "asyncio.exceptions.CancelledError",
        "never wait": None,
        "stop the loop": None,
        "close the loop": "RuntimeError",
        "cancel all": "asyncio.exceptions.CancelledError",
    }
    jobs = {how: tasks.misbehave.enqueue(how).id for how in ends}
    # One that is cancelled by another before its first step is given back.
    for how, error_type in ends.items():
        ended = wait_for_state(jobs[how], State.COMPLETED, State.QUARANTINED)
        innocent = how != "cancel all" and ended.error_type == "asyncio.exceptions.CancelledError"
        assert ended.error_type == error_type or innocent, how
        assert len([a for a in attempts(jobs[how]) if a.outcome == "failed"]) == (ended.state is State.QUARANTINED)
        assert ended.losses == 0
    assert wait_for_state(tasks.wait_for_nothing.enqueue("after").id, State.COMPLETED).result == '"after"'
    assert [p.pid for p in worker.executors()] == [executor.pid]


@pytest.mark.requirement("L7")
def test_a_coroutine_that_blocks_the_loop_delays_coroutines_only(house: House) -> None:
    house.worker(threads=3)
    blocking = tasks.block_loop.enqueue(gate="go").id
    house.wait_for_lines("began", 1)
    waiting = tasks.wait_for_nothing.enqueue("waits").id
    wait_for_state(waiting, State.RUNNING)
    wait_for_state(tasks.note.enqueue("in a thread").id, State.COMPLETED)
    wait_for_state(tasks.wait_in_a_thread.enqueue().id, State.COMPLETED)
    # Leased, in its slot, and not begun: it can be taken back unrun.
    run(operate.cancel([int(waiting)], authority=System()))
    assert wait_for_state(waiting, State.CANCELLED).fence == 1
    assert job(blocking).state is State.RUNNING
    (house.folder / "go").touch()
    wait_for_state(blocking, State.COMPLETED)
    wait_for_state(tasks.wait_for_nothing.enqueue("after").id, State.COMPLETED)
    assert (job(blocking).fence, attempts(blocking)) == (1, [])


@pytest.mark.requirement("L26", "N11", "N12")
def test_a_stopping_worker_waits_for_coroutines_and_leaves_none_running(house: House) -> None:
    worker = house.worker(threads=5, DRAIN_SECONDS=1.5, LEASE_SECONDS=60, HEARTBEAT_SECONDS=1)
    listening = tasks.listen_in_loop.enqueue("listens").id
    polite = tasks.polite_in_loop.enqueue("polite").id
    ending = tasks.pass_gate_in_loop.enqueue("ends", gate="drain").id
    deaf = [tasks.pass_gate_in_loop.enqueue(name, gate="never").id for name in ("deaf", "deafer")]
    house.wait_for_lines("began", 5)
    worker.kill(15)
    wait_for(lambda: worker.says("keeper.draining"), seconds=10)
    late = tasks.wait_for_nothing.enqueue("late").id
    (house.folder / "drain").touch()
    assert worker.process.wait(30) == 0
    assert job(listening).result == '"shutdown"'
    assert job(ending).state is State.COMPLETED
    for one in (polite, *deaf):
        given_back = job(one)
        assert (given_back.state, given_back.failures, given_back.losses) == (State.AVAILABLE, 0, 0)
        assert [(a.outcome, a.error_code) for a in attempts(one)] == [("released", "shutdown")]
    assert job(late).fence == 0


@pytest.mark.requirement("R6")
def test_a_transaction_that_a_coroutine_breaks_and_leaves_is_nobody_elses(house: House) -> None:
    house.worker(threads=2)
    breaking = tasks.leave_a_broken_transaction.enqueue(gate="go").id
    house.wait_for_lines("began", 1)
    # Beside it, and after it where it was.
    wait_for_state(tasks.enqueue_a_note.enqueue("beside").id, State.COMPLETED)
    (house.folder / "go").touch()
    wait_for_state(breaking, State.COMPLETED)
    for number in range(4):
        wait_for_state(tasks.enqueue_a_note.enqueue(f"after-{number}").id, State.COMPLETED)
    house.wait_for_lines("ran", 5)
