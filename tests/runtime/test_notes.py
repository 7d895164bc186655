"""What handlers tell, from real executors to the record."""

import json
from typing import Any

import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, job, wait_for_state
from tests.store.making import execute, finished, live
from tests.waiting import wait_for


def column(job_id: str, name: str) -> Any:
    """What a column of JSON holds, wherever the job is."""
    row = live(int(job_id)) or finished(int(job_id)) or {}
    return None if row[name] is None else json.loads(row[name])


def told(job_id: str) -> list[tuple[int, Any]]:
    """Number and data of what a job has told."""
    found = run(read.events(authority=System(), job_id=int(job_id)))
    return [(event.seq, json.loads(event.data)) for event in found if event.kind == "event"]


@pytest.mark.requirement("L16", "L17", "L18", "N8")
def test_an_attempt_goes_on_where_the_one_before_has_saved_and_all_it_told_is_kept(house: House) -> None:
    house.worker(STAGE_SECONDS=0.05, LEASE_SECONDS=30)
    job_id = tasks.tell.using(backoff=0).enqueue(10).id
    wait_for_state(job_id, State.COMPLETED)
    assert [a.error_type for a in attempts(job_id)] == ["ValueError"]
    # The last word is there, though a second had not passed since the one before.
    assert column(job_id, "progress") == {"value": 10, "total": 10, "message": "pages"}
    assert column(job_id, "checkpoint") == 10
    assert told(job_id) == [
        (1, {"name": "began", "data": {"at": 0}}),
        (2, {"name": "began", "data": {"at": 5}}),
        *[(3 + number, {"name": "closed", "data": {"number": number}}) for number in range(3)],
    ]


@pytest.mark.requirement("L16", "L18", "L26", "L30")
def test_what_a_coroutine_told_is_in_the_record_while_it_runs_and_outlives_its_process(house: House) -> None:
    worker = house.worker(STAGE_SECONDS=0.05, LEASE_SECONDS=30)
    job_id = tasks.tell_in_loop.enqueue().id
    house.wait_for_lines("began", 1)
    assert column(job_id, "checkpoint") == {"stage": 1, "before": None}
    wait_for(lambda: column(job_id, "progress") == {"stage": "waits"}, seconds=20)
    assert told(job_id) == [(1, {"name": "waits", "data": {}})]
    [executor] = worker.executors()
    executor.kill()
    wait_for(lambda: house.wrote("began")["told"] == 2, seconds=30)
    assert column(job_id, "checkpoint") == {"stage": 1, "before": {"stage": 1, "before": None}}
    # A worker that stops lets its jobs save before it gives them back.
    assert worker.stop() == 0
    assert column(job_id, "checkpoint") == {"stage": 2}
    given_back = job(job_id)
    assert (given_back.state, given_back.failures, given_back.losses) == (State.AVAILABLE, 0, 1)
    assert [(a.outcome, a.error_code) for a in attempts(job_id)][-1] == ("released", "shutdown")


@pytest.mark.requirement("L4", "L18", "N9")
def test_a_checkpoint_under_a_fence_that_is_over_is_refused_and_its_handler_hears_of_it(house: House) -> None:
    house.worker(LEASE_SECONDS=600, HEARTBEAT_SECONDS=200)
    job_id = tasks.save_when_lost.enqueue(gate="go").id
    house.wait_for_lines("began", 1)
    # Somebody else has the job in the meantime.
    execute("update shiftboss_job set fence = fence + 1, worker_id = worker_id + 1000 where id = %s", int(job_id))
    (house.folder / "go").touch()
    house.wait_for_lines("refused", 1)
    assert column(job_id, "checkpoint") is None
    found = run(read.events(authority=System(), job_id=int(job_id)))
    assert [(event.kind, json.loads(event.data)["verb"]) for event in found][:1] == [
        ("write_rejected", "checkpoint")
    ]
