"""Secrets: given to whom they are for, shown to nobody, kept nowhere."""

import asyncio
import copy
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from shiftboss import conf
from shiftboss.queue import payload
from shiftboss.queue.contract import Lease
from shiftboss.queue.errors import InvalidArguments, LeaseLost, NotAllowed, NotStorable, SecretUnavailable
from shiftboss.queue.handlers import DjangoHandlers
from shiftboss.queue.outcomes import Done
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.board import SlotBoard
from shiftboss.queue.runtime.context import Cancelled, Context
from shiftboss.queue.runtime.notes import Teller
from shiftboss.queue.runtime.running import Order, Runner
from shiftboss.queue.runtime.secrets import Secrets
from shiftboss.queue.secrets import Secret

pytestmark = pytest.mark.requirement("L16", "L22")

VALUE = 'pa"ß/wörd'


def provide(name: str, *, job_id: int, task: str) -> str:
    """As a project's own function."""
    return f"{VALUE} of {name}"


class Desk:
    """A runner of one task that lists the secret `key`, and what has left it."""

    def __init__(self, handler: Callable[[Context], Any], *, value: str = VALUE) -> None:
        self.outcomes: list[list[Any]] = []
        self.asked: list[Any] = []
        self.results: list[str | None] = []
        self.answer: object = value
        self.teller = Teller(wake=lambda: None)
        self.handler = handler
        board = SlotBoard()
        board.set_expiry(0, float("inf"))
        runner = Runner(
            handlers=self,  # type: ignore[arg-type]
            board=board,
            margin_seconds=1.0,
            coroutines=SimpleNamespace(),  # type: ignore[arg-type]
            teller=self.teller,
            pools=SimpleNamespace(),  # type: ignore[arg-type]
            deliver=self.outcomes.append,
        )
        runner.run(runner.take(Order(0, 7, 1, "task", '{"args": [], "kwargs": {}}', 0, 0)))
        board.close()
        [self.outcome] = self.outcomes
        self.told = self.teller.take()

    def secret(self, name: str, *, job_id: int, task: str) -> object:
        self.asked.append((name, job_id, task))
        return self.answer

    def resolve(self, name: str, config: TaskConfig | None = None) -> Any:
        return SimpleNamespace(
            config=TaskConfig(task=name, secrets=("key",), discard_on=("builtins.KeyError",)),
            call=self.handler,
            function=self.handler,
            takes_context=True,
            is_async=False,
            arguments=lambda args, kwargs: (args, kwargs),
            result=lambda value: value,
        )

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        return 1.0

    def encode_result(self, value: Any) -> str | None:
        return payload.encode_result(value, max_bytes=10_000)

    @contextmanager
    def complete_in_transaction(
        self, lease: Lease, worker_id: int, *, done: Callable[[], Done], committed: Callable[[], None]
    ) -> Iterator[None]:
        yield
        self.results.append(done().result)
        committed()

    def after_job(self) -> None:
        pass

    def task_result(self, job_id: int) -> Any:
        return None


def test_a_handler_gets_the_value_asked_for_when_it_wants_it_and_for_its_own_job() -> None:
    def handler(context: Context) -> list[bool]:
        secret = context.secrets["key"]
        return [secret.reveal() == VALUE, isinstance(secret, Secret)]

    desk = Desk(handler)
    assert desk.outcome[:3] == ["done", 0, "[true,true]"]
    assert desk.asked == [("key", 7, "task")]
    assert Desk(lambda context: None).asked == []


def test_only_what_the_task_lists_is_given() -> None:
    desk = Desk(lambda context: context.secrets["other"])
    assert desk.outcome[2:4] == ["handler_raised", "shiftboss.queue.errors.NotAllowed"]
    assert "does not list the secret 'other'" in desk.outcome[4]
    assert desk.asked == []


def test_no_value_leaves_with_what_a_handler_tells_raises_or_returns() -> None:
    def reveal(context: Context) -> str:
        return str(context.secrets["key"].reveal())

    def raising(context: Context) -> None:
        secret = reveal(context)
        raise ValueError(f"401 for {secret}")

    def chained(context: Context) -> None:
        try:
            raising(context)
        except ValueError as error:
            raise RuntimeError("no") from error

    def telling(context: Context) -> None:
        context.progress({"at": reveal(context)})
        context.event("asked", key=reveal(context))
        context.event(reveal(context))
        context.discard(f"no more {reveal(context)}")

    for handler in (reveal, raising, chained, telling, lambda context: {"a": [reveal(context)]}):
        desk = Desk(handler)
        left = json.dumps([desk.outcome, desk.told], ensure_ascii=False)
        assert "********" in left
        for form in ("wörd", "w\\u00f6rd", 'pa\\"'):
            assert form not in left, left


