"""What jobs are lent: pools without and with a runner around them."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from shiftboss.queue import resources as declared
from shiftboss.queue.errors import InvalidJob, UnknownResource
from shiftboss.queue.resources import Resource
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime import resources
from shiftboss.queue.runtime.board import SlotBoard
from shiftboss.queue.runtime.context import Context
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.notes import Teller
from shiftboss.queue.runtime.resources import Pools
from shiftboss.queue.runtime.running import Order, Runner
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("R1")


class Shop:
    """Makes things, numbered, and keeps a list of what was done to them."""

    def __init__(self, *, in_loop: bool = False) -> None:
        self.did: list[str] = []
        self.bad: set[int] = set()
        self.made = 0
        self.broken = False
        self.create: Callable[..., Any] = self._create
        self.destroy: Callable[..., Any] = self._destroy
        self.validate: Callable[..., Any] = self._validate
        if in_loop:
            self.create, self.destroy, self.validate = self._acreate, self._adestroy, self._avalidate

    def _create(self) -> int:
        if self.broken:
            raise ConnectionError("no answer")
        self.made += 1
        self.did.append(f"made {self.made}")
        return self.made

    def _destroy(self, one: int) -> None:
        self.did.append(f"destroyed {one}")

    def _validate(self, one: int) -> bool:
        self.did.append(f"looked at {one}")
        return one not in self.bad

    async def _acreate(self) -> int:
        await asyncio.sleep(0)
        return self._create()

    async def _adestroy(self, one: int) -> None:
        await asyncio.sleep(0)
        self._destroy(one)

    async def _avalidate(self, one: int) -> bool:
        await asyncio.sleep(0)
        return self._validate(one)


class Lane:
    """A lane that needs no tidying."""

    def context(self) -> Any:
        return contextvars.Context()

    async def tidy(self) -> None:
        pass


class Desk:
    """A runner of tasks that are lent what the shop makes."""

    def __init__(self, shop: Shop, *, maximum: int | None = 1, threads: int = 4) -> None:
        self.shop = shop
        self.outcomes: list[list[Any]] = []
        self.tasks: dict[str, Any] = {}
        self.board = SlotBoard()
        self.tickets = iter(range(100))
        thing = SimpleNamespace(
            name="thing", create=shop.create, destroy=shop.destroy, validate=shop.validate, maximum=maximum
        )
        self.known = {"thing": thing}
        self.coroutines = Coroutines(Lane)
        self.coroutines.start()
        self.pools = Pools(find=self._find, threads=threads, coroutines=self.coroutines)
        self.runner = Runner(
            handlers=self,  # type: ignore[arg-type]
            board=self.board,
            margin_seconds=1.0,
            coroutines=self.coroutines,
            teller=Teller(wake=lambda: None),
            pools=self.pools,
            deliver=self.outcomes.append,
        )

    def _find(self, name: str) -> Any:
        if name not in self.known:
            raise UnknownResource(f"there is no resource {name!r}")
        return self.known[name]

    def resolve(self, name: str, config: TaskConfig | None = None) -> Any:
        function = self.tasks[name]
        return SimpleNamespace(
            config=TaskConfig(task=name, resource="nothing" if name == "lost" else "thing"),
            call=function,
            function=function,
            takes_context=True,
            arguments=lambda args, kwargs: (args, kwargs),
            result=lambda value: value,
            is_async=asyncio.iscoroutinefunction(function),
        )

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        return 1.0

    def encode_result(self, value: Any) -> str | None:
        return repr(value)

    def after_job(self) -> None:
        pass

    def task_result(self, job_id: int) -> Any:
        return None

    def begin(self, name: str) -> tuple[int, threading.Thread]:
        """Run a task in a thread of its own; its ticket and the thread."""
        ticket = next(self.tickets)
        self.board.set_expiry(ticket, float("inf"))
        order = Order(ticket, 7, 1, name, '{"args": [], "kwargs": {}}', 0, 0)
        thread = threading.Thread(target=partial(self.runner.run, self.runner.take(order)), daemon=True)
        thread.start()
        return ticket, thread

    def run(self, name: str) -> list[Any]:
        """Run a task; its outcome."""
        _, thread = self.begin(name)
        thread.join(10)
        return self.outcomes.pop()

    def figures(self) -> tuple[int, int, int]:
        """Made, lent, waiting."""
        found = self.pools.figures()["thing"]
        return found["made"], found["lent"], found["waiting"]


def use(context: Context) -> int:
    """The resource, which is a number."""
    return int(context.resource)


async def use_in_loop(context: Context) -> int:
    await asyncio.sleep(0)
    return use(context)


def fail(context: Context) -> None:
    raise ValueError("no")


@pytest.fixture(params=["plain functions", "coroutine functions"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """One thing at most, made by plain functions or by coroutine functions."""
    yield (desk := Desk(Shop(in_loop=request.param == "coroutine functions")))
    desk.board.close()


@pytest.fixture
def gate() -> threading.Event:
    """What handlers may wait for."""
    return threading.Event()


@pytest.mark.parametrize("handler", [use, use_in_loop])
def test_a_job_is_lent_one_that_is_made_once_and_found_good_before_the_next(handler: Any, desk: Desk) -> None:
    desk.tasks["use"] = handler
    assert [desk.run("use")[2] for _ in range(3)] == ["1"] * 3
    assert desk.shop.did == ["made 1", "looked at 1", "looked at 1"]
    assert desk.figures() == (1, 0, 0)
    desk.pools.close()
    assert desk.shop.did[3:] == ["destroyed 1"]
    assert desk.figures() == (0, 0, 0)


@pytest.mark.parametrize("handler", [use, use_in_loop])
def test_one_that_is_not_good_any_more_is_destroyed_and_another_made(handler: Any, desk: Desk) -> None:
    desk.tasks["use"] = handler
    desk.run("use")
    desk.shop.bad = {1}
    assert desk.run("use")[2] == "2"
    assert desk.shop.did == ["made 1", "looked at 1", "destroyed 1", "made 2"]
    assert desk.figures() == (1, 0, 0)


def test_it_is_given_back_whatever_becomes_of_the_job(desk: Desk) -> None:
    desk.tasks |= {"fail": fail, "exit": lambda context: exit(3), "use": use}
    assert [desk.run(name)[0] for name in ("fail", "exit", "use")] == ["failed", "failed", "done"]
    assert (desk.shop.made, desk.figures()) == (1, (1, 0, 0))


@pytest.mark.parametrize("handler", [use, use_in_loop])
def test_a_create_that_raises_is_a_failure_of_its_job_and_the_next_one_tries_again(
    handler: Any, desk: Desk
) -> None:
    desk.tasks["use"] = handler
    desk.shop.broken = True
    kind, _, code, error_type, message, *_ = desk.run("use")
    assert (kind, code, error_type, message) == ("failed", "resource_failed", "ConnectionError", "no answer")
    assert desk.figures() == (0, 0, 0)
    desk.shop.broken = False
    assert desk.run("use")[2] == "1"


def test_a_resource_that_nobody_declared_is_a_failure_that_says_so(desk: Desk) -> None:
    desk.tasks["lost"] = use
    _, _, code, error_type, message, *_ = desk.run("lost")
    assert (code, error_type) == ("resource_failed", "shiftboss.queue.errors.UnknownResource")
    assert "no resource 'nothing'" in message


@pytest.mark.parametrize("in_loop", [False, True])
def test_those_who_wait_get_theirs_in_the_order_in_which_they_came(
    in_loop: bool, desk: Desk, gate: threading.Event
) -> None:
    order: list[str] = []

    def hold(context: Context) -> None:
        gate.wait(20)

    def noted(name: str) -> Any:
        def plain(context: Context) -> None:
            order.append(name)

        async def coroutine(context: Context) -> None:
            plain(context)

        return coroutine if in_loop else plain

    desk.tasks["hold"] = hold
    _, holding = desk.begin("hold")
    wait_for(lambda: desk.shop.made, seconds=10)
    threads = [holding]
    for number, name in enumerate("abc"):
        desk.tasks[name] = noted(name)
        threads.append(desk.begin(name)[1])
        wait_for(lambda: desk.figures()[2] == number + 1, seconds=10)  # noqa: B023
    assert desk.figures() == (1, 1, 3)
    gate.set()
    for thread in threads:
        thread.join(10)
    assert order == ["a", "b", "c"]
    assert desk.figures() == (1, 0, 0)


@pytest.mark.requirement("R1", "N11", "L26")
@pytest.mark.parametrize("handler", [use, use_in_loop])
@pytest.mark.parametrize("how", ["cancelled", "draining"])
def test_a_job_that_should_end_leaves_the_line_and_is_given_back_unrun(
    how: str, handler: Any, desk: Desk, gate: threading.Event
) -> None:
    desk.tasks |= {"hold": lambda context: gate.wait(20), "use": handler}
    _, holding = desk.begin("hold")
    wait_for(lambda: desk.shop.made, seconds=10)
    ticket, waiting = desk.begin("use")
    wait_for(lambda: desk.figures()[2] == 1, seconds=10)
    if how == "cancelled":
        desk.runner.cancel(ticket, "user")
    else:
        desk.runner.drain()
    waiting.join(10)
    assert [told[:3] for told in desk.outcomes] == [
        ["released", ticket, "user" if how == "cancelled" else "shutdown"]
    ]
    assert desk.figures() == (1, 1, 0)
    gate.set()
    holding.join(10)
    assert desk.figures() == (1, 0, 0)


def test_a_spoilt_one_that_cannot_be_made_anew_leaves_the_chance_to_the_next_in_line(
    desk: Desk, gate: threading.Event
) -> None:
    desk.tasks |= {"hold": lambda context: gate.wait(20), "use": use}
    _, holding = desk.begin("hold")
    wait_for(lambda: desk.shop.made, seconds=10)
    threads = [desk.begin("use")[1] for _ in range(2)]
    wait_for(lambda: desk.figures()[2] == 2, seconds=10)
    desk.shop.bad, desk.shop.broken = {1}, True
    gate.set()
    for thread in (holding, *threads):
        thread.join(10)
    assert sorted(outcome[0] for outcome in desk.outcomes) == ["done", "failed", "failed"]
    assert desk.figures() == (0, 0, 0)


@pytest.mark.parametrize(("maximum", "threads", "most"), [(None, 3, 3), (2, 3, 2), (9, 3, 3)])
def test_there_are_never_more_than_the_maximum_nor_than_threads(
    maximum: int | None, threads: int, most: int, gate: threading.Event
) -> None:
    desk = Desk(Shop(), maximum=maximum, threads=threads)
    desk.tasks["hold"] = lambda context: gate.wait(20)
    running = [desk.begin("hold")[1] for _ in range(4)]
    wait_for(lambda: desk.pools.figures() and sum(desk.figures()[1:]) == 4, seconds=10)
    assert desk.figures() == (most, most, 4 - most)
    gate.set()
    for thread in running:
        thread.join(10)
    assert (desk.shop.made, desk.figures()) == (most, (most, 0, 0))
    desk.board.close()


def test_one_whose_turn_comes_while_it_leaves_passes_it_on(desk: Desk) -> None:
    pool = desk.pools.pool("thing")
    lent = desk.pools.drive(pool.borrow(), lambda: None)
    plan = pool.borrow()
    assert isinstance(next(plan), resources.Future)
    pool.give_back(lent)
    with pytest.raises(KeyboardInterrupt):
        plan.throw(KeyboardInterrupt())
    assert desk.figures() == (1, 0, 0)


@pytest.mark.parametrize(("answer", "is_good"), [(None, True), (True, True), (False, False), (0, False)])
def test_a_validation_that_answers_nothing_has_found_it_good(answer: Any, is_good: bool) -> None:
    shop = Shop()
    shop.validate = lambda one: answer
    desk = Desk(shop)
    desk.tasks["use"] = use
    assert [desk.run("use")[2] for _ in range(2)] == ["1", "1" if is_good else "2"]
    desk.board.close()


def test_what_validate_and_destroy_raise_ends_no_job() -> None:
    shop = Shop()
    shop.validate = shop.destroy = lambda one: 1 / 0  # type: ignore[assignment, return-value]
    desk = Desk(shop)
    desk.tasks["use"] = use
    assert [desk.run("use")[2] for _ in range(2)] == ["1", "2"]
    desk.pools.close()
    desk.board.close()


def test_changes_are_told_at_most_so_often() -> None:
    now, woken = 100.0, 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    shop = Shop()
    pools = Pools(
        find=lambda name: Resource(name, create=shop.create),
        threads=4,
        coroutines=None,  # type: ignore[arg-type]
        wake=wake,
        clock=lambda: now,
    )
    assert (pools.pause(), pools.news()) == (None, None)
    with pools.lend("told", lambda: None):
        assert pools.pause() == 0.0
        assert pools.news() == {"told": {"made": 1, "lent": 1, "waiting": 0}}
        assert (pools.pause(), pools.news()) == (None, None)
    assert woken == 2
    assert (pools.pause(), pools.news()) == (resources.TELL_SECONDS, None)
    now += resources.TELL_SECONDS
    assert pools.news() == {"told": {"made": 1, "lent": 0, "waiting": 0}}


@pytest.mark.requirement("R1", "R11")
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"name": "", "create": dict}, "1 to 200"),
        ({"name": "a\n", "create": dict}, "printable"),
        ({"name": "a", "create": None}, "create must be a function"),
        ({"name": "a", "create": dict, "destroy": 3}, "destroy must be a function"),
        ({"name": "a", "create": dict, "maximum": 0}, "from 1 on"),
        ({"name": "a", "create": dict, "maximum": True}, "from 1 on"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidJob, match=words):
        Resource(how.pop("name"), **how)


def test_a_name_stands_for_one_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared, "_declared", {})
    mine = Resource("mine", create=use)
    assert declared.resource("mine") is mine
    again = Resource("mine", create=use)  # the same module, executed twice
    assert declared.resource("mine") is again
    with pytest.raises(InvalidJob, match=r"made by tests\.runtime\.test_resources\.use"):
        Resource("mine", create=fail)
    with pytest.raises(UnknownResource, match=r"shiftboss\.Resource"):
        declared.resource("yours")
