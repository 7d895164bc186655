"""Executors that are started, tainted and watched, without a process of theirs."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shiftboss.queue.contract import Claimed
from shiftboss.queue.outcomes import Released
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.board import ENDED, DeadlineBoard
from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.escalation import Escalation
from shiftboss.queue.runtime.executor_process import ExecutorProcess
from shiftboss.queue.runtime.holdings import Holdings
from shiftboss.queue.runtime.keeper import Keeper
from shiftboss.queue.runtime.notes import SETTLED
from tests.clients.conftest import keeper_config


@pytest.fixture
def config(tmp_path: Path) -> KeeperConfig:
    """Of a worker with one shared executor."""
    return replace(keeper_config(""), threads=2, run_folder=str(tmp_path))


def some_children(config: KeeperConfig, **calls: Callable[..., None]) -> Children:
    """A keeper's children, without the keeper."""

    def nothing(*_: Any) -> None:
        pass

    wanted = {name: calls.get(name, nothing) for name in ("hear", "report", "give_up")}
    return Children(config=config, clock=lambda: 0.0, **wanted)


def some_executor(config: KeeperConfig, clock: Callable[[], float]) -> ExecutorProcess:
    """An executor without a process."""
    return ExecutorProcess(
        place=0,
        solo=False,
        mark="",
        config=config,
        deadlines=DeadlineBoard(),
        clock=clock,
        on_message=lambda *_: None,
        on_death=lambda *_: None,
    )


def some_jobs(number: int) -> list[Claimed]:
    """So many jobs as they are claimed."""
    now = datetime.now(UTC)
    return [Claimed(one, 1, "default", "task", "{}", 0, now, 0, 0, False) for one in range(number)]


class Stub:
    """An executor with a run that has not heard, and one that may end well."""

    is_put_down = False
    pid = 1

    def __init__(self, *, solo: bool = False) -> None:
        self.solo = solo
        self.neighbours = [] if solo else ["another run"]

    def taint(self) -> None:
        """Nothing more."""


async def starts_well(_: ExecutorProcess) -> None:
    """In the place of `ExecutorProcess.start`."""


@pytest.mark.requirement("N13", "R5")
def test_only_shared_executors_that_are_kept_for_others_bring_a_worker_to_its_end(
    config: KeeperConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExecutorProcess, "start", starts_well)
    given_up: list[bool] = []

    async def work() -> None:
        children = some_children(config, give_up=lambda: given_up.append(True))
        deaf: list[Any] = [Stub(solo=True), Stub(), Stub(), Stub()]
        children.solo.append(deaf[0])
        children.shared.extend(deaf[1:])
        children.taint(deaf[0])
        children.taint(deaf[1])
        assert (children.tainted, given_up) == (deaf[:2], [])
        deaf[1].is_put_down = True
        children.taint(deaf[2])
        assert (children.tainted, given_up) == (deaf[:3], [])
        children.taint(deaf[3])
        assert (children.tainted, given_up, children.overrun) == (deaf[:3], [True], True)

    asyncio.run(work())


@pytest.mark.requirement("N13", "N12")
def test_where_an_executor_for_one_job_cannot_be_started_another_is_tried(
    config: KeeperConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[ExecutorProcess] = []

    async def start(executor: ExecutorProcess) -> None:
        starts.append(executor)
        if len(starts) == 1:
            raise BlockingIOError("no more processes")

    monkeypatch.setattr(ExecutorProcess, "start", start)

    async def work() -> None:
        children = some_children(config, hear=lambda *_: children.provide_solo(1))
        children.provide_solo(1)
        for _ in range(600):
            if len(starts) == 2:
                break
            await asyncio.sleep(0.05)
        assert (len(starts), children.solo) == (2, starts[1:])

    asyncio.run(work())


@pytest.mark.requirement("N13", "R6")
def test_a_run_that_has_ended_is_in_time_however_late_that_is_heard(config: KeeperConfig) -> None:
    now = 100.0
    children = some_children(config)
    holdings = Holdings(60.0)
    executor = some_executor(config, lambda: now)
    claimed = some_jobs(2)
    in_time, late = held = holdings.claimed(claimed, now)
    escalation = Escalation(grace_seconds=1.0, clock=lambda: now, holdings=holdings, children=children)
    for one in held:
        one.config = TaskConfig(task="task", timeout_seconds=2.0)
        escalation.watch(one)
    executor.run(held)
    board = executor._board
    for one in held:
        board.begin(one.ticket, now)
    board.mark(in_time.ticket, ENDED)
    now = 103.0
    asyncio.run(escalation.run_once())
    assert [one.cause for one in held] == [None, Cause.TIMEOUT]
    board.mark(late.ticket, ENDED)  # as it was asked to
    now = 105.0
    asyncio.run(escalation.run_once())
    assert [one.deaf for one in held] == [False, False]
    assert executor.neighbours == [in_time, late]  # they are heard before anybody ends their executor


class Store:
    """A client that is asked for nothing."""

    complete = fail = release = snooze = discard = quarantine = reap_own = None


@pytest.mark.requirement("B12", "N13")
def test_a_run_that_has_completed_its_job_has_no_lease_to_lose(config: KeeperConfig) -> None:
    store: Any = Store()
    keeper = Keeper(config, store, None)  # type: ignore[arg-type]
    executor = some_executor(config, lambda: 100.0)
    [held] = keeper._holdings.claimed(some_jobs(1), 100.0)
    executor.run([held])
    keeper._hear(executor, {"notes": [[held.ticket, 0, SETTLED, "", ""]]})
    assert (len(keeper._holdings), list(executor.in_hand.values())) == (0, [held])
    # It is neither prolonged nor ended at what was its expiry, and its process may die.
    assert (executor._board.expiry(held.ticket), executor._deadline) == (math.inf, math.inf)
    keeper._report(held, Released("shutdown"))
    assert keeper._reporter.pending == 0
    [other] = keeper._holdings.claimed(some_jobs(1), 100.0)
    executor.run([other])
    assert executor._deadline == other.expires_at - config.margin_seconds
