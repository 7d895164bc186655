"""What is ordered of workers, and what is told of them: their memory, their processor time, what runs in them."""

from datetime import timedelta
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.contract import Known, Note, NoteKind, WorkerStatus
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import notes, operate, read, workers
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, TASK, execute, rows, running, says

STATUS = WorkerStatus(state="running", in_use=0, idle=False, tasks=(TASK,), lag_ms=0, losses=0)
ORDER = "select ordered, ordered_by, ordered_at is not null from shiftboss_worker where id = %s"


def heartbeat(worker: int) -> Known | None:
    """The answer to a worker's heartbeat."""
    return run(workers.worker_heartbeat(STATUS, authority=SYSTEM, worker_id=worker))


def order(worker: int, word: str, by: str = "kim") -> workers.Ordered | None:
    """Order a worker to drain or to stop."""
    return run(workers.order(worker, authority=SYSTEM, word=word, by=by))


@pytest.mark.requirement("L26", "C3")
def test_an_order_comes_with_the_answer_to_each_heartbeat_until_it_is_obeyed(
    perform: Perform, worker: int, other: int
) -> None:
    assert heartbeat(worker) == Known()
    was = perform(workers.order(worker, authority=SYSTEM, word="drain", by="kim"))
    assert was == workers.Ordered(
        worker, "default", "web-1", 4711, "running", None, alive=True, within=True, given=True
    )
    assert rows(ORDER, worker) == [("drain", "kim", True)]
    assert [heartbeat(worker), heartbeat(worker)] == [Known("drain"), Known("drain")]
    assert heartbeat(other) == Known()
    assert heartbeat(other + 1000) is None


@pytest.mark.requirement("L26", "L30")
def test_an_order_is_told_on_the_workers_own_channel_with_its_commit(listen: Any, worker: int, other: int) -> None:
    mine, yours = listen(f"shiftboss_worker_{worker}"), listen(f"shiftboss_worker_{other}")
    order(worker, "drain")
    order(worker, "drain")  # it stands already: nobody is told again
    order(worker, "stop")
    order(other, "stop")
    assert [mine.heard(), mine.heard(), yours.heard()] == ["drain", "stop", "stop"]


@pytest.mark.requirement("L26")
def test_stop_follows_drain_and_never_the_other_way(perform: Perform, worker: int) -> None:
    for word, by, given, before, stands in [
        ("drain", "kim", True, None, ("drain", "kim", True)),
        ("drain", "lee", False, "drain", ("drain", "kim", True)),
        ("stop", "lee", True, "drain", ("stop", "lee", True)),
        ("stop", "kim", False, "stop", ("stop", "lee", True)),
        ("drain", "kim", False, "stop", ("stop", "lee", True)),
    ]:
        was = perform(workers.order(worker, authority=SYSTEM, word=word, by=by))
        assert was is not None
        assert (was.given, was.ordered) == (given, before)
        assert rows(ORDER, worker) == [stands]


@pytest.mark.requirement("L26")
def test_nothing_is_ordered_of_who_is_gone(perform: Perform, worker: int, other: int) -> None:
    says(worker, state="stopped")
    execute("update shiftboss_worker set heartbeat_at = now() - interval '31 seconds' where id = %s", other)
    for gone in (worker, other):
        was = perform(workers.order(gone, authority=SYSTEM, word="stop", by="kim"))
        assert was is not None
        assert (was.alive, was.given) == (False, False)
        assert rows(ORDER, gone) == [(None, None, False)]
    assert perform(workers.order(other + 1000, authority=SYSTEM, word="stop", by="kim")) is None


@pytest.mark.requirement("N4")
def test_owners_order_nothing_and_see_nothing_of_workers(worker: int) -> None:
    for verb in (
        workers.order(worker, authority=Owner("kim"), word="stop", by="kim"),
        read.running([worker], authority=Owner("kim"), per_worker=1),
    ):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)
    assert rows(ORDER, worker) == [(None, None, False)]


@pytest.mark.requirement("R1", "L28")
def test_a_heartbeat_tells_of_memory_and_processor_time(perform: Perform, worker: int) -> None:
    [row] = perform(read.workers(authority=SYSTEM))
    assert (row.memory_kb, row.cpu_ms, row.ordered, row.ordered_by, row.ordered_at) == (None,) * 5
    told = WorkerStatus(
        state="running", in_use=0, idle=False, tasks=(), lag_ms=0, losses=0, memory_kb=2**33, cpu_ms=90_000
    )
    execute("update shiftboss_worker set started_at = now() - interval '10 minutes'")
    perform(workers.worker_heartbeat(told, authority=SYSTEM, worker_id=worker))
    order(worker, "drain")
    [row] = perform(read.workers(authority=SYSTEM))
    assert (row.memory_kb, row.cpu_ms, row.ordered, row.ordered_by) == (2**33, 90_000, "drain", "kim")
    assert row.up_seconds == pytest.approx(600, abs=20)
    assert row.ordered_at - row.started_at > timedelta(minutes=9)


@pytest.mark.requirement("C3", "L28")
def test_what_runs_in_a_worker_is_told_the_longest_running_first(
    perform: Perform, worker: int, other: int
) -> None:
    first, second, third = running(worker, 3)
    [elsewhere] = running(other)
    execute("update shiftboss_job set started_at = now() - interval '5 minutes' where id = %s", second.job_id)
    run(operate.cancel([second.job_id], authority=SYSTEM))
    progress = Note(NoteKind.PROGRESS, '{"value": 3, "total": 10}')
    run(notes.note([(first, progress)], authority=SYSTEM, worker_id=worker))
    found = perform(read.running([worker], authority=SYSTEM, per_worker=2))
    assert [(row.worker_id, row.id, row.jobs) for row in found] == [
        (worker, second.job_id, 3),
        (worker, first.job_id, 3),
    ]
    [longest, next_one] = found
    assert (longest.cancel_requested, longest.progress, longest.fence) == (True, None, 1)
    assert longest.running_seconds == pytest.approx(300, abs=20)
    assert 0 < longest.lease_seconds_left <= 30
    assert (next_one.cancel_requested, next_one.progress) == (False, '{"total": 10, "value": 3}')
    both = perform(read.running([worker, other], authority=SYSTEM, per_worker=9))
    assert {row.id for row in both} == {first.job_id, second.job_id, third.job_id, elsewhere.job_id}
    assert len(perform(read.running([worker, other], authority=SYSTEM, per_worker=9, budget=2))) == 2
