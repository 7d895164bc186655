"""What the agent does to programs that are held back, by what supervisord says of them."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shiftboss.queue.clients.local import Connection
from shiftboss.queue.store import holds, processes, upkeep, workers
from shiftboss.queue.store.holds import OpenHold
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf import control
from shiftboss.supervisor_conf import holds as duty
from shiftboss.supervisor_conf.crash_loops import Rule
from shiftboss.supervisor_conf.holds import Holds
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.store.test_workers import REGISTRATION

pytestmark = pytest.mark.requirement("B2", "L28")


class Supervisord:
    """One that does nothing but to say in which state its program is, and to note what is asked of it."""

    socket, prefix = Path("/nowhere"), ""

    def __init__(self, state: str | None) -> None:
        self.state = state
        self.asked: list[str] = []
        self.answers = True

    def programs(self, socket: Path, prefix: str) -> dict[str, dict[str, Any]]:
        """Its programs by name."""
        if not self.answers:
            raise control.SupervisorUnreachable("nobody there")
        return {} if self.state is None else {"web": {"statename": self.state}}

    def begin_start(self, name: str) -> None:
        """Start it."""
        if not self.answers:
            raise control.SupervisorUnreachable("nobody there")
        self.asked.append(f"start {name}")

    def begin_stop(self, name: str) -> None:
        """Stop it."""
        self.asked.append(f"stop {name}")


def holding(supervisord: Supervisord, monkeypatch: pytest.MonkeyPatch) -> Holds:
    """The agent's duty towards it. The record is never asked."""
    monkeypatch.setattr(control, "programs", supervisord.programs)
    nobody: Any = None
    orders: Any = supervisord
    return Holds(nobody, host="web-1", orders=orders, rule=Rule(ends=3, seconds=60.0, lease_seconds=30.0))


def seen_to(
    state: str | None, monkeypatch: pytest.MonkeyPatch, *, in_force: bool, stopped: bool = False
) -> tuple[list[str], list[str]]:
    """What is asked of supervisord for a hold as it stands, and what is told of it."""
    supervisord = Supervisord(state)
    row = OpenHold(1, "web", in_force, stopped, 5.0)
    told = holding(supervisord, monkeypatch)._see_to([row])
    return supervisord.asked, [what for _, what in told]


@pytest.mark.parametrize(
    ("state", "asked", "told"),
    [
        ("RUNNING", ["stop web"], []),
        ("STARTING", ["stop web"], []),
        ("BACKOFF", ["stop web"], []),
        ("STOPPING", [], []),
        ("EXITED", [], []),
        ("STOPPED", [], ["stopped"]),
        ("FATAL", [], ["stopped"]),
        (None, [], ["stopped"]),
    ],
)
def test_who_is_to_be_held_is_stopped_once_it_can_be(
    state: str | None, asked: list[str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_to(state, monkeypatch, in_force=True) == (asked, told)


@pytest.mark.parametrize(
    ("state", "told"),
    [("RUNNING", ["by_others"]), ("STARTING", ["by_others"]), ("STOPPED", []), ("FATAL", []), ("STOPPING", [])],
)
def test_who_was_started_past_the_agent_is_left_alone(
    state: str, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_to(state, monkeypatch, in_force=True, stopped=True) == ([], told)


@pytest.mark.parametrize(
    ("state", "asked", "told"),
    [
        ("STOPPED", ["start web"], ["taken_up"]),
        ("EXITED", ["start web"], ["taken_up"]),
        ("FATAL", ["start web"], ["taken_up"]),
        ("RUNNING", [], ["taken_up"]),
        ("STOPPING", [], []),
        (None, [], ["taken_up"]),
    ],
)
def test_who_supervisord_has_given_up_is_started_again_when_its_time_is_over(
    state: str | None, asked: list[str], told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seen_to(state, monkeypatch, in_force=False) == (asked, told)
    assert seen_to(state, monkeypatch, in_force=False, stopped=True) == (asked, told)


def test_of_a_supervisord_that_does_not_answer_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisord = Supervisord("STOPPED")
    supervisord.answers = False
    held = holding(supervisord, monkeypatch)
    assert held._see_to([OpenHold(1, "web", True, False, 5.0), OpenHold(2, "web", False, True, 0.0)]) == []


def test_who_is_held_is_started_in_time_also_while_the_record_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisord = Supervisord("STOPPED")
    held = holding(supervisord, monkeypatch)
    held._known = {1: duty._Known("web", 100.0)}
    assert held.held == {"web"}

    def at(now: float) -> list[str]:
        monkeypatch.setattr(duty, "time", SimpleNamespace(monotonic=lambda: now))
        held._start_in_time()
        return supervisord.asked

    assert at(100.0 + duty.GRACE_SECONDS / 2) == []
    supervisord.answers = False
    assert at(101.0 + duty.GRACE_SECONDS) == []
    supervisord.answers = True
    assert at(102.0 + duty.GRACE_SECONDS) == ["start web"]
    assert at(103.0 + duty.GRACE_SECONDS) == ["start web"]
    assert held.held == frozenset()


def test_another_agents_holds_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    held = holding(Supervisord("STOPPED"), monkeypatch)
    held._known = {1: duty._Known("web", 100.0)}
    held.forget()
    assert held.held == frozenset()
    assert not held.knows(1)
    assert not held.knows(None)


def test_who_would_release_the_others_is_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held = holding(Supervisord("RUNNING"), monkeypatch)
    held.judge(["listener", "postgres", "first-command", "web"])
    assert held._to_judge == {"web"}


@pytest.fixture
def record(transactional_db: None) -> Iterator[None]:
    """The record, empty."""
    making.empty()
    yield
    making.empty()


def died(launcher: int, fence: int, *jobs: int) -> None:
    """A worker that has these jobs in hand, and whose end its host's agent has noted."""
    worker = run(
        workers.register(replace(REGISTRATION, pid=launcher), authority=making.SYSTEM, tasks=[making.TASK])
    )
    claimed = making.claimed(worker, len(jobs))
    assert {job.id for job in claimed} == set(jobs)
    now = time.time()
    life = Life(program="worker-default-1", pool="default", launcher=launcher, pid=launcher, started=now - 1)
    dead = replace(life, ended=now, ending="signal", signal=9, uptime_seconds=1.0, is_fresh=True)
    assert run(processes.note([dead], authority=making.SYSTEM, host="web-1", fence=fence))


@COMMITTED
def test_jobs_that_two_deaths_had_in_hand_are_taken_back_apart(
    record: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = making.a_host(lease_seconds=3600.0)
    first, second = sorted(making.enqueued(2))
    died(1, fence, first, second)
    held = holding(Supervisord("RUNNING"), monkeypatch)

    async def judged() -> None:
        held._connection = Connection(making.address(), name="test")
        held.judge(["worker-default-1"])
        try:
            await held.run_once(fence)
        finally:
            await held._connection.close()

    asyncio.run(judged())
    assert {making.state(job) for job in (first, second)} == {"running"}
    making.execute("update shiftboss_job set lease_expires_at = now()")
    run(upkeep.reap(authority=making.SYSTEM))
    run(upkeep.stage(authority=making.SYSTEM))
    died(2, fence, first, second)
    asyncio.run(judged())
    run(upkeep.stage(authority=making.SYSTEM))
    assert sorted(making.state(job) for job in (first, second)) == ["available", "retryable"]
    assert {(making.live(job) or {})["losses"] for job in (first, second)} == {1}
    assert run(holds.holds(authority=making.SYSTEM)) == []
