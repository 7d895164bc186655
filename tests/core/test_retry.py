"""When a failed job is tried again."""

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.retry import LONGEST_SECONDS, backoff_seconds, check_backoff, exponential

pytestmark = pytest.mark.requirement("R8")

ERROR = ValueError("no")


def wait(backoff: Any, failures: int = 1) -> float:
    """The wait by this backoff; the default would be from 5 to 10 seconds after the first failure."""
    return backoff_seconds(backoff, ERROR, failures, base_seconds=10, cap_seconds=80)


@given(failures=st.integers(-5, 10**6), base=st.floats(0.001, 1e6), cap=st.floats(0.001, 1e7))
def test_half_of_an_exponential_wait_is_chance_and_the_cap_holds(failures: int, base: float, cap: float) -> None:
    full = min(cap, base * 2 ** min(max(failures, 1) - 1, 60))
    assert full / 2 <= exponential(failures, base_seconds=base, cap_seconds=cap) <= full


def test_each_failure_doubles_the_wait_up_to_the_cap() -> None:
    longest = [max(wait(None, failures) for _ in range(200)) for failures in range(1, 7)]
    assert longest[:3] == sorted(longest[:3])
    for seconds, full in zip(longest, (10, 20, 40, 80, 80, 80), strict=True):
        assert 0.9 * full < seconds <= full


def test_waits_differ_by_chance() -> None:
    assert len({wait(None) for _ in range(50)}) > 40


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 60), (3, 600), (4, 600), (99, 600)])
def test_a_list_gives_each_failure_its_wait_and_repeats_the_last(failures: int, seconds: float) -> None:
    assert wait([1, 60, 600], failures) == seconds


def test_a_number_is_the_wait() -> None:
    assert wait(7) == 7.0
    assert wait(0) == 0.0


def test_a_callable_is_given_the_exception_and_the_number_of_the_failure() -> None:
    asked = []

    def backoff(error: BaseException, failures: int) -> float:
        asked.append((error, failures))
        return 3

    assert wait(backoff, 4) == 3.0
    assert asked == [(ERROR, 4)]


def raising(error: BaseException) -> Any:
    """A backoff that raises."""

    def backoff(*_: Any) -> float:
        raise error

    return backoff


NONSENSE = {
    "raises": raising(RuntimeError("no")),
    "exits": raising(SystemExit(1)),
    "nan": lambda *_: math.nan,
    "none": lambda *_: None,
    "text": lambda *_: "soon",
    "complex": lambda *_: 1j,
    "wrong signature": lambda: 1,
    "empty list": [],
    "object": object(),
    "huge integer": lambda *_: 10**400,
}


@pytest.mark.parametrize("backoff", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_falls_back_to_the_default(backoff: Any) -> None:
    assert 5 <= wait(backoff) <= 10


@pytest.mark.parametrize(
    ("asked", "given"), [(math.inf, LONGEST_SECONDS), (1e18, LONGEST_SECONDS), (-3, 0), (-math.inf, 0)]
)
def test_an_impossible_wait_is_brought_into_bounds(asked: float, given: float) -> None:
    assert wait(lambda *_: asked) == given
    assert wait(asked) == given


@given(backoff=st.floats() | st.lists(st.floats(), max_size=3) | st.decimals(), failures=st.integers(0, 100))
def test_every_wait_is_one_that_the_database_can_add(backoff: Any, failures: int) -> None:
    assert 0 <= wait(backoff, failures) <= LONGEST_SECONDS


@pytest.mark.parametrize("backoff", [0, 1.5, [1], (1, 2.5), lambda error, failures: 1, LONGEST_SECONDS])
def test_a_sound_backoff_is_accepted_at_declaration(backoff: Any) -> None:
    check_backoff(backoff)


@pytest.mark.parametrize(
    "backoff",
    [
        -1,
        [],
        [1, -1],
        math.nan,
        math.inf,
        [math.nan],
        LONGEST_SECONDS + 1,
        True,
        [True],
        "5",
        ["5"],
        None,
        {},
        {5},
        1j,
        Decimal(5),
    ],
)
def test_an_impossible_backoff_is_refused_at_declaration(backoff: Any) -> None:
    with pytest.raises(InvalidJob, match="backoff"):
        check_backoff(backoff)
