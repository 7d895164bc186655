"""Leased jobs that wait for a slot."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss.queue.contract import Claimed
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.dispatcher import Dispatcher
from shiftboss.queue.runtime.holdings import Held
from shiftboss.queue.runtime.keeper import Keeper
from tests.clients.conftest import keeper_config


def held(job_id: int, *, suspect: bool = False, solo: bool = False) -> Held:
    """A leased job."""
    now = datetime.now(UTC)
    one = Held(Claimed(job_id, 1, "default", "task", "{}", 0, now, 0, 0, suspect), 30.0, 0.0)
    one.solo = solo
    return one


@pytest.mark.requirement("C4", "L30")
def test_one_job_is_taken_out_and_the_others_keep_their_order() -> None:
    dispatcher = Dispatcher(clock=lambda: 0.0, isolated=2)
    jobs = [held(1), held(2), held(3), held(4, suspect=True), held(5, suspect=True)]
    dispatcher.add(jobs)
    assert dispatcher.withdraw(jobs[1])
    assert dispatcher.withdraw(jobs[4])
    assert not dispatcher.withdraw(jobs[1])
    assert not dispatcher.withdraw(held(1))  # another lease of the same job
    assert [one.job.id for one in dispatcher.clear()] == [4, 1, 3]


@pytest.mark.requirement("N13", "L30")
def test_jobs_for_executors_to_themselves_wait_in_a_line_of_their_own() -> None:
    now = 0.0
    dispatcher = Dispatcher(clock=lambda: now, isolated=3)
    assert dispatcher.solo_appetite([]) == 3
    jobs = [held(1, solo=True), held(2, solo=True, suspect=True), held(3), held(4, suspect=True)]
    dispatcher.add(jobs)
    assert (dispatcher.solo, dispatcher.waiting, dispatcher.solo_appetite([])) == (2, 4, 1)
    now = 3600.0
    # Their executor is starting: only who waits for a shared one is given back.
    assert [one.job.id for one in dispatcher.surplus([])] == [3]
    assert dispatcher.withdraw(jobs[0])
    assert not dispatcher.withdraw(jobs[0])
    assert [one.job.id for one in dispatcher.clear()] == [4, 2]
    assert dispatcher.solo_appetite([]) == 3


class Stub:
    """An executor that never ends a job."""

    def __init__(self, threads: int, busy: int = 0) -> None:
        self.ready, self.reserved, self.threads = True, False, threads
        self.in_hand = {number: held(1000 + number) for number in range(busy)}

    def run(self, jobs: Sequence[Held]) -> None:
        """Take them all."""
        self.in_hand.update({one.job.id: one for one in jobs})


@pytest.mark.requirement("N13", "L30")
def test_jobs_that_turn_out_to_want_an_executor_to_themselves_hold_back_both_claims_and_are_given_back() -> None:
    now = 0.0
    dispatcher = Dispatcher(clock=lambda: now, isolated=2)
    shared: list[Any] = [Stub(threads=2)]
    busy: list[Any] = [Stub(threads=1, busy=1)]
    before = dispatcher.appetite(shared)
    dispatcher.add([held(number, solo=True) for number in range(2 + before)])
    assert (dispatcher.appetite(shared), dispatcher.solo_appetite(busy)) == (0, 0)
    assert dispatcher.surplus(busy) == []
    now = 2.0
    # One of them has an executor that is starting; those that came last go.
    assert [one.job.id for one in dispatcher.surplus(busy)] == list(range(before + 1, 0, -1))
    assert (dispatcher.appetite(shared), dispatcher.solo_appetite(busy)) == (before, 0)


class Store:
    """A queue without end, of one task's jobs with one revision; counts what it has given."""

    complete = fail = release = snooze = discard = quarantine = reap_own = None

    def __init__(self, config: TaskConfig) -> None:
        self._config = config
        self.given = 0

    async def claim(self, queue: str, tasks: Sequence[str], limit: int, after: Any) -> list[Claimed]:
        """As many as are asked for."""
        if self._config.task not in tasks:
            return []
        self.given += limit
        numbers = range(self.given - limit, self.given)
        return [held(n).job._replace(revision_id=self._config.revision) for n in numbers]

    async def revisions(self, numbers: Any) -> dict[int, str]:
        """The one."""
        return {self._config.revision: self._config.to_json()}


