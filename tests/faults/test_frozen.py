"""Processes that stand still for longer than their leases last, and a host whose clock steps."""

import os
import signal
from collections.abc import Callable, Iterable

import psutil
import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run
from tests.faults.audit import audit
from tests.faults.kill_points import Keepers
from tests.faults.plain_jobs import plain_config, put
from tests.faults.witness import tasks as witness
from tests.processes import runs
from tests.runtime.programs import House, Program, attempts, job, wait_for_state
from tests.waiting import wait_for

APPS = "tests.runtime,tests.faults.witness"
FIRST = {"LEASE_SECONDS": 3, "HEARTBEAT_SECONDS": 0.5}
SECOND = {"LEASE_SECONDS": 300, "HEARTBEAT_SECONDS": 1, "REAP_SECONDS": 0.05, "STAGE_SECONDS": 0.02}


def rejected(job_id: int | str) -> list[str]:
    """What writes for a job the record says that it refused."""
    events = run(read.events(authority=System(), job_id=int(job_id)))
    return [str(event.data) for event in events if event.kind == "write_rejected"]


def send(number: int, pids: Iterable[int]) -> None:
    """A signal to each of them that still is there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def _only_keeper(program: Program) -> list[psutil.Process]:
    return [psutil.Process(program.pid)]


def _whole_host(program: Program) -> list[psutil.Process]:
    return [*program.children("sentinel"), psutil.Process(program.pid), *program.executors()]


@pytest.mark.requirement("L4", "N14", "S13", "L2")
@pytest.mark.parametrize("frozen", [_only_keeper, _whole_host], ids=["keeper", "host"])
def test_who_stood_still_beyond_its_lease_has_lost_it_and_its_late_writes_are_refused_and_recorded(
    house: House, frozen: Callable[[Program], list[psutil.Process]]
) -> None:
    first = house.worker(threads=1, apps=APPS, **FIRST)
    held = witness.work.enqueue(seconds=600, gate="go").id
    house.wait_for_lines("began", 1)
    [executor] = first.executors()
    stopped = [process.pid for process in frozen(first)]
    send(signal.SIGSTOP, stopped)
    if executor.pid not in stopped:
        # The sentinel ends the handler before the lease ends, though its keeper says nothing.
        wait_for(lambda: not runs(executor), seconds=40)
    house.worker(threads=1, apps=APPS, **SECOND)
    wait_for(lambda: house.wrote("began")[f"{held}.2"], seconds=40)
    if executor.pid in stopped:
        (house.folder / "go").touch()  # the handler of the first attempt comes to its end when it wakes
        wait_for_state(held, State.COMPLETED, seconds=40)
    send(signal.SIGCONT, stopped)
    wait_for(lambda: rejected(held), seconds=40)
    (house.folder / "go").touch()
    done = wait_for_state(held, State.COMPLETED, seconds=40)
    assert (done.fence, done.losses) == (2, 1)
    assert [(attempt.fence, attempt.outcome, attempt.error_code) for attempt in attempts(held)] == [
        (1, "lost", "lease_expired")
    ]
    # A handler that came to its end first has left its process fit for others.
    wait_for(lambda: house.wrote("done")[f"{held}.1"] or not runs(executor), seconds=40)
    found = audit(house.lines(), house.dsn, [held], frozen=[executor.pid] if executor.pid in stopped else [])
    assert found == []


@pytest.mark.requirement("L2", "L30", "N14")
def test_on_a_host_whose_clock_steps_by_hours_leases_last_as_long_as_elsewhere(house: House) -> None:
    with Keepers(house.folder) as keepers:
        astray = plain_config(house, "astray", client="tests.faults.stepping:connect")
        [*argv, _] = astray.executor_argv
        keepers.start(
            plain_config(house, "astray", client=astray.client, executor_argv=(*argv, "tests.faults.stepping"))
        )
        # Another one is there to take what has lost its lease, or is due.
        keepers.start(plain_config(house, "other", stage_seconds=0.02, reap_seconds=0.02))
        long = put("astray", "work", 5.0)
        others = [put("astray", task) for task in ("fail", "put_off", "work", "tell")]
        for one in (long, *others):
            wait_for_state(one, State.COMPLETED, seconds=60)
        assert (job(long).fence, attempts(long)) == (1, [])
        assert [one.outcome for other in others for one in attempts(other)] == ["failed", "snoozed"]
        assert audit(house.lines(), house.dsn, [long, *others]) == []
