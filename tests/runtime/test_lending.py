"""Resources with a real worker: lent in order, shown in its state, closed at its end."""

import json

import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import operate, read
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, wait_for_state
from tests.waiting import wait_for


def lent() -> dict[str, dict[str, int]]:
    """What the one worker says of its resources."""
    [worker] = run(read.workers(authority=System()))
    found: dict[str, dict[str, int]] = json.loads(worker.resources)
    return found


@pytest.mark.requirement("R1", "N11")
def test_jobs_share_one_desk_and_the_worker_tells_who_waits(house: House) -> None:
    worker = house.worker(threads=3, LEASE_SECONDS=30)
    first = tasks.work_at.enqueue("first", gate="go").id
    house.wait_for_lines("began", 1)
    second, third = (tasks.work_at.enqueue(name, gate="go").id for name in ("second", "third"))
    wait_for(lambda: lent() == {"desk": {"made": 1, "lent": 1, "waiting": 2}}, seconds=20)
    assert set(house.wrote("began")) == {"first"}
    # One of those that wait leaves the line unrun.
    run(operate.cancel([int(second)], authority=System()))
    ended = wait_for_state(second, State.CANCELLED)
    assert (ended.failures, [a.error_code for a in attempts(second)]) == (0, ["user"])
    (house.folder / "go").touch()
    assert [wait_for_state(job_id, State.COMPLETED).result for job_id in (first, third)] == ["1", "2"]
    # It is not good any more: the next job gets another one.
    assert wait_for_state(tasks.work_at.enqueue("fourth", gate="go").id, State.COMPLETED).result == "1"
    wait_for(lambda: lent() == {"desk": {"made": 1, "lent": 0, "waiting": 0}}, seconds=20)
    assert [line.kind for line in house.lines() if line.kind in ("made", "closed")] == ["made", "closed", "made"]
    assert worker.stop() == 0
    assert [line.kind for line in house.lines()][-1] == "closed"