@pytest.mark.parametrize("place", [430, 480, 500, 540])
def test_no_part_of_a_value_leaves_where_a_long_text_is_cut(place: int) -> None:
    value = "S3CR3T" * 20

    def text(context: Context) -> str:
        return "a" * place + str(context.secrets["key"].reveal()) + "b" * 40_000

    def raising(context: Context) -> None:
        raise ValueError(text(context))

    def named(context: Context) -> None:
        raise KeyError(text(context))

    def invalid(context: Context) -> None:
        raise InvalidArguments(text(context))

    def discarding(context: Context) -> None:
        context.discard(text(context))

    def cancelled(context: Context) -> None:
        raise Cancelled(text(context)[place - 40 :])

    kinds = []
    for handler in (raising, named, invalid, discarding, cancelled):
        desk = Desk(handler, value=value)
        kinds.append(desk.outcome[0])
        assert "aaaa" in str(desk.outcome)
        assert "S3C" not in str(desk.outcome)
    assert kinds == ["failed", "discarded", "quarantined", "discarded", "released"]


def test_no_value_leaves_with_the_result_of_a_job_that_its_handler_completes() -> None:
    def completing(context: Context) -> None:
        with context.complete_in_transaction({"a": context.secrets["key"].reveal()}):
            pass

    desk = Desk(completing)
    assert (desk.outcome[0], desk.results) == ("settled", ['{"a":"********"}'])


def test_a_run_that_is_over_gets_no_more() -> None:
    kept: list[Context] = []
    desk = Desk(kept.append)
    with pytest.raises(LeaseLost, match="over"):
        kept[0].secrets["key"]
    assert desk.asked == []


def test_a_short_value_and_bytes() -> None:
    answers = iter(["abc", b"\xff\xfe-bytes"])
    secrets = Secrets(["a"], provide=lambda name: next(answers))
    assert secrets["a"].reveal() == "abc"
    assert secrets.hidden("abcdef") == "abcdef"  # too short to be looked for
    assert secrets["a"].reveal() == b"\xff\xfe-bytes"
    assert secrets.hidden("x \ufffd\ufffd-bytes y") == "x ******** y"


@pytest.mark.parametrize("answer", [None, 7, ["a"]])
def test_what_is_no_secret_is_none(answer: object) -> None:
    with pytest.raises(SecretUnavailable, match="text or bytes"):
        Secrets(["a"], provide=lambda name: answer)["a"]


def test_a_coroutine_asks_in_another_thread() -> None:
    asked_in: list[threading.Thread] = []

    def slow(name: str) -> Secret:
        asked_in.append(threading.current_thread())
        return Secret("of its own", "v")

    secret = asyncio.run(Secrets(["a"], provide=slow).aget("a"))
    assert (secret.name, secret.reveal()) == ("a", "v")
    assert asked_in != [threading.current_thread()]


def test_a_secret_shows_a_mask_and_goes_nowhere() -> None:
    secret = Secret("key", VALUE)
    assert VALUE not in f"{secret} {secret!r} {secret:>20} %s %r {[secret]}" % (secret, secret)
    assert str(secret) == "********"
    for go in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            go(secret)
    for encode in (
        lambda: payload.encode_result({"a": [secret]}, max_bytes=1000),
        lambda: payload.encode_arguments([secret], {}, max_bytes=1000),
        lambda: payload.encode_note(secret, what="event", max_bytes=1000),
    ):
        with pytest.raises(NotStorable, match="is the secret 'key', which is stored nowhere"):
            encode()


def test_the_projects_own_function_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = DjangoHandlers()
    with pytest.raises(SecretUnavailable, match="SECRET_PROVIDER"):
        handlers.secret("key", job_id=7, task="task")
    config = conf.read({"SECRET_PROVIDER": f"{__name__}.provide"})
    monkeypatch.setattr(handlers, "_config", config)
    assert handlers.secret("key", job_id=7, task="task") == f"{VALUE} of key"


def test_a_run_without_a_worker_has_none() -> None:
    context = Context(job_id=0, fence=0, attempt=1)
    with pytest.raises(NotAllowed):
        context.secrets["key"]
    with pytest.raises(SecretUnavailable, match="without a worker"):
        Secrets(["key"])["key"]
