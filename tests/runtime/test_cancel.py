"""A cancellation on its way to the run, and what a run makes of it."""

import pytest
from django.db import connection, transaction

from shiftboss.queue.authority import System
from shiftboss.queue.states import State
from shiftboss.queue.store import operate
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House, attempts, job, wait_for_state
from tests.waiting import wait_for

FOR_EVER = {"LEASE_SECONDS": 3600, "HEARTBEAT_SECONDS": 600}
"""So seldom a beat that what arrives has come by an order."""


def cancel(*job_ids: str | int) -> None:
    """Ask for the end of jobs."""
    answer = run(operate.cancel([int(job_id) for job_id in job_ids], authority=System()))
    assert len(answer.changed) == len(job_ids)


@pytest.mark.requirement("C4", "N11", "L16")
def test_a_running_handler_hears_of_its_cancellation_without_waiting_for_a_heartbeat(house: House) -> None:
    house.worker(**FOR_EVER)
    jobs = [
        task.enqueue(number).id
        for number, task in enumerate((tasks.listen, tasks.listen_in_loop, tasks.polite, tasks.polite_in_loop))
    ]
    deaf = tasks.pass_gate.enqueue("deaf", gate="go").id
    snoozing = tasks.snooze_when_cancelled.enqueue().id
    house.wait_for_lines("began", 6)
    with connection.cursor() as cursor:  # orders of another version harm nothing
        for word in ("", "dance", "cancel 7"):
            cursor.execute("select pg_notify(%s, %s)", [f"shiftboss_worker_{job(deaf).worker_id}", word])
    cancel(*jobs, deaf, snoozing)
    # Whoever goes on to the end has completed; whoever ends because of it, in whatever way, is cancelled.
    for one in jobs[:2]:
        assert wait_for_state(one, State.COMPLETED).result == '"user"'
    for one in (*jobs[2:], snoozing):
        ended = wait_for_state(one, State.CANCELLED)
        assert (ended.cancel_cause, ended.failures, ended.losses, ended.fence) == ("user", 0, 0, 1)
        assert [attempt.outcome for attempt in attempts(one)] == ["cancelled"]
    assert job(deaf).state is State.RUNNING
    (house.folder / "go").touch()
    wait_for_state(deaf, State.COMPLETED)


@pytest.mark.requirement("C4", "L30")
def test_a_cancellation_whose_notification_is_lost_comes_with_the_heartbeat(house: House) -> None:
    house.worker()
    polite = tasks.polite.enqueue("polite").id
    house.wait_for_lines("began", 1)
    with connection.cursor() as cursor:  # as the verb does, but for the notification
        cursor.execute(
            "update shiftboss_job set cancel_cause = 'superseded', cancel_requested_at = now() where id = %s",
            [polite],
        )
    assert wait_for_state(polite, State.CANCELLED).cancel_cause == "superseded"


@pytest.mark.requirement("C4", "L30")
def test_a_leased_job_that_is_cancelled_before_its_start_is_never_run(house: House) -> None:
    house.worker(threads=1, **FOR_EVER)
    (house.folder / "open").touch()
    for number in range(20):  # quick ones first, so that the worker leases ahead of its slot
        tasks.pass_gate.enqueue(f"warm-{number}", gate="open")
    house.wait_for_lines("ended", 20)
    with transaction.atomic():
        first, *ahead = [tasks.pass_gate.enqueue(name, gate="go").id for name in ("first", "a", "b", "c")]
    wait_for(lambda: [job(one).state for one in (first, *ahead)] == [State.RUNNING] * 4, seconds=10)
    house.wait_for_lines("began", 21)
    *others, last = ahead
    cancel(last)
    # The only slot is still taken: it was given back from where it waited.
    assert wait_for_state(last, State.CANCELLED).fence == 1
    (house.folder / "go").touch()
    for one in (first, *others):
        wait_for_state(one, State.COMPLETED)
    assert set(house.wrote("began")) == {*(f"warm-{number}" for number in range(20)), "first", "a", "b"}
