"""Workers under a real supervisord, restarted one after the other while jobs run."""

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shiftboss import acts
from shiftboss.queue.store import rolls
from shiftboss.queue.store.rolls import RollRow, StepRow
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf.programs import Program
from tests.acts.people import person
from tests.faults.plain_jobs import plain_config, put
from tests.programs.supervisords import START_SECONDS, Supervisord
from tests.programs.test_supervisor_listener import Watching, serving
from tests.runtime.programs import ROOT, House
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.waiting import wait_for

pytestmark = [pytest.mark.requirement("L28", "L31"), COMMITTED]

WORKERS = ("worker-default-1", "worker-default-2")


class Yard:
    """Two workers, the agent of their host, and what the jobs themselves have written down."""

    def __init__(self, home: Path, host: Supervisord, agent: Watching, house: House) -> None:
        self.version = home / "version"
        self.host = host
        self.agent = agent
        self.house = house
        self.jobs: set[int] = set()
        self._known(agent)

    def put(self, seconds: float = 0.0, *, priority: int = 0) -> int:
        """One more job."""
        self.jobs.add(number := put("default", "work", seconds, priority=priority))
        return number

    def busy(self) -> int:
        """How many workers have something in hand."""
        return int(making.scalar("select count(distinct worker_id) from shiftboss_job where state = 'running'"))

    def once(self) -> None:
        """One turn of the agent's duties."""
        self.agent.once()
        self.agent.do(self.agent.listener.roll())

    def another_agent(self) -> None:
        """The agent dies without a word, and another one comes."""
        self.agent.do(self.agent.listener._connection.close())
        making.execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '11 seconds'")
        self.agent.another()
        self._known(self.agent)

    def others_work(self) -> None:
        """Jobs are done now, whoever is away."""
        number = self.put(priority=50)
        wait_for(lambda: self.ended(number), seconds=START_SECONDS)

    def ended(self, *numbers: int) -> bool:
        """Whether these jobs are in the history."""
        found = making.scalar(
            f"select count(*) from shiftboss_finished where id in ({', '.join(map(str, numbers))})"
        )
        return int(found) == len(numbers)

    def until(self, roll_id: int, *states: str, turn: Callable[[], Any]) -> RollRow:
        """Let the agent work until a roll is in one of these states; a turn is taken after each of its moves."""
        seen: list[str] = []

        def stands() -> RollRow | None:
            self.once()
            now = [step.state for step in steps(roll_id)]
            if now != seen:
                seen[:] = now
                turn()
            row = run(rolls.roll(roll_id, authority=making.SYSTEM))
            assert row
            return row if row.state in states else None

        row = wait_for(stands, seconds=START_SECONDS, every=0.05)
        assert row
        return row

    @staticmethod
    def _known(agent: Watching) -> None:
        # Workers name the machine, as the agent does whose host they are on.
        agent.listener._agent = replace(agent.listener._agent, hostname=socket.gethostname())


def steps(roll_id: int) -> list[StepRow]:
    """The workers of a roll."""
    return run(rolls.steps(roll_id, authority=making.SYSTEM))


def begun() -> int:
    """The id of a roll that a person has asked for."""
    number = acts.roll_pool("default", by=person(), reason="new code").roll_id
    assert number
    return number


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """Two workers of version v1 that live, with runs that take a while in hand of each."""
    making.empty()
    home, logbook = tmp_path / "home", tmp_path / "logbook"
    home.mkdir()
    logbook.mkdir()
    house = House(logbook, making.address())
    config = home / "worker.json"
    config.write_text(plain_config(house, "default", drain_seconds=60.0).to_json())
    (home / "version").write_text("v1")
    command = [sys.executable, "-P", "-m", "tests.programs.versioned_worker", str(config), str(home / "version")]
    environment = {"PYTHONPATH": str(ROOT), "TEST_LOG": str(logbook)}
    found = [
        Program(
            name=name, command=command, priority=number, stop_seconds=70, environment=environment, pool="default"
        )
        for number, name in enumerate(WORKERS, 1)
    ]
    loop = asyncio.new_event_loop()
    with serving(home, found) as host:
        yard = Yard(home, host, Watching(home, loop), house)
        wait_for(
            lambda: making.scalar("select count(*) from shiftboss_worker where idle") == 2,
            seconds=START_SECONDS,
        )
        wait_for(lambda: yard.put(1.5) and yard.busy() == 2, seconds=START_SECONDS, every=0.1)
        yard.agent.once()
        yield yard
        yard.agent.do(yard.agent.listener._connection.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    making.empty()


def test_workers_are_restarted_one_after_the_other_while_jobs_run_and_a_broken_version_touches_no_second_one(
    yard: Yard,
) -> None:
    before = [yard.host.pid_of(name) for name in WORKERS]
    yard.version.write_text("v2")
    first = begun()

    def turn() -> None:
        moving = [step for step in steps(first) if step.state not in ("waiting", "done")]
        assert len(moving) <= 1, "two workers are away"
        yard.others_work()
        if moving and (moving[0].number, moving[0].state) == (1, "draining"):
            yard.another_agent()

    assert yard.until(first, "done", "stopped", turn=turn).why is None
    assert [(step.state, step.code_before, step.code_after) for step in steps(first)] == [("done", "v1", "v2")] * 2
    now = [yard.host.pid_of(name) for name in WORKERS]
    assert set(now).isdisjoint(before)

    yard.version.write_text("broken")
    second = begun()
    row = yard.until(second, "done", "stopped", turn=yard.others_work)
    assert row.state == "stopped"
    assert row.why == (
        "worker-default-1 on web-1: it does not come up: exit code 1; its log ends with: "
        "ImportError: no module named shop"
    )
    assert [step.state for step in steps(second)] == ["failed", "waiting"]
    assert yard.host.pid_of(WORKERS[1]) == now[1]
    yard.others_work()

    # No job was lost, and none was run twice.
    wait_for(lambda: yard.ended(*yard.jobs), seconds=START_SECONDS)
    ran = yard.house.wrote("began")
    assert {int(who.partition(".")[0]) for who in ran} == yard.jobs
    assert len(ran) == len(yard.jobs)
    assert set(ran.values()) == {1}
    assert yard.house.wrote("done") == ran
