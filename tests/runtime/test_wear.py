"""Executors that have done enough, or hold too much, make room for fresh ones; no job is lost by that."""

import pytest

from shiftboss.queue.states import State
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, totals, wait_for_state
from tests.waiting import wait_for

POOL = {"queues": ("default",), "processes": 1, "threads": 2}


@pytest.mark.requirement("L28")
def test_an_executor_ends_after_so_many_jobs_once_its_last_run_has_and_nothing_is_lost(house: House) -> None:
    worker = house.worker(POOLS={"default": {**POOL, "max_jobs": 10}})
    [first] = worker.executors()
    long = tasks.pass_gate.enqueue("long", "gate")
    house.wait_for_lines("began", 1)
    for number in range(60):
        tasks.note.enqueue(number)
    house.wait_for_lines("ran", 60)
    # The next has run more than enough too. But while what is long holds the first, no third one starts.
    living = {one.pid for one in worker.executors()}
    assert len(living) == 2
    assert first.pid in living
    (house.folder / "gate").touch()
    assert wait_for_state(long.id, State.COMPLETED).losses == 0
    wait_for(lambda: not living & {one.pid for one in worker.executors()}, seconds=20)
    wait_for(lambda: totals()[State.COMPLETED] == 61, seconds=20)
    assert set(house.wrote("ran").values()) == {1}
    assert attempts(long.id) == []
    assert worker.stop() == 0


@pytest.mark.requirement("L28")
def test_an_executor_that_holds_too_much_after_a_job_takes_no_other(house: House) -> None:
    pool = {**POOL, "isolated": 1, "max_rss_mb": 200}
    worker = house.worker(POOLS={"default": pool})
    [first] = worker.executors()
    for megabytes in (1, 200):
        ended = wait_for_state(tasks.hoard.enqueue(megabytes).id, State.COMPLETED)
        assert ended.result == str(first.pid)
    wait_for(lambda: worker.executors() and first.pid not in {one.pid for one in worker.executors()}, seconds=20)
    next_one = wait_for_state(tasks.hoard.enqueue(1).id, State.COMPLETED)
    assert next_one.result != str(first.pid)
    alone = [wait_for_state(tasks.hoard_alone.enqueue(mb).id, State.COMPLETED).result for mb in (200, 1)]
    wait_for(lambda: worker.log.read_text().count("executor.retired") >= 2, seconds=20)
    assert len(alone) == 2
    assert worker.stop() == 0


@pytest.mark.requirement("L28")
def test_a_worker_that_holds_too_much_drains_and_says_why_it_ends(house: House) -> None:
    worker = house.worker(POOLS={"default": {**POOL, "max_worker_rss_mb": 500}})
    polite = tasks.listen.enqueue("polite")
    house.wait_for_lines("began", 1)
    assert wait_for_state(tasks.hoard.enqueue(500).id, State.COMPLETED).losses == 0
    assert worker.process.wait(30) == 1
    assert house.wrote("heard-shutdown") == {"polite": 1}
    assert wait_for_state(polite.id, State.COMPLETED, State.AVAILABLE).losses == 0
    assert "more than `max_worker_rss_mb`" in worker.log.read_text()
