"""What a handler does to its own process and to the pipe to its keeper: who pays for that, and how much."""

import pytest

from shiftboss.queue.runtime.frames import pack
from shiftboss.queue.states import State
from tests.faults.audit import audit
from tests.faults.conftest import Configure
from tests.faults.harm import tasks as harm
from tests.processes import runs
from tests.runtime.programs import House, attempts, wait_for_state

APPS = "tests.runtime,tests.faults.witness,tests.faults.harm"
LONG = {"LEASE_SECONDS": 300, "HEARTBEAT_SECONDS": 1, "STAGE_SECONDS": 0.02}
"""Leases that outlive the test: what is run again is not the reaper's work."""


GARBAGE = {"a line of text": b"12345 of 67890 done\n", "a message without sense": pack({"outcomes": [[1]]})}


@pytest.mark.requirement("R6", "L30", "N14")
def test_an_executor_whose_pipe_is_spoilt_is_replaced_and_its_job_is_run_again(house: House) -> None:
    worker = house.worker(processes=3, threads=1, apps=APPS, **LONG)
    first = worker.executors()
    jobs = [harm.write_garbage.enqueue(garbage.hex(), "never").id for garbage in GARBAGE.values()]
    jobs.append(harm.close_pipe.enqueue("never").id)
    for one in jobs:
        done = wait_for_state(one, State.COMPLETED, seconds=40)
        assert (done.fence, done.losses, done.failures) == (2, 1, 0)
        assert [(attempt.outcome, attempt.error_code) for attempt in attempts(one)] == [("lost", "executor_died")]
    assert not any(map(runs, first))
    assert audit(house.lines(), house.dsn, jobs) == []


@pytest.mark.requirement("R6", "L29", "L30")
def test_each_way_in_which_a_process_can_end_is_told_with_its_job(house: House, configure: Configure) -> None:
    configure(MAX_LOSSES=1)
    house.worker(processes=2, threads=1, apps=APPS, **LONG)
    ends = {
        harm.segfault.enqueue().id: ("lost", "executor_died", "the executor was killed by SIGSEGV"),
        harm.leave.enqueue(3).id: ("lost", "executor_died", "the executor exited with 3"),
        harm.leave.enqueue(0).id: ("lost", "executor_died", "the executor exited with 0"),
        harm.eat_memory.enqueue().id: ("failed", "handler_raised", ""),
    }
    for one, end in ends.items():
        held = wait_for_state(one, State.QUARANTINED, seconds=40)
        [attempt] = attempts(one)
        assert (attempt.outcome, attempt.error_code, attempt.error_message) == end
        assert held.quarantine_reason == ("poison" if end[0] == "lost" else "failures_exhausted")
        assert held.losses + held.failures == 1
    assert attempt.error_type == "MemoryError"
    assert audit(house.lines(), house.dsn, ends) == []


@pytest.mark.requirement("N13", "N14", "R6")
def test_of_fifty_processes_that_a_fallen_handler_has_left_none_sees_the_next_attempt(house: House) -> None:
    house.worker(threads=1, apps=APPS, **LONG)
    forks = harm.fork_many.enqueue(50).id
    done = wait_for_state(forks, State.COMPLETED, seconds=60)
    assert (done.fence, done.losses, done.result) == (2, 1, "[]")
    assert house.wrote("forked") == {"50": 1}
    assert audit(house.lines(), house.dsn, [forks]) == []
