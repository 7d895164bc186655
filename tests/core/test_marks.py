"""Where the next claim of a queue starts."""

from datetime import UTC, datetime, timedelta

import pytest

from shiftboss.queue.contract import Claimed, Mark
from shiftboss.queue.runtime.marks import SHORTEST_SWEEP_SECONDS, SWEEP_SECONDS, SWEEP_SHARE, Marks

pytestmark = pytest.mark.requirement("B13")

START = datetime(2026, 11, 30, tzinfo=UTC)


def jobs(*ids: int, priority: int = 0) -> list[Claimed]:
    """Claimed jobs with these ids, due in their order."""
    return [
        Claimed(id, 1, "default", "task", "{}", priority, START + timedelta(seconds=id), 0, 0, False) for id in ids
    ]


def mark(id: int, priority: int = 0) -> Mark:
    """The mark that such a job leaves."""
    return Mark(priority, START + timedelta(seconds=id), id)


def swept(marks: Marks, *ids: int, limit: int = 2, began: float = 0.0, now: float = 0.0) -> None:
    """A sweep that found these jobs."""
    marks.claimed("default", None, jobs(*ids), limit=limit, began=began, now=now)


def a_queue() -> Marks:
    return Marks(["default"], poll_seconds=1.0)


def test_the_first_claim_is_a_sweep() -> None:
    assert a_queue().open_queues(0.0) == ["default"]
    assert a_queue().start("default", 0.0) is None


def test_after_a_full_sweep_claims_start_past_the_last_job() -> None:
    marks = a_queue()
    swept(marks, 1, 2)
    assert marks.open_queues(0.0) == ["default"]
    assert marks.start("default", 0.0) == mark(2)
    marks.claimed("default", mark(2), jobs(3, 4), limit=2, began=0.0, now=0.01)
    assert marks.start("default", 0.01) == mark(4)


def test_a_quick_sweep_is_repeated_soon_and_a_slow_one_within_a_second() -> None:
    quick, slow, slowest = a_queue(), a_queue(), a_queue()
    swept(quick, 1, 2, began=0.0, now=0.0)
    swept(slow, 1, 2, began=0.0, now=0.01)
    swept(slowest, 1, 2, began=0.0, now=5.0)
    assert quick.start("default", SHORTEST_SWEEP_SECONDS - 0.001) is not None
    assert quick.start("default", SHORTEST_SWEEP_SECONDS) is None
    assert slow.start("default", 0.01 + SWEEP_SHARE * 0.01 - 0.001) is not None
    assert slow.start("default", 0.01 + SWEEP_SHARE * 0.01) is None
    assert slowest.start("default", 5.0 + SWEEP_SECONDS - 0.001) is not None
    assert slowest.start("default", 5.0 + SWEEP_SECONDS) is None


def test_claims_past_the_mark_do_not_put_off_the_next_sweep() -> None:
    marks = a_queue()
    swept(marks, 1, 2)
    for now in (0.02, 0.04):
        marks.claimed("default", mark(2), jobs(3, 4), limit=2, began=now, now=now)
    assert marks.start("default", SHORTEST_SWEEP_SECONDS) is None


def test_a_sweep_that_left_nothing_closes_the_queue_until_the_next_poll() -> None:
    marks = a_queue()
    swept(marks, 1)
    assert marks.open_queues(0.99) == []
    assert marks.next_try() == 1.0
    assert marks.open_queues(1.0) == ["default"]


def test_nothing_past_the_mark_closes_the_queue_until_the_next_sweep_only() -> None:
    marks = a_queue()
    swept(marks, 1, 2)
    marks.claimed("default", mark(2), [], limit=2, began=0.01, now=0.01)
    assert marks.open_queues(0.02) == []
    assert marks.open_queues(SHORTEST_SWEEP_SECONDS) == ["default"]
    assert marks.start("default", SHORTEST_SWEEP_SECONDS) is None


def test_a_notification_opens_its_queue() -> None:
    marks = a_queue()
    swept(marks)
    marks.wake("default", 0)
    assert marks.open_queues(0.0) == ["default"]


def test_a_notification_of_another_priority_asks_for_a_sweep() -> None:
    marks = a_queue()
    swept(marks, 1, 2)
    marks.wake("default", 0)
    assert marks.start("default", 0.0) == mark(2)
    marks.wake("default", 5)
    assert marks.start("default", 0.0) is None


def test_a_notification_of_a_queue_that_is_not_served_is_ignored() -> None:
    marks = a_queue()
    marks.wake("other", 0)
    assert marks.open_queues(0.0) == ["default"]


def test_reopening_keeps_the_mark() -> None:
    marks = a_queue()
    swept(marks, 1, 2)
    marks.claimed("default", mark(2), [], limit=2, began=0.0, now=0.0)
    marks.reopen()
    assert marks.open_queues(0.0) == ["default"]
    assert marks.start("default", 0.0) == mark(2)


def test_queues_take_turns_and_do_not_touch_each_other() -> None:
    marks = Marks(["a", "b", "c"], poll_seconds=1.0)
    assert marks.open_queues(0.0) == ["a", "b", "c"]
    marks.claimed("b", None, [], limit=1, began=0.0, now=0.0)
    assert marks.open_queues(0.5) == ["a", "c"]
    assert marks.next_try() == 0.0
    assert marks.open_queues(1.0) == ["a", "b", "c"]


def test_a_queue_that_was_claimed_from_goes_behind_the_others_however_much_it_holds() -> None:
    marks = Marks(["a", "b", "c"], poll_seconds=1.0)
    served = []
    for _ in range(6):
        first, *_ = marks.open_queues(0.0)
        marks.start(first, 0.0)
        served.append(first)
    assert served == ["a", "b", "c", "a", "b", "c"]


def test_a_notification_that_comes_while_a_claim_is_under_way_is_not_forgotten() -> None:
    marks = a_queue()
    assert marks.start("default", 0.0) is None
    marks.wake("default", 0)
    marks.claimed("default", None, [], limit=5, began=0.0, now=0.1)
    assert marks.open_queues(0.1) == ["default"]
    assert marks.start("default", 0.1) is None
    marks.claimed("default", None, [], limit=5, began=0.1, now=0.2)
    assert marks.open_queues(0.2) == []
