"""Runs that end by the handler's own word: later, or never."""

import math
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from shiftboss.queue.runtime.context import LONGEST_SNOOZE_SECONDS, Context, Discard, Snooze
from shiftboss.queue.states import State
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, wait_for_state


@pytest.mark.requirement("P5")
def test_a_handler_puts_its_job_off_and_nothing_is_counted(house: House) -> None:
    house.worker(STAGE_SECONDS=0.02)
    jobs = [tasks.put_off.enqueue(0.1).id, tasks.put_off_in_loop.enqueue(0.1).id]
    long = tasks.put_off.enqueue(1e30).id
    for one in jobs:
        done = wait_for_state(one, State.COMPLETED)
        assert (done.result, done.failures, done.losses) == ("2", 0, 0)
        [attempt] = attempts(one)
        assert (attempt.outcome, attempt.fence) == ("snoozed", 1)
    assert wait_for_state(long, State.SCHEDULED).due_at > timezone.now() + timedelta(days=3600)
    nonsense = wait_for_state(tasks.put_off.enqueue(-1).id, State.QUARANTINED)
    assert "from 0 on, not -1" in str(attempts(nonsense.id)[0].traceback)


@pytest.mark.requirement("P5")
def test_a_handler_gives_its_job_up_and_its_transaction_is_rolled_back(house: House) -> None:
    house.worker()
    given_up = wait_for_state(tasks.give_up.enqueue("no such order \x01").id, State.DISCARDED)
    assert given_up.error_message == "no such order \x01"
    assert [attempt.outcome for attempt in attempts(given_up.id)] == ["discarded"]
    assert house.wrote("ran") == {}


CONTEXT = Context(job_id=1, fence=1, attempt=1)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(0, 0.0), (1.5, 1.5), (timedelta(minutes=2), 120.0), (10**400, LONGEST_SNOOZE_SECONDS)],
)
def test_a_snooze_is_in_seconds_and_bounded(given: Any, seconds: float) -> None:
    with pytest.raises(Snooze) as raised:
        CONTEXT.snooze(given)
    assert raised.value.seconds == seconds


@pytest.mark.parametrize("given", [-1, -0.001, math.nan, math.inf, timedelta(seconds=-1)])
def test_a_snooze_into_the_past_or_for_ever_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="finite number of seconds from 0 on"):
        CONTEXT.snooze(given)


@pytest.mark.parametrize("given", [None, "60", True])
def test_a_snooze_that_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="seconds or a timedelta"):
        CONTEXT.snooze(given)


def test_a_job_is_discarded_for_a_reason() -> None:
    with pytest.raises(Discard, match="no such order"):
        CONTEXT.discard("no such order")
    with pytest.raises(ValueError, match="needs a reason"):
        CONTEXT.discard(" ")
    with pytest.raises(TypeError, match="as text"):
        CONTEXT.discard(404)  # type: ignore[arg-type]


def test_a_broad_except_lets_an_ending_pass() -> None:
    assert not issubclass(Snooze, Exception)
    assert not issubclass(Discard, Exception)
