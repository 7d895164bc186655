"""Outcomes on their way to the record: in batches, or each alone where the task asks for `durable="each"`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss.queue.contract import Claimed, Lease, Settlement
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Done, Failed, Released
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime import reporter
from shiftboss.queue.runtime.holdings import Holdings
from shiftboss.queue.runtime.reporter import Reporter

pytestmark = pytest.mark.requirement("R8", "L5")

EACH = TaskConfig(task="shop.tasks.pay", durable="each")
DONE, FAILED, RELEASED = Done(None, 1), Failed("handler_raised", "E", "", "f", "", 1.0, 1), Released("shutdown")


class Recorded:
    """A record that notes what is written together. `answer` may refuse; `meanwhile` happens during a call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.answer: Callable[[str, list[int]], Settlement | None] = lambda verb, ids: None
        self.meanwhile: Callable[[str], None] = lambda verb: None

    def __getattr__(self, verb: str) -> Callable[[Sequence[tuple[Lease, Any]]], Awaitable[Settlement]]:
        async def write(items: Sequence[tuple[Lease, Any]]) -> Settlement:
            self.meanwhile(verb)
            ids = [lease.job_id for lease, _ in items]
            refused = self.answer(verb, ids)
            self.calls.append((verb, ids))
            return refused or Settlement(settled={lease for lease, _ in items})

        return write


class Scene:
    """A reporter with jobs in hand: odd ones are of a task whose outcomes go alone."""

    def __init__(self, n: int = 6) -> None:
        self.record = Recorded()
        self.holdings = Holdings(30.0)
        jobs = [
            Claimed(id, 1, "default", "shop.tasks.pay", "{}", 0, datetime.now(UTC), 0, 0, False)
            for id in range(1, n + 1)
        ]
        for held in self.holdings.claimed(jobs, 0.0):
            held.config = EACH if held.job.id % 2 else None
        self.reporter = Reporter(self.record, self.holdings)  # type: ignore[arg-type]

    def add(self, job_id: int, outcome: Any = DONE) -> None:
        held = self.holdings.get(Lease(job_id, 1))
        assert held is not None
        self.reporter.add(held, outcome)

    def write(self) -> list[tuple[str, list[int]]]:
        """One pass; what was written."""
        self.record.calls.clear()
        asyncio.run(self.reporter.run_once())
        return list(self.record.calls)


def test_an_outcome_that_goes_alone_is_in_no_batch_and_the_others_are_in_one() -> None:
    scene = Scene()
    for job_id in range(1, 7):
        scene.add(job_id)
    assert scene.reporter.pending == 6
    assert scene.write() == [("complete", [1]), ("complete", [3]), ("complete", [5]), ("complete", [2, 4, 6])]
    assert (scene.reporter.pending, len(scene.holdings), scene.reporter.trouble) == (0, 0, False)


def test_it_is_written_by_its_own_kind() -> None:
    scene = Scene()
    for job_id, outcome in ((1, FAILED), (3, DONE), (5, RELEASED)):
        scene.add(job_id, outcome)
    assert scene.write() == [("fail", [1]), ("complete", [3]), ("release", [5])]


def test_one_that_comes_while_a_batch_is_written_waits_for_that_one_only() -> None:
    scene = Scene()
    scene.add(2)
    scene.add(4, FAILED)

    def meanwhile(verb: str) -> None:
        if not scene.record.calls:
            scene.add(1)

    scene.record.meanwhile = meanwhile
    assert scene.write() == [("complete", [2]), ("complete", [1]), ("fail", [4])]


def test_one_that_cannot_be_written_holds_nobody_up_and_is_kept() -> None:
    scene = Scene()
    for job_id in (1, 2, 3):
        scene.add(job_id)

    def unavailable(verb: str, ids: list[int]) -> Settlement | None:
        if ids == [1]:
            raise StoreUnavailable("the record is away")
        return None

    scene.record.answer = unavailable
    for written in (2, 3):
        with pytest.raises(StoreUnavailable):
            scene.write()
        assert scene.record.calls == [("complete", [written])]
        assert scene.reporter.trouble
    assert scene.reporter.pending == 1
    scene.record.answer = lambda verb, ids: None
    assert scene.write() == [("complete", [1])]
    assert (scene.reporter.pending, scene.reporter.trouble) == (0, False)


def test_a_batch_that_takes_too_long_comes_again_in_smaller_ones_until_it_gets_through() -> None:
    scene = Scene(16)
    even = list(range(2, 17, 2))
    for job_id in even:
        scene.add(job_id)

    def slow(verb: str, ids: list[int]) -> None:
        if len(ids) > 3:
            raise StoreUnavailable("no answer in time")

    scene.record.answer = slow
    tries = 0
    while scene.reporter.pending:
        tries += 1
        try:
            scene.write()
        except StoreUnavailable:
            continue
        assert len(scene.record.calls) == 1
    assert tries < 30
    assert len(scene.holdings) == 8  # the odd ones, which have not ended


def test_a_result_that_is_larger_than_any_batch_is_written_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "MAX_BATCH_CHARACTERS", 4)
    scene = Scene()
    for job_id in (2, 4, 6):
        scene.add(job_id, Done('"more than four"', 1))
    assert [scene.write() for _ in range(3)] == [[("complete", [job_id])] for job_id in (2, 4, 6)]


def test_one_that_is_busy_is_offered_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "BUSY_SECONDS", 0.01)
    scene = Scene()
    scene.record.answer = lambda verb, ids: (
        Settlement(busy={Lease(1, 1)}) if ids == [1] and ("complete", [1]) not in scene.record.calls else None
    )

    async def twice() -> None:
        scene.add(1)
        await scene.reporter.run_once()
        assert scene.reporter.pending == 1
        scene.add(2)
        while scene.reporter.pending:
            await scene.reporter.run_once()

    asyncio.run(asyncio.wait_for(twice(), 20))
    assert sorted(scene.record.calls) == [("complete", [1]), ("complete", [1]), ("complete", [2])]
