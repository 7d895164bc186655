"""What handlers take, answer, raise and ask for that is hard to store: it costs its own job alone."""

import json
from datetime import UTC, datetime

import pytest

from shiftboss.queue.errors import NotStorable
from shiftboss.queue.retry import LONGEST_SECONDS
from shiftboss.queue.states import State
from tests.faults.conftest import Configure
from tests.faults.harm import tasks as harm
from tests.runtime.programs import House, attempts, job, totals, wait_for_state
from tests.waiting import wait_for

APPS = "tests.runtime,tests.faults.harm"
LONG = {"LEASE_SECONDS": 300, "HEARTBEAT_SECONDS": 1, "STAGE_SECONDS": 0.02}

RAISED = {
    "str raises": ("tests.faults.harm.tasks.Mute", "<str() of the exception raised ZeroDivisionError>"),
    "recursion": ("RecursionError", "maximum recursion depth exceeded"),
    "a long text": ("ValueError", "д"),
    "nul and surrogates": ("ValueError", "\\x00 \\ud800 \\udfff"),
    "a type of no name": ("\\x00\\ud800.A", "text"),
    "a group": ("BaseExceptionGroup", "both (2 sub-exceptions)"),
    "a cause that is mute": ("ValueError", "told"),
    "generator exit": ("GeneratorExit", "text"),
}
"""The type that is told, and how the message begins."""


@pytest.mark.requirement("R7", "L29", "R6")
def test_whatever_a_handler_raises_or_answers_is_a_failure_that_says_what(house: House) -> None:
    worker = house.worker(apps=APPS, **LONG)
    before = [executor.pid for executor in worker.executors()]
    for how, one in {how: harm.end_badly.enqueue(how).id for how in harm.BAD_ENDS}.items():
        held = wait_for_state(one, State.QUARANTINED, seconds=40)
        [attempt] = attempts(one)
        assert (held.quarantine_reason, attempt.outcome) == ("failures_exhausted", "failed")
        message = str(attempt.error_message)
        if how in RAISED:
            kind, words = RAISED[how]
            assert (attempt.error_code, attempt.error_type) == ("handler_raised", kind)
            assert message.startswith(words)
        else:
            # The last one raises where it is looked at a second time.
            assert attempt.error_code == ("result_not_storable" if how != "odd" else "executor_error")
            assert message
        assert len(message) <= 1000
        assert attempt.error_fingerprint
    assert [executor.pid for executor in worker.executors()] == before


@pytest.mark.requirement("R8", "L19")
def test_a_wait_that_cannot_be_is_brought_into_bounds(house: House) -> None:
    house.worker(apps=APPS, BACKOFF_SECONDS=500, BACKOFF_CAP_SECONDS=500, **LONG)
    jobs = {how: harm.fail_with_backoff.enqueue(how).id for how in harm.BACKOFFS}
    for how, one in jobs.items():
        wait_for(lambda one=one: attempts(one), seconds=40)
        if how == "negative":
            # At once, and so for the last time.
            assert wait_for_state(one, State.QUARANTINED, seconds=40).failures == 2
            continue
        found = job(one)
        waits = (found.due_at - datetime.now(UTC)).total_seconds()
        longest = LONGEST_SECONDS if how in ("huge", "endless") else 500
        assert (found.state, found.failures) == (State.RETRYABLE, 1)
        assert longest / 2 - 60 < waits <= longest


@pytest.mark.requirement("R7", "L30")
def test_payloads_of_ten_megabytes_go_through_where_they_are_allowed(house: House, configure: Configure) -> None:
    long = "д" * 5_000_000
    with pytest.raises(NotStorable):
        harm.echo.enqueue(long)
    limits = {"MAX_ARGS_BYTES": 2**24, "MAX_RESULT_BYTES": 2**24}
    configure(**limits)
    house.worker(threads=2, apps=APPS, **LONG, **limits)
    jobs = [harm.echo.enqueue([number, long]).id for number in range(2)]
    wait_for(lambda: totals() == {State.COMPLETED: len(jobs)}, seconds=60)
    for number, one in enumerate(jobs):
        done = job(one)
        assert json.loads(str(done.result)) == [number, long]
        assert (done.fence, attempts(one)) == (1, [])


@pytest.mark.requirement("L1", "B12", "L30")
def test_what_is_enqueued_in_a_savepoint_that_is_undone_never_runs(house: House) -> None:
    house.worker(apps=APPS, **LONG)
    wait_for_state(harm.enqueue_in_savepoints.enqueue().id, State.COMPLETED)
    house.wait_for_lines("ran", 2)
    wait_for_state(harm.echo.using(priority=-1).enqueue(1).id, State.COMPLETED)
    assert house.wrote("ran") == {"kept": 1, "kept-too": 1}


@pytest.mark.requirement("L30", "C7", "R6")
def test_processes_that_a_handler_forks_have_connections_of_their_own_and_end_where_it_does(house: House) -> None:
    house.worker(threads=1, apps=APPS, **LONG)
    asks = [harm.fork_and_ask.enqueue(4, 100).id for _ in range(2)]
    leaves = harm.fork_and_return.enqueue().id
    for one in asks:
        done = wait_for_state(one, State.COMPLETED, seconds=40)
        assert json.loads(str(done.result)) == {"children": [0] * 4, "mine": True, "same": True}
    assert wait_for_state(leaves, State.COMPLETED, seconds=40).result == "[0, 1, 3]"
