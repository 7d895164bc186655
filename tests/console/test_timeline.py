"""What a job went through, as its page tells it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from shiftboss.console import timeline
from shiftboss.queue.authority import System
from shiftboss.queue.jobs import AttemptRow
from shiftboss.queue.outcomes import Failed
from shiftboss.queue.states import State
from shiftboss.queue.store import lease, operate, read
from shiftboss.queue.store.statement import run
from tests.console import scenes

SYSTEM = System()


def line(job_id: int) -> list[timeline.Moment]:
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job is not None
    attempts = run(read.attempts(authority=SYSTEM, job_id=job_id))
    events = run(read.events(authority=SYSTEM, job_id=job_id))
    return timeline.moments(job, attempts, events, [], now=datetime.now(UTC))


def failed_once(worker: int) -> int:
    job_id = scenes.job()
    [claimed] = scenes.claimed(worker)
    failed = Failed("failed", "ValueError", "no", "f" * 16, "", backoff_seconds=0.0, run_ms=1)
    run(lease.fail([(claimed.lease, failed)], authority=SYSTEM, worker_id=worker))
    return job_id


@pytest.mark.django_db
def test_each_run_stands_with_its_fence_and_the_last_moment_lasts_until_now() -> None:
    worker = scenes.worker()
    job_id = failed_once(worker)
    run(operate.expedite([job_id], authority=SYSTEM, by="kim"))
    scenes.claimed(worker)
    told = line(job_id)
    assert [moment.what for moment in told if moment.what != "Due"] == [
        *("Enqueued", "Started", "Failed", "Expedited", "Started"),
    ]
    assert [moment.fence for moment in told if moment.what == "Started"] == [1, 2]
    assert [moment.detail for moment in told if moment.what == "Failed"] == ["ValueError: no"]
    assert all(moment.lasted_seconds is not None and moment.lasted_seconds >= 0 for moment in told)


@pytest.mark.django_db
def test_an_ended_job_lasts_no_longer() -> None:
    worker = scenes.worker()
    job_id = scenes.job()
    scenes.completed(scenes.claimed(worker), worker)
    told = line(job_id)
    assert [moment.what for moment in told] == ["Enqueued", "Started", "Completed"]
    assert told[-1].lasted_seconds is None


@pytest.mark.django_db
def test_of_very_many_moments_the_middle_is_left_out_and_counted() -> None:
    job_id = scenes.job()
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job is not None
    attempts = [
        AttemptRow(
            *(job_id, fence, 1, "failed"),
            *(job.enqueued_at + timedelta(seconds=fence), job.enqueued_at + timedelta(seconds=fence + 0.5)),
            *(500, "failed", "ValueError", "no", None, None, "{}"),
        )
        for fence in range(1, 101)
    ]
    told = timeline.moments(job, attempts, [], [], now=job.enqueued_at + timedelta(seconds=200))
    assert len(told) == timeline.LONGEST + 1
    [gap] = [moment for moment in told if moment.left_out]
    assert gap.left_out == 201 - timeline.LONGEST
    assert told[-1].at == attempts[-1].ended_at


def test_the_page_tells_it_with_who_ended_the_job(browser: Client) -> None:
    job_id = scenes.job()
    token = {"reason": "sent twice", "request_id": "once"}
    assert browser.post(f"/jobs/{job_id}/cancellations/", token).status_code == 303
    page = browser.get(f"/jobs/{job_id}/").content.decode()
    assert "What it went through" in page
    assert "by kim: sent twice" in page
    job = run(read.job(authority=SYSTEM, job_id=job_id))
    assert job is not None
    assert job.state is State.CANCELLED
