"""How much work is leased ahead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.runtime.durations import AHEAD_SECONDS, MAX_AHEAD, QUEUED_SECONDS, Durations

pytestmark = pytest.mark.requirement("L1")


def test_nothing_is_leased_ahead_before_something_was_measured() -> None:
    assert Durations().prefetch(8) == 0
    assert Durations().queued("task", 8) == 0


def test_about_a_quarter_of_a_second_of_work_is_leased_ahead() -> None:
    durations = Durations()
    durations.add("task", 0.01)
    assert durations.prefetch(8) == int(8 * AHEAD_SECONDS / 0.01)
    assert durations.queued("task", 8) == int(8 * QUEUED_SECONDS / 0.01)


def test_slow_work_is_not_leased_ahead() -> None:
    durations = Durations()
    durations.add("task", 60.0)
    assert durations.prefetch(8) == 0
    assert durations.queued("task", 8) == 0


def test_work_without_any_duration_is_bounded() -> None:
    durations = Durations()
    durations.add("task", 0.0)
    assert durations.prefetch(8) == MAX_AHEAD
    assert durations.queued("task", 1) == MAX_AHEAD


def test_a_task_that_was_not_measured_does_not_wait_in_an_executor() -> None:
    durations = Durations()
    durations.add("quick", 0.001)
    assert durations.queued("quick", 8) > 0
    assert durations.queued("other", 8) == 0


def test_a_change_of_pace_is_followed() -> None:
    durations = Durations()
    durations.add("task", 0.001)
    for _ in range(60):
        durations.add("task", 1.0)
    assert durations.queued("task", 8) == 0
    assert durations.prefetch(8) <= 2


@given(runs=st.lists(st.floats(0, 1e6), min_size=1), slots=st.integers(1, 10_000))
def test_no_more_than_the_bound_is_ever_leased_ahead(runs: list[float], slots: int) -> None:
    durations = Durations()
    for seconds in runs:
        durations.add("task", seconds)
    assert 0 <= durations.prefetch(slots) <= MAX_AHEAD
    assert 0 <= durations.queued("task", slots) <= MAX_AHEAD
