"""What workers say of themselves."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.contract import Registration, WorkerStatus
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import lease, read, workers
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, TASK, a_worker, execute, rows, running, says, scalar

REGISTRATION = Registration(
    pool="default",
    host="web-1",
    pid=1,
    code_version="v7",
    queues=("default",),
    processes=1,
    threads=8,
    lease_seconds=30.0,
    heartbeat_seconds=5.0,
)

REGISTERED = """
select pool, host, pid, code_version, state, queues, tasks, processes, threads, in_use, idle, lease_seconds,
    heartbeat_seconds, stopped_at, started_at = heartbeat_at from shiftboss_worker
"""


@pytest.mark.requirement("C2", "L1")
def test_a_worker_announces_itself() -> None:
    first = a_worker("default", "mail")
    assert rows(REGISTERED) == [
        (
            "default",
            "web-1",
            4711,
            "v7",
            "running",
            ["default", "mail"],
            [TASK],
            2,
            8,
            0,
            False,
            30.0,
            5.0,
            None,
            True,
        )
    ]
    assert a_worker() > first


def announced(perform: Perform, worker_id: int | None, **how: Any) -> int:
    """The id under which a worker is known that announces itself, again where it has one."""
    registration = replace(REGISTRATION, **how)
    return int(perform(workers.register(registration, authority=SYSTEM, tasks=[TASK], worker_id=worker_id)))


@pytest.mark.requirement("N14", "L4")
def test_a_worker_whose_row_is_gone_is_known_again_under_its_id(perform: Perform) -> None:
    worker = announced(perform, None)
    [held] = running(worker)
    execute("delete from shiftboss_worker")
    assert announced(perform, worker) == worker
    assert says(worker)
    answer = perform(lease.heartbeat([held], authority=SYSTEM, worker_id=worker, lease_seconds=60))
    assert answer.renewed == {held}
    assert announced(perform, None, pid=2) > worker


@pytest.mark.requirement("N14", "S8")
def test_a_worker_that_announces_itself_twice_is_one(perform: Perform) -> None:
    worker = announced(perform, None)
    run(workers.order(worker, authority=SYSTEM, word="drain", by="kim"))
    assert announced(perform, worker) == worker
    # Its answer was lost; the order stands.
    assert rows("select state, ordered from shiftboss_worker") == [("running", "drain")]
    says(worker, state="stopped")
    assert announced(perform, worker, queues=("mail",)) == worker
    # It has begun anew, and nobody has ordered that to end.
    told = "select state, queues, stopped_at, ordered, ordered_by, ordered_at from shiftboss_worker"
    assert rows(told) == [("running", ["mail"], None, None, None, None)]


@pytest.mark.requirement("N14")
def test_nobody_announces_himself_as_another(perform: Perform) -> None:
    worker = announced(perform, None)
    other = announced(perform, worker, host="web-2")
    assert other > worker
    assert rows("select id, host from shiftboss_worker order by id") == [(worker, "web-1"), (other, "web-2")]
    # Nor as an earlier process of the same host.
    third = announced(perform, worker, pid=2)
    assert third > other
    assert rows("select id, pid from shiftboss_worker order by id") == [(worker, 1), (other, 1), (third, 2)]


@pytest.mark.requirement("L7", "L28")
def test_a_heartbeat_tells_what_the_worker_does(worker: int) -> None:
    execute("update shiftboss_worker set heartbeat_at = now() - interval '1 hour'")
    assert says(worker, in_use=3, idle=True, tasks=["a", "b"], lag_ms=40, losses=2)
    assert rows("select in_use, idle, tasks, lag_ms, worst_lag_ms, losses from shiftboss_worker") == [
        (3, True, ["a", "b"], 40, 40, 2)
    ]
    assert scalar("select now() - heartbeat_at from shiftboss_worker") < timedelta(minutes=1)


@pytest.mark.requirement("R1", "R3", "C3")
def test_a_heartbeat_tells_of_executors_that_wait_for_their_end_of_resources_and_of_what_no_observer_got(
    perform: Perform, worker: int
) -> None:
    [row] = perform(read.workers(authority=SYSTEM))
    assert (row.tainted, row.dropped, row.resources) == (0, 0, "{}")
    status = WorkerStatus(state="running", in_use=0, idle=False, tasks=(), lag_ms=0, losses=0)
    told = replace(status, tainted=2, dropped=7, resources='{"browser": {"made": 3}}')
    assert perform(workers.worker_heartbeat(told, authority=SYSTEM, worker_id=worker))
    [row] = perform(read.workers(authority=SYSTEM))
    assert (row.tainted, row.dropped, row.resources) == (2, 7, '{"browser": {"made": 3}}')


@pytest.mark.requirement("L7")
def test_the_worst_lag_is_kept(worker: int) -> None:
    for lag_ms in (5, 900, 7):
        says(worker, lag_ms=lag_ms)
    assert rows("select lag_ms, worst_lag_ms from shiftboss_worker") == [(7, 900)]


@pytest.mark.requirement("L26")
def test_a_stopped_worker_says_when(worker: int) -> None:
    says(worker, state="draining")
    assert scalar("select stopped_at from shiftboss_worker") is None
    says(worker, state="stopped")
    assert scalar("select stopped_at from shiftboss_worker") is not None


@pytest.mark.requirement("L26", "C1")
@pytest.mark.parametrize("state", ["draining", "stopped"])
def test_a_worker_that_claims_no_more_is_not_idle(state: str, perform: Perform, worker: int) -> None:
    status = WorkerStatus(state=state, in_use=0, idle=True, tasks=(), lag_ms=0, losses=0)
    assert perform(workers.worker_heartbeat(status, authority=SYSTEM, worker_id=worker))
    assert rows("select state, idle from shiftboss_worker") == [(state, False)]


@pytest.mark.requirement("N14")
def test_a_worker_that_the_record_does_not_know_is_told_so(worker: int) -> None:
    assert says(worker + 1000) is False
    assert scalar("select count(*) from shiftboss_worker") == 1


@pytest.mark.requirement("C2")
def test_workers_are_forgotten_after_a_day(perform: Perform, worker: int, other: int) -> None:
    execute("update shiftboss_worker set heartbeat_at = now() - interval '25 hours' where id = %s", worker)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '23 hours' where id = %s", other)
    assert perform(workers.forget_workers(authority=SYSTEM)) == 1
    assert rows("select id from shiftboss_worker") == [(other,)]


@pytest.mark.requirement("N4")
def test_owners_are_no_workers(worker: int) -> None:
    status = WorkerStatus(state="running", in_use=0, idle=False, tasks=(), lag_ms=0, losses=0)
    with pytest.raises(NotAllowed, match="is for System"):
        run(workers.worker_heartbeat(status, authority=Owner("kim"), worker_id=worker))
