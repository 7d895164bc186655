"""Orders and their outcomes, without a keeper at the other end."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from shiftboss.queue.contract import Claimed
from shiftboss.queue.errors import UnknownTask
from shiftboss.queue.resources import resource
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.board import ENDED, NOT_STARTED, SlotBoard
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.frames import Unpacker, pack
from shiftboss.queue.runtime.notes import Teller
from shiftboss.queue.runtime.resources import Pools
from shiftboss.queue.runtime.running import Order, Runner, packed, unpacked

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nothing")


class Lane:
    """A lane that says which one it is, and takes its time to be tidied."""

    def __init__(self, number: int, tidy: Callable[[], bool]) -> None:
        self.number = number
        self._tidy = tidy

    def context(self) -> Context:
        made = Context()
        made.run(variable.set, f"lane {self.number}")
        return made

    async def tidy(self) -> None:
        while not self._tidy():
            await asyncio.sleep(0.001)


@dataclass
class Desk:
    """A runner with what it needs, and the outcomes that it has delivered."""

    tasks: dict[str, Any]
    outcomes: list[list[Any]] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    tidy: Callable[[], bool] = lambda: True
    board: SlotBoard = field(default_factory=SlotBoard)

    def __post_init__(self) -> None:
        self.coroutines = Coroutines(self.lane)
        self.coroutines.start()
        self.teller = Teller(wake=lambda: None)
        self.runner = Runner(
            handlers=self,
            board=self.board,
            margin_seconds=1.0,
            coroutines=self.coroutines,
            teller=self.teller,
            pools=Pools(find=resource, threads=4, coroutines=self.coroutines),
            deliver=self.outcomes.append,
        )

    def known(self) -> dict[str, str]:
        return dict.fromkeys(self.tasks, "thread")

    def resolve(self, name: str, config: TaskConfig | None = None) -> Any:
        if name not in self.tasks:
            raise UnknownTask(name)
        function = self.tasks[name]
        is_async = asyncio.iscoroutinefunction(function)
        return SimpleNamespace(
            config=config or TaskConfig(task=name, backoff=1.0),
            call=function,
            function=function,
            takes_context=False,
            is_async=is_async,
            arguments=lambda args, kwargs: (args, kwargs),
            result=lambda value: value,
        )

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        assert isinstance(config.backoff, float)
        return config.backoff

    def encode_result(self, value: Any) -> str | None:
        return repr(value)

    def task_result(self, job_id: int) -> Any:
        return None

    def after_job(self) -> None:
        pass

    def lane(self) -> Lane:
        self.lanes.append(Lane(len(self.lanes), self.tidy))
        return self.lanes[-1]

    def take(self, name: str, *, ticket: int = 0, **more: Any) -> Any:
        return self.runner.take(Order(ticket, 7, 1, name, '{"args": [], "kwargs": {}}', 0, 0, **more))

    def run(self, name: str, **more: Any) -> Any:
        """Run a task; the facts of its outcome."""
        self.runner.run(self.take(name, **more))
        return self.outcomes.pop()[2:]


def read_and_set() -> str:
    before = variable.get()
    variable.set("something")
    return before


async def read_and_set_in_loop() -> str:
    return read_and_set()


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk({"thread": read_and_set, "loop": read_and_set_in_loop})
    yield desk
    desk.board.close()


@pytest.mark.requirement("R6")
def test_what_a_handler_sets_in_its_context_variables_is_gone_with_it(desk: Desk) -> None:
    assert [desk.run("thread")[0] for _ in range(2)] == ["'nothing'"] * 2
    assert [desk.run("loop")[0] for _ in range(2)] == ["'lane 0'"] * 2
    assert variable.get() == "nothing"


def test_a_lane_that_is_not_tidy_yet_holds_up_nobody_and_is_not_used(desk: Desk) -> None:
    tidy = False
    desk.tidy = lambda: tidy
    assert [desk.run("loop")[0] for _ in range(2)] == ["'lane 0'", "'lane 1'"]
    tidy = True


@pytest.mark.requirement("C4", "L30")
@pytest.mark.parametrize("task", ["thread", "loop"])
def test_an_order_that_was_given_back_is_not_run_and_its_ticket_can_be_used_again(desk: Desk, task: str) -> None:
    ran: list[str] = []
    desk.tasks["thread"] = lambda: ran.append("ran")
    old = desk.take(task)
    desk.runner.cancel(0, "user")
    assert desk.outcomes == [["released", 0, "user"]]
    assert desk.board.state(0) == NOT_STARTED
    new = desk.take("thread")
    desk.runner.run(old)
    assert (ran, len(desk.outcomes)) == ([], 1)
    desk.runner.run(new)
    assert (ran, len(desk.outcomes)) == (["ran"], 2)
    assert desk.board.state(0) == ENDED


@pytest.mark.requirement("L15", "L20")
def test_a_job_runs_by_the_configuration_of_its_revision_and_without_one_by_the_present(desk: Desk) -> None:
    def fail() -> None:
        raise ValueError

    desk.tasks["fails"] = fail
    old = TaskConfig(task="fails", backoff=60.0)
    desk.runner.revise({str(old.revision): old.to_json()})
    waits = [desk.run("fails", revision_id=number)[-3] for number in (old.revision, None, old.revision + 1)]
    assert waits == [60.0, 1.0, 1.0]


@pytest.mark.requirement("L26", "N12")
def test_draining_gives_back_what_has_not_begun_and_what_still_comes(desk: Desk) -> None:
    desk.take("thread", ticket=1)
    desk.runner.drain()
    desk.take("loop", ticket=2)
    assert desk.outcomes == [["released", 1, "shutdown"], ["released", 2, "shutdown"]]


def test_a_task_that_is_not_here_has_not_begun(desk: Desk) -> None:
    assert desk.run("elsewhere") == ["elsewhere"]
    assert desk.board.state(0) == NOT_STARTED


def test_a_cause_of_another_version_is_the_users_wish() -> None:
    assert Cause("solar eclipse") is Cause.USER


def test_the_loop_goes_on_after_a_task_that_ends_it(desk: Desk) -> None:
    async def leave() -> None:
        raise SystemExit

    async def misbehave() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.gather(asyncio.create_task(leave()), return_exceptions=True)
        return "still here"

    desk.tasks["misbehave"] = misbehave
    assert desk.run("misbehave")[0] == "'still here'"
    assert desk.run("loop")[0] == "'lane 0'"


def test_a_coroutine_that_another_cancels_before_its_first_step_is_given_back(desk: Desk) -> None:
    async def cancel_others() -> None:
        while not (others := asyncio.all_tasks() - {asyncio.current_task()}):
            await asyncio.sleep(0)
        for other in others:
            other.cancel()

    desk.tasks["cancel others"] = cancel_others
    runs = [desk.take("cancel others", ticket=1), desk.take("loop", ticket=2)]
    threads = [threading.Thread(target=desk.runner.run, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(outcome[:3] for outcome in desk.outcomes) == [
        ["done", 1, "None"],
        ["released", 2, "not_started"],
    ]
    assert desk.run("loop")[0].startswith("'lane")


@pytest.mark.requirement("B12", "N13")
def test_a_run_that_has_completed_its_job_says_so_and_goes_on_until_it_is_asked_to_end() -> None:
    desk = Desk({})
    run = desk.take("task")
    run.started = True
    run.settle()
    assert desk.teller.take() == [[0, 0, "settled", "", ""]]
    desk.runner.cancel(0, Cause.LEASE_LOST)
    assert run.token.cause is None
    desk.runner.cancel(0, Cause.SHUTDOWN)
    assert run.token.cause is Cause.SHUTDOWN


def test_orders_cross_the_socket_as_they_are() -> None:
    now = datetime.now(UTC)
    jobs = [
        Claimed(1, 4, "default", "one", '{"args":["ä"]}', 0, now, 2, 1, False, 2**62, '{"page":3}'),
        Claimed(2, 1, "default", "one", "{}", 0, now, 0, 0, False, 2**62),
        Claimed(3, 1, "default", "two", "{}", 0, now, 0, 0, True),
        Claimed(4, 1, "default", "one", "{}", 0, now, 0, 0, False, 2**62),
        Claimed(5, 1, "default", "one", "{}", 0, now, 0, 0, False, 7),
    ]
    sent = [(ticket, job, 9 if ticket != 3 else 10) for ticket, job in enumerate(jobs)]
    [message] = Unpacker().feed(pack({"run": packed(sent)}))
    assert list(unpacked(message["run"])) == [Order.of(ticket, job, worker_id=who) for ticket, job, who in sent]
