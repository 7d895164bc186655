"""What is kept of an exception."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shiftboss.queue.runtime.evidence import MAX_MESSAGE, MAX_TRACEBACK, Evidence, describe, storable
from shiftboss.queue.runtime.output import MAX_OUTPUT, Tail

pytestmark = pytest.mark.requirement("L29", "S12")


def raised(function: Callable[[], Any]) -> BaseException:
    """What a call raises."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def evidence(error: BaseException) -> Evidence:
    """The evidence of an exception that is raised here."""

    def throw() -> None:
        raise error

    return describe(raised(throw), skip_frames=1)


def test_type_message_and_traceback_are_kept() -> None:
    kept = evidence(KeyError("invoice"))
    assert (kept.type, kept.message) == ("KeyError", "'invoice'")
    assert kept.traceback.startswith("Traceback (most recent call last)")
    assert kept.traceback.rstrip().endswith("KeyError: 'invoice'")


def test_frames_of_the_caller_are_left_out() -> None:
    assert "in raised" not in evidence(ValueError()).traceback
    assert "in throw" in evidence(ValueError()).traceback


def test_a_type_is_named_with_its_module() -> None:
    class Odd(Exception):
        pass

    assert evidence(Odd()).type == f"{__name__}.test_a_type_is_named_with_its_module.<locals>.Odd"


def raising(error: BaseException) -> Any:
    """A method that raises."""

    def method(self: Any) -> str:
        raise error

    return method


@pytest.mark.parametrize("second", [RuntimeError("no"), RecursionError(), SystemExit(3)])
def test_an_exception_that_cannot_be_printed_is_described_all_the_same(second: BaseException) -> None:
    Unprintable = type("Unprintable", (Exception,), {"__str__": raising(second), "__repr__": raising(second)})
    kept = evidence(Unprintable())
    assert type(second).__name__ in kept.message
    assert kept.traceback


def test_an_exception_whose_text_is_no_text_is_described_all_the_same() -> None:
    Odd = type("Odd", (Exception,), {"__str__": lambda self: 7})
    assert "TypeError" in evidence(Odd()).message


def test_nul_and_lone_surrogates_are_written_out() -> None:
    kept = evidence(ValueError("a\x00b\ud800c"))
    assert kept.message == "a\\x00b\\ud800c"
    assert "\x00" not in kept.traceback
    assert kept.traceback.encode()


def test_long_texts_are_bounded_and_keep_their_ends() -> None:
    kept = evidence(ValueError("begin " + "x" * 1_000_000 + " end"))
    assert len(kept.message) <= MAX_MESSAGE
    assert kept.message.startswith("begin")
    assert kept.message.endswith("end")
    assert "characters left out" in kept.message
    assert len(kept.traceback) <= MAX_TRACEBACK
    assert kept.traceback.startswith("Traceback")


@example(text="\x00" * 300, longest=100)
@example(text="a" * 80 + "\ud800" * 30, longest=120)
@given(text=st.text(max_size=300) | st.text("\x00\ud800\udfffa", max_size=300), longest=st.integers(100, 200))
def test_any_text_becomes_one_that_can_be_stored_within_its_bound(text: str, longest: int) -> None:
    stored = storable(text, longest)
    assert len(stored) <= longest
    assert "\x00" not in stored
    assert stored.encode().decode() == stored


@pytest.mark.requirement("L22")
@pytest.mark.parametrize("before", [440, 450, 460, 480, 500, MAX_TRACEBACK // 2 - 200])
def test_what_is_to_be_hidden_is_hidden_before_anything_is_cut(before: int) -> None:
    secret = "S3CR3T\x00-" + "k" * 60
    text = "a" * before + secret + "b" * (before + 30_000)
    kept = describe(ValueError(text), hidden=lambda told: told.replace(secret, "***"))
    assert "S3CR3T" not in kept.message + kept.traceback
    assert "k" * 4 not in kept.message + kept.traceback


def test_endless_recursion_is_described() -> None:
    def deeper() -> None:
        deeper()

    kept = describe(raised(deeper))
    assert kept.type == "RecursionError"
    assert len(kept.traceback) <= MAX_TRACEBACK


def test_a_chain_of_causes_is_told() -> None:
    def throw() -> None:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error

    assert "KeyError: 'first'" in describe(raised(throw)).traceback


HANDLER = """
def helper(value):
    raise {error}(f"bad {{value}}")

def handler(value):
    helper(value)
"""


def failure(source: str, value: Any, *, module: str = "shop.tasks") -> BaseException:
    """What a handler raises whose module has this source."""
    home = ModuleType(module)
    exec(compile(source, "tasks.py", "exec"), home.__dict__)
    return raised(lambda: home.handler(value))


def test_failures_of_one_kind_have_one_fingerprint() -> None:
    source = HANDLER.format(error="ValueError")
    prints = {
        describe(failure(source, 1), skip_frames=2).fingerprint,
        describe(failure(source, "other value"), skip_frames=2).fingerprint,
        describe(failure("\n\n# a comment\n" + source, 1), skip_frames=2).fingerprint,
    }
    assert len(prints) == 1


def test_failures_of_different_kinds_have_different_fingerprints() -> None:
    source = HANDLER.format(error="ValueError")
    direct = "def handler(value):\n    raise ValueError(value)"
    prints = [
        describe(failure(source, 1), skip_frames=2).fingerprint,
        describe(failure(HANDLER.format(error="KeyError"), 1), skip_frames=2).fingerprint,
        describe(failure(direct, 1), skip_frames=2).fingerprint,
        describe(failure(source, 1, module="shop.other"), skip_frames=2).fingerprint,
    ]
    assert len(set(prints)) == len(prints)


@given(st.lists(st.text(alphabet="ab\n ", max_size=MAX_OUTPUT + 10), max_size=8))
@example(["a" * (MAX_OUTPUT + 1)])
@example(["a" * MAX_OUTPUT])
@example(["b\n", "a" * (MAX_OUTPUT - 1)])
def test_of_what_was_written_the_last_whole_lines_are_kept(texts: list[str]) -> None:
    tail = Tail()
    for text in texts:
        tail.add(text)
    whole, kept = "".join(texts), str(tail)
    assert whole.endswith(kept)
    if len(whole) <= MAX_OUTPUT:
        assert kept == whole
    elif "\n" in whole[-MAX_OUTPUT:]:
        assert kept == whole[-MAX_OUTPUT:].partition("\n")[2]
    else:
        assert kept == whole[-MAX_OUTPUT:].partition(" ")[2]
