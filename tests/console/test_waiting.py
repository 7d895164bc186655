"""Why a job is not running: asked of the record as it is, and told in words."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from shiftboss.console import waiting
from shiftboss.queue.authority import System
from shiftboss.queue.outcomes import Failed, Snoozed
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store import lease, obstacles, operate, queues, read
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.statement import run
from tests.console import scenes

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B3")]
SYSTEM = System()


def why(job_id: int) -> list[str]:
    return [reason.text.replace("\N{NO-BREAK SPACE}", " ") for reason in told(job_id)]


def told(job_id: int) -> list[waiting.Reason]:
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job is not None
    found = run(obstacles.of(job, authority=SYSTEM)) if job.state in WAITING else None
    return waiting.reasons(job, found, now=timezone.now())


def serving(*queues: str) -> int:
    worker = scenes.worker(*queues)
    scenes.heartbeat(worker)
    return worker


def test_nothing_stands_in_the_way_of_the_next_job() -> None:
    serving()
    assert why(scenes.job()) == ["Nothing stands in its way: a worker takes it within a second or two."]


def test_a_job_without_a_worker_says_that_there_never_was_one() -> None:
    [reason] = told(scenes.job(queue="reports"))
    assert reason.text == "No live worker serves its queue, and none did within the last day."
    assert reason.needs_person


def test_a_worker_that_stopped_is_told_with_its_time() -> None:
    worker = serving("reports")
    scenes.heartbeat(worker, state="stopped")
    [said] = why(scenes.job(queue="reports"))
    assert said.startswith("No live worker serves its queue; the last one was heard of ")
    assert said.endswith(" ago.")


def test_workers_that_drain_take_nothing_more() -> None:
    worker = serving()
    scenes.heartbeat(worker, state="draining")
    assert why(scenes.job()) == ["All workers that serve its queue are draining, and take no more jobs."]


def test_a_pause_is_told_with_who_and_why_and_comes_before_the_rest() -> None:
    run(queues.pause("default", authority=SYSTEM, by="kim", reason="the mail server is down."))
    first, second = told(scenes.job())
    assert first.text == "Its queue is paused by kim: the mail server is down."
    assert first.since is not None
    assert first.needs_person
    assert second.text.startswith("No live worker serves its queue")


def test_a_task_that_no_worker_knows_is_told_with_their_version() -> None:
    serving()
    assert why(scenes.job("shop.tasks.unheard_of")) == ["No live worker of its queue knows its task."]


def test_a_job_of_later_says_when() -> None:
    serving()
    job_id = scenes.job(due_at=datetime.now(UTC) + timedelta(hours=2, minutes=5))
    [said] = why(job_id)
    assert said.startswith("It is due later, in 2 h ")


def test_a_job_that_failed_says_how_often_and_how_long_it_waits() -> None:
    worker = serving()
    job_id = scenes.job(max_attempts=4)
    [claimed] = scenes.claimed(worker)
    failed = Failed("failed", "ValueError", "no", "f" * 16, "", backoff_seconds=600.0, run_ms=1)
    run(lease.fail([(claimed.lease, failed)], authority=SYSTEM, worker_id=worker))
    [said] = why(job_id)
    assert said.startswith("It failed 1 of 4 times and waits before its next attempt, for another ")


def test_a_snoozed_job_is_not_called_a_failed_one() -> None:
    worker = serving()
    job_id = scenes.job()
    [claimed] = scenes.claimed(worker)
    run(lease.snooze([(claimed.lease, Snoozed(600.0, run_ms=1))], authority=SYSTEM, worker_id=worker))
    [said] = why(job_id)
    assert said.startswith("It is due later, in ")


def test_a_full_limit_names_the_jobs_that_take_it() -> None:
    worker = serving()
    run(queues.limit("default", Limit(1), authority=SYSTEM, by="kim"))
    holder, job_id = scenes.job(), scenes.job()
    scenes.claimed(worker)
    [reason] = told(job_id)
    assert reason.text == "Its queue runs at most 1 job at once, and that one is taken by:"
    assert reason.jobs == (holder,)


def test_a_line_names_the_job_that_holds_it() -> None:
    worker = serving()
    run(queues.limit("default", Limit(1, sequential=True), authority=SYSTEM, by="kim"))
    holder, job_id = scenes.job(), scenes.job()
    scenes.claimed(worker)
    [reason] = told(job_id)
    assert reason.text == "Its queue runs one job at a time in strict order; the line is held by:"
    assert reason.jobs == (holder,)


def test_slots_in_use_and_jobs_that_go_first_are_counted() -> None:
    worker = serving()
    scenes.heartbeat(worker, in_use=8)
    scenes.job(priority=5)
    scenes.job()
    job_id = scenes.job()
    assert why(job_id) == [
        "All 8 slots of the workers that serve its queue are in use.",
        "2 jobs go before it.",
    ]


def test_jobs_of_other_queues_and_less_urgent_ones_do_not_go_first() -> None:
    serving("default", "mail")
    scenes.job(queue="mail", priority=50)
    scenes.job(priority=-1)
    assert why(scenes.job()) == ["Nothing stands in its way: a worker takes it within a second or two."]


def test_a_follow_up_names_the_job_that_it_waits_for() -> None:
    worker = serving()
    holder = scenes.job(key="nightly")
    scenes.claimed(worker)
    follower = scenes.job(key="nightly", follow_up=True)
    [reason] = told(follower)
    assert reason.text == "It follows the job that holds its key, and waits for its end:"
    assert reason.jobs == (holder,)


def test_a_quarantined_job_waits_for_a_person() -> None:
    job_id = scenes.job()
    run(operate.quarantine([job_id], authority=SYSTEM, by="kim"))
    [reason] = told(job_id)
    assert reason.text == (
        "It is held back because an operator holds it back; it runs again when somebody reinstates it."
    )
    assert reason.needs_person


def test_a_job_that_runs_has_no_reason_not_to() -> None:
    worker = serving()
    job_id = scenes.job()
    scenes.claimed(worker)
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job is not None
    assert job.state is State.RUNNING
    assert told(job_id) == []
