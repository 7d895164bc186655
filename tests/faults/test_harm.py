"""What a handler does to its own process and to the pipe to its keeper: who pays for that, and how much."""

import pytest

from shiftboss.queue.runtime.frames import pack
from shiftboss.queue.states import State
from tests.faults.audit import audit
from tests.faults.harm import tasks as harm
from tests.processes import runs
from tests.runtime.programs import House, attempts, wait_for_state

APPS = "tests.runtime,tests.faults.witness,tests.faults.harm"
LONG = {"LEASE_SECONDS": 300, "HEARTBEAT_SECONDS": 1}
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
