"""Runs of handlers with type hints, without a keeper at the other end."""

from collections.abc import Iterator
from typing import Any

import pytest

from shiftboss.queue import payload
from shiftboss.queue.handlers import DjangoHandlers
from shiftboss.queue.resources import resource
from shiftboss.queue.runtime.board import SlotBoard
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.notes import Teller
from shiftboss.queue.runtime.resources import Pools
from shiftboss.queue.runtime.running import Order, Runner

ID = "00000000-0000-0000-0000-000000000001"
PARCEL = {"id": ID, "weight": "2"}


class Desk:
    """A runner of the tasks in `tests.runtime.hinted`."""

    def __init__(self) -> None:
        handlers = DjangoHandlers()
        self.board = SlotBoard()
        self._outcomes: list[list[Any]] = []
        coroutines = Coroutines(handlers.lane)
        coroutines.start()
        self._runner = Runner(
            handlers=handlers,
            board=self.board,
            margin_seconds=1.0,
            coroutines=coroutines,
            teller=Teller(wake=lambda: None),
            pools=Pools(find=resource, threads=1, coroutines=coroutines),
            deliver=self._outcomes.append,
        )

    def run(self, name: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Kind and facts of the outcome."""
        text = payload.encode_arguments(args, kwargs, max_bytes=2**20)
        self._runner.run(self._runner.take(Order(0, 7, 1, f"tests.runtime.hinted.{name}", text, 0, 0)))
        kind, _, *facts = self._outcomes.pop()
        return [kind, *facts]


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.board.close()


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("name", ["send", "send_in_loop", "send_in_a_thread"])
def test_inputs_become_what_the_hints_say_and_results_what_can_be_stored(desk: Desk, name: str) -> None:
    kind, result, _ = desk.run(name, PARCEL)
    assert (kind, payload.decode(result, typed=False)) == ("done", {"id": ID, "weight": 2.0})


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("name", ["send", "send_in_loop", "send_in_a_thread"])
def test_a_bad_input_quarantines_the_job_and_names_the_field_but_no_value(desk: Desk, name: str) -> None:
    kind, reason, message, _ = desk.run(name, {"id": "sk_live_4111", "weight": 1})
    assert (kind, reason) == ("quarantined", "invalid_arguments")
    assert message == "the arguments do not fit the task: parcel.id: Input should be a valid UUID"


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("name", ["send", "send_in_loop", "send_in_a_thread"])
def test_arguments_that_no_longer_fit_the_signature_quarantine_the_job(desk: Desk, name: str) -> None:
    for args, kwargs in (([], {}), ([PARCEL, 1, 2], {}), ([PARCEL], {"colour": 1})):
        assert desk.run(name, *args, **kwargs)[:2] == ["quarantined", "invalid_arguments"]


@pytest.mark.requirement("R7")
def test_a_bad_result_is_a_failure_that_names_it_and_tells_no_value(desk: Desk) -> None:
    kind, code, error, message, *rest = desk.run("answer", "text")
    assert (kind, code, error) == ("failed", "invalid_result", "shiftboss.queue.errors.InvalidResult")
    assert "result: Input should be a valid dictionary or instance of Parcel" in message
    assert "4111" not in str([message, *rest])


@pytest.mark.requirement("R7", "L29")
@pytest.mark.parametrize(
    ("name", "args", "code", "error", "words"),
    [
        ("answer", ["nan"], "result_not_storable", "shiftboss.queue.errors.NotStorable", "is nan"),
        ("answer", ["surrogate"], "result_not_storable", "shiftboss.queue.errors.NotStorable", "lone surrogate"),
        ("answer_much", [], "result_not_storable", "shiftboss.queue.errors.NotStorable", "2,000,002 bytes"),
        ("leave_by_input", [1], "handler_raised", "SystemExit", "3"),
        ("leave_by_result", [], "executor_error", "SystemExit", "outside of its handler"),
        ("fail", ["mute"], "handler_raised", "tests.runtime.hinted.Mute", "raised RuntimeError"),
        ("fail", ["recursion"], "handler_raised", "RecursionError", "recursion"),
        ("fail", ["long"], "handler_raised", "ValueError", "characters left out"),
    ],
)
def test_whatever_is_hard_to_tell_is_a_failure_with_a_bounded_text(
    desk: Desk, name: str, args: list[Any], code: str, error: str, words: str
) -> None:
    kind, found, kind_of_error, message, _, trace, wait, *_ = desk.run(name, *args)
    assert (kind, found, kind_of_error) == ("failed", code, error)
    assert words in message
    assert len(message) <= 1000
    assert len(trace) <= 32_000
    assert wait >= 0
    assert desk.run("send", PARCEL)[0] == "done"


@pytest.mark.requirement("R8")
@pytest.mark.parametrize(
    ("how", "wait"),
    [("reset", 7.0), ("group", 7.0), ("mixed", None), ("other", None), ("exit", None), ("nan", 7.0)],
)
def test_only_a_failure_that_retry_on_names_is_retried(desk: Desk, how: str, wait: float | None) -> None:
    kind, code, *_, found, _, _ = desk.run("choose", how)
    assert (kind, found) == ("failed", wait)
    assert code == ("invalid_result" if how == "nan" else "handler_raised")


@pytest.mark.requirement("R8")
@pytest.mark.parametrize(("how", "words"), [("key", "KeyError: "), ("mute", "MuteLookup: <str() of")])
def test_a_failure_that_discard_on_names_ends_the_job_and_says_why(desk: Desk, how: str, words: str) -> None:
    kind, message, *_ = desk.run("choose", how)
    assert kind == "discarded"
    assert words in message
