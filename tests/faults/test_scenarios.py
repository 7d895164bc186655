"""What has gone wrong with workers before: connections, programs of handlers, claims and leases in a drain."""

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta

import psutil
import pytest
from django.utils import timezone

from shiftboss.queue.contract import Lease
from shiftboss.queue.states import State
from tests.faults.errands import tasks as errands
from tests.runtime import tasks
from tests.runtime.programs import QUICK, House, attempts, job, totals, wait_for_state
from tests.store import making
from tests.waiting import wait_for

APPS = "tests.runtime,tests.faults.errands"
LONG = {"LEASE_SECONDS": 300, "HEARTBEAT_SECONDS": 1}
OF_HANDLERS = (
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'"
    " and application_name not like 'shiftboss%%' and pid <> pg_backend_pid()"
)


def sockets(process: psutil.Process) -> set[str]:
    """The sockets that a process has open."""
    folder = f"/proc/{process.pid}/fd"
    found = set()
    for entry in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{entry}")
        except FileNotFoundError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


@pytest.mark.requirement("L30", "C7")
def test_handlers_have_connections_of_their_own_that_work_though_the_server_has_ended_the_last(
    house: House,
) -> None:
    threads = 3
    worker = house.worker(threads=threads, apps=APPS, **LONG)
    first = [errands.ask_the_database.enqueue(gate="go").id for _ in range(threads)]
    house.wait_for_lines("asked", threads)
    # While they run nothing waits in a transaction for their end.
    sits = "select pid from pg_stat_activity where state = 'idle in transaction' and datname = current_database()"
    wait_for(lambda: making.rows(sits) == [], seconds=20)
    # Executors are made by exec, and have inherited no connection of their keeper's.
    [executor] = worker.executors()
    assert sockets(psutil.Process(worker.pid)) & sockets(executor) == set()
    (house.folder / "go").touch()
    pids = {int(str(wait_for_state(one, State.COMPLETED, seconds=60).result)) for one in first}
    assert pids == {int(pid) for pid in house.wrote("asked")}
    assert len(pids) == threads
    more = [errands.ask_the_database.enqueue().id for _ in range(30)]
    for one in more:
        assert int(str(wait_for_state(one, State.COMPLETED, seconds=60).result)) in pids
    assert {pid for (pid,) in making.rows(OF_HANDLERS)} == pids
    for pid in pids:
        making.rows("select pg_terminate_backend(%s)", pid)
    still_there = "select pid from pg_stat_activity where pid = any (%s)"
    wait_for(lambda: making.rows(still_there, list(pids)) == [], seconds=20)
    again = [errands.ask_the_database.enqueue().id for _ in range(20)]
    for one in again:
        assert int(str(wait_for_state(one, State.COMPLETED, seconds=60).result)) not in pids
    assert [attempts(one) for one in (*first, *more, *again)] == [[]] * (threads + 50)


@pytest.mark.requirement("L30", "R6")
def test_a_program_that_a_handler_starts_tells_it_its_own_exit_code(house: House) -> None:
    worker = house.worker(threads=8, apps=APPS, **LONG)
    [executor] = worker.executors()
    jobs = [errands.ask_a_program.enqueue(7).id for _ in range(40)]
    for one in jobs:
        assert wait_for_state(one, State.COMPLETED, seconds=60).result == "7"
    assert worker.executors() == [executor]
    # What they left behind is nobody's child here, and no zombie.
    wait_for(lambda: executor.children() == [], seconds=20)


GATE = 4711
HOLD_CLAIMS = f"""
create function hold_claims() returns trigger language plpgsql as $$
begin
    while not pg_try_advisory_xact_lock_shared({GATE}) loop
        perform pg_sleep(0.01);
    end loop;
    return new;
end $$;
create trigger hold_claims before update on shiftboss_job for each row when (new.state = 'running')
    execute function hold_claims();
select pg_advisory_lock({GATE});
"""


@pytest.fixture
def gate(dsn: str) -> Iterator[Callable[[], None]]:
    """Every claim stops in its middle, until the gate is opened."""
    making.execute(HOLD_CLAIMS)
    yield lambda: making.execute("select pg_advisory_unlock(%s)", GATE)
    making.execute("select pg_advisory_unlock_all(); drop function hold_claims cascade")


def claims_under_way() -> list[tuple[object, ...]]:
    """Claims that stand at the gate."""
    return making.rows("select pid from pg_stat_activity where wait_event = 'PgSleep'")


@pytest.mark.requirement("L26", "N12", "L30")
def test_what_is_claimed_while_a_worker_stops_is_given_back(gate: Callable[[], None], house: House) -> None:
    """SIGTERM comes in the middle of a claim, which is let go when the drain has begun."""
    worker = house.worker(**LONG)
    jobs = [tasks.note.enqueue(number).id for number in range(20)]
    wait_for(claims_under_way, seconds=20)
    worker.kill(signal.SIGTERM)
    wait_for(lambda: worker.says("keeper.draining"), seconds=20)
    gate()
    assert worker.process.wait(60) == 0
    assert totals() == {State.AVAILABLE: 20}
    assert sum(job(one).fence for one in jobs) > 0
    for one in jobs:
        assert (job(one).failures, job(one).losses) == (0, 0)
        assert [attempt.outcome for attempt in attempts(one)] == ["released"] * job(one).fence
    assert house.lines() == []


@pytest.mark.requirement("L26", "N12", "N14")
def test_a_run_that_outlasts_its_lease_in_a_drain_keeps_it(house: House) -> None:
    worker = house.worker(threads=1, **{**QUICK, "DRAIN_SECONDS": 60})
    long = tasks.nap.enqueue("long", seconds=QUICK["LEASE_SECONDS"] + 1.0).id
    house.wait_for_lines("began", 1)
    assert worker.stop() == 0
    assert (job(long).state, job(long).fence, attempts(long)) == (State.COMPLETED, 1, [])


def lost_long_ago() -> Lease:
    """A lease that its worker, gone by now, has left to expire."""
    name = f"{tasks.note.func.__module__}.note"
    gone = making.a_worker(tasks=[name])
    making.enqueued(task=name, args='{"args": ["orphan"], "kwargs": {}}')
    [held] = making.claimed(gone, tasks=[name], lease_seconds=0.01)
    making.wait_for_expiry(held.lease)
    return held.lease


@pytest.mark.requirement("N14", "L30")
def test_without_a_maintainer_workers_do_its_work(house: House) -> None:
    orphan = lost_long_ago()
    soon = timezone.now() + timedelta(seconds=0.5)
    later = tasks.note.using(run_after=soon).enqueue("later").id
    house.worker(STAGE_SECONDS=0.02, REAP_SECONDS=0.02, **LONG)
    assert wait_for_state(later, State.COMPLETED, seconds=90).fence == 1
    done = wait_for_state(orphan.job_id, State.COMPLETED, seconds=90)
    assert (done.fence, done.losses) == (2, 1)
    assert house.wrote("ran") == {"later": 1, "orphan": 1}
