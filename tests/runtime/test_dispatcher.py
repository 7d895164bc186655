"""Leased jobs that wait for a slot."""

from datetime import UTC, datetime

import pytest

from shiftboss.queue.contract import Claimed
from shiftboss.queue.runtime.dispatcher import Dispatcher
from shiftboss.queue.runtime.holdings import Held


def held(job_id: int, *, suspect: bool = False, solo: bool = False) -> Held:
    """A leased job."""
    now = datetime.now(UTC)
    return Held(Claimed(job_id, 1, "default", "task", "{}", 0, now, 0, 0, suspect), 30.0, 0.0, solo=solo)


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
    assert [one.job.id for one in dispatcher.surplus()] == [3]
    assert dispatcher.withdraw(jobs[0])
    assert not dispatcher.withdraw(jobs[0])
    assert [one.job.id for one in dispatcher.clear()] == [4, 2]
    assert dispatcher.solo_appetite([]) == 3
