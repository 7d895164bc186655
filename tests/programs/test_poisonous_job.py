"""A job that takes its whole worker down, under a real supervisord, and seven innocents beside it."""

import asyncio
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shiftboss.queue.store import holds, processes
from shiftboss.queue.store.processes import ProcessRow
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf.programs import Program
from tests.faults.plain_jobs import plain_config, put
from tests.programs.supervisords import START_SECONDS
from tests.programs.test_supervisor_listener import Watching, serving
from tests.runtime.programs import ROOT, House
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.waiting import wait_for

pytestmark = [pytest.mark.requirement("B2", "L29", "R6"), COMMITTED]


DEAD_LEASES_END = """
update shiftboss_job set lease_expires_at = now()
where state = 'running'
    and worker_id = any (array(select worker_id from shiftboss_process where ended_at is not null))
"""
"""Rather than to wait for them: the next worker takes these jobs back."""


def deaths() -> list[ProcessRow]:
    """The ends of the worker that are noted, the newest first."""
    return run(processes.lives(authority=making.SYSTEM, program="worker-default-1", ended=True))


def test_a_job_that_takes_its_worker_down_is_held_back_by_name_and_seven_innocents_are_done(
    tmp_path: Path,
) -> None:
    making.empty()
    home, logbook = tmp_path / "home", tmp_path / "logbook"
    home.mkdir()
    logbook.mkdir()
    house = House(logbook, making.address())
    config = home / "worker.json"
    config.write_text(plain_config(house, "default", threads=8, reap_seconds=0.2, stage_seconds=0.05).to_json())
    (home / "version").write_text("v1")
    command = [sys.executable, "-P", "-m", "tests.programs.versioned_worker", str(config), str(home / "version")]
    worker = Program(
        name="worker-default-1",
        command=command,
        priority=1,
        stop_seconds=10,
        start_seconds=0,
        environment={"PYTHONPATH": str(ROOT), "TEST_LOG": str(logbook)},
        pool="default",
    )
    # In their first run they wait for what never comes; in their second they are done at once.
    innocents = [put("default", "wait", "never") for _ in range(7)]
    poison = put("default", "end_the_keeper", 0.5)
    loop = asyncio.new_event_loop()
    with serving(home, [worker]) as host:
        agent = Watching(home, loop)
        agent.listener._agent = replace(agent.listener._agent, hostname=socket.gethostname())

        def is_held() -> bool:
            agent.once()
            agent.do(agent.listener.hold())
            making.execute(DEAD_LEASES_END)
            return making.state(poison) == "quarantined"

        wait_for(is_held, seconds=START_SECONDS, every=0.1)
        job = making.live(poison)
        assert job
        assert (job["quarantine_reason"], job["error_code"]) == ("poison", "worker_died")
        why = run(holds.holds(authority=making.SYSTEM))[0]
        assert (why.poison_job, why.released_as) == (poison, "poison")
        assert why.evidence["times"] == len(deaths()) >= 3
        assert {(end["signal"], str(poison) in end["jobs"]) for end in why.evidence["ends"]} == {(9, True)}

        # The worker lives on, and the innocents are done.
        assert host.pid_of("worker-default-1")
        wait_for(lambda: all(making.finished(one) for one in innocents), seconds=START_SECONDS)
        assert {str((making.finished(one) or {})["state"]) for one in innocents} == {"completed"}
        agent.once()
        agent.do(agent.listener.hold())
        assert run(holds.holds(authority=making.SYSTEM, only_open=True)) == []
        assert len(deaths()) == why.evidence["times"]
        agent.do(agent.listener._connection.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    making.empty()