@pytest.mark.requirement("N13", "L30")
@pytest.mark.parametrize(("was", "says"), [("process", "thread"), ("thread", "process")])
def test_a_task_whose_code_says_otherwise_than_its_jobs_is_claimed_where_these_have_room(
    was: str, says: str, tmp_path: Any
) -> None:
    store: Any = Store(TaskConfig(task="task", isolation=was))
    config = replace(keeper_config("", lease_seconds=60), threads=2, isolated=2, run_folder=str(tmp_path))

    async def work() -> None:
        keeper = Keeper(config, store, None)  # type: ignore[arg-type]
        full: Any = was == "thread"
        shared: Any = Stub(2, busy=2 * full)
        solo: Any = [Stub(1), Stub(1)]
        keeper._children.shared.append(shared)
        keeper._children.solo.extend(solo)
        keeper._know("task", says)
        for _ in range(50):
            for intake in keeper._intakes:
                if (want := intake.want) > 0:
                    await keeper._claim(intake, "default", want)
        assert [len(one.in_hand) for one in (shared, *solo)] == ([2, 0, 0] if full else [0, 1, 1])

    asyncio.run(work())
    assert 2 <= store.given <= 10


@pytest.mark.requirement("R6", "L29")
def test_suspects_wait_for_no_long_run_where_they_can_have_an_executor_to_themselves() -> None:
    now = 0.0
    dispatcher = Dispatcher(clock=lambda: now, isolated=2)
    shared: list[Any] = [Stub(threads=4, busy=1)]
    suspects = [held(number, suspect=True) for number in range(3)]
    dispatcher.add([*suspects, held(9)])
    dispatcher.deal(shared)
    assert (dispatcher.solo, shared[0].reserved) == (0, True)
    now = 5.0
    dispatcher.deal(shared)
    assert dispatcher.solo == 3
    assert not shared[0].reserved  # for nobody any more: others may have its threads
    assert [one.job.id for one in shared[0].in_hand.values()] == [1000, 9]
    solo: list[Any] = [Stub(threads=1), Stub(threads=1)]
    dispatcher.deal_solo(solo)
    assert [[*one.in_hand] for one in solo] == [[0], [1]]


@pytest.mark.requirement("R6", "C4")
def test_an_executor_is_free_again_when_the_suspect_that_it_was_kept_for_is_taken_back() -> None:
    dispatcher = Dispatcher(clock=lambda: 0.0, isolated=0)
    shared: list[Any] = [Stub(threads=4, busy=1)]
    suspect = held(1, suspect=True)
    dispatcher.add([suspect, held(2)])
    dispatcher.deal(shared)
    assert [*shared[0].in_hand] == [0]
    assert dispatcher.withdraw(suspect)
    dispatcher.deal(shared)
    assert [*shared[0].in_hand] == [0, 2]


@pytest.mark.requirement("R6", "L29")
def test_a_suspect_that_runs_alone_stays_alone_while_others_go_elsewhere() -> None:
    now = 0.0
    dispatcher = Dispatcher(clock=lambda: now, isolated=1)
    shared: list[Any] = [Stub(threads=4)]
    dispatcher.add([held(1, suspect=True), held(2, suspect=True), held(3)])
    dispatcher.deal(shared)
    now = 5.0
    dispatcher.deal(shared)
    now = 10.0
    dispatcher.deal(shared)
    assert [*shared[0].in_hand] == [1]
    assert shared[0].reserved
    assert dispatcher.solo == 1


@pytest.mark.requirement("R6", "L29")
@pytest.mark.parametrize("isolated", [0, 2])
def test_suspects_whose_executor_is_starting_wait_for_it(isolated: int) -> None:
    now = 0.0
    dispatcher = Dispatcher(clock=lambda: now, isolated=isolated)
    shared: list[Any] = [Stub(threads=4)]
    shared[0].ready = False
    dispatcher.add([held(1, suspect=True), held(2, suspect=True)])
    dispatcher.deal(shared)
    now = 60.0
    dispatcher.deal(shared)
    assert dispatcher.solo == 0
    shared[0].ready = True
    dispatcher.deal(shared)
    assert [*shared[0].in_hand] == [1]
