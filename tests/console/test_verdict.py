"""The verdict: what the overview's first line says of counts and workers."""

from datetime import UTC, datetime

import pytest

from shiftboss.console.verdict import Finding, late_after
from shiftboss.console.verdict import findings as all_findings
from shiftboss.queue.states import State
from shiftboss.queue.store.queues import Pause
from shiftboss.queue.store.read import Count, WorkerRow

pytestmark = pytest.mark.requirement("C3", "L28")


def findings(counts: list[Count], workers: list[WorkerRow], *pauses: Pause) -> list[Finding]:
    return all_findings(counts, workers, pauses)


def worker(
    *queues: str, heartbeat_age: float = 1.0, lease: float = 30.0, heartbeat: float = 5.0, state: str = "running"
) -> WorkerRow:
    return WorkerRow(
        id=3,
        pool="default",
        host="web-1",
        pid=4711,
        state=state,
        queues=list(queues) or ["default"],
        tasks=1,
        slots=8,
        in_use=0,
        lease_seconds=lease,
        heartbeat_seconds=heartbeat,
        heartbeat_age_seconds=heartbeat_age,
        lag_ms=1,
        worst_lag_ms=1,
        losses=0,
        code_version=None,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def count(state: State, jobs: int = 1, *, queue: str = "default", oldest: float | None = None) -> Count:
    return Count(queue, state, jobs, oldest, False)


def texts(found: list[Finding]) -> list[str]:
    return [finding.text.replace("\N{NO-BREAK SPACE}", " ") for finding in found]


def test_a_served_queue_without_waits_is_well() -> None:
    [only] = findings([count(State.AVAILABLE, 9, oldest=2.0)], [worker()])
    assert only.text == "All well"
    assert not only.is_wrong


def test_no_live_worker_at_all_is_wrong_even_without_jobs() -> None:
    [headline] = findings([], [])
    assert headline.text == "No live worker: nothing runs"
    assert headline.is_wrong


def test_a_stopped_worker_counts_for_nothing_and_is_not_missed() -> None:
    found = findings([], [worker(state="stopped")])
    assert texts(found) == ["No live worker: nothing runs"]


@pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE, State.RETRYABLE])
def test_waiting_jobs_of_a_queue_that_nobody_serves_are_wrong(state: State) -> None:
    found = findings([count(state, 1234, queue="mail")], [worker("default")])
    assert texts(found) == ["No live worker for queue mail, where 1,234 jobs wait"]


def test_history_of_a_queue_that_nobody_serves_is_no_matter() -> None:
    assert texts(findings([count(State.COMPLETED, 5, queue="mail")], [worker()])) == ["All well"]


def test_a_job_that_waits_too_long_is_named_by_its_queue() -> None:
    counts = [
        count(State.AVAILABLE, oldest=301.0),
        count(State.AVAILABLE, queue="mail", oldest=3725.0),
        count(State.RUNNING, oldest=99999.0),
    ]
    found = findings(counts, [worker("default", "mail")])
    assert texts(found) == ["Oldest available job waits 1 h 2 min in queue mail"]


def test_a_late_worker_is_wrong_while_its_lease_still_runs() -> None:
    found = findings([], [worker(heartbeat_age=16.0)])
    assert texts(found) == ["Worker #3 on web-1 is late: last heartbeat 16 s ago, its lease is 30 s"]
    assert found[0].is_wrong


def test_late_begins_before_the_lease_ends_also_where_it_is_three_heartbeats() -> None:
    assert late_after(worker(lease=15.0, heartbeat=5.0)) < 15.0


def test_a_silent_worker_is_noted_below_the_headline() -> None:
    found = findings([], [worker(), worker(heartbeat_age=90.0)])
    assert texts(found) == ["All well", "1 worker fell silent without a goodbye in the last hour"]


def test_quarantined_jobs_are_noted_below_the_headline() -> None:
    found = findings([count(State.QUARANTINED, 2), count(State.QUARANTINED, queue="mail")], [worker()])
    assert texts(found) == ["All well", "3 jobs are quarantined and wait for a person"]


def test_what_is_wrong_comes_first_and_all_is_well_is_not_said() -> None:
    found = findings([count(State.QUARANTINED), count(State.AVAILABLE, queue="mail")], [worker()])
    assert texts(found) == [
        "No live worker for queue mail, where 1 job waits",
        "1 job is quarantined and waits for a person",
    ]


def paused(queue: str, reason: str = "the provider is down.") -> Pause:
    return Pause(queue, datetime(2026, 1, 1, 14, 2, tzinfo=UTC), "anna", reason)


def test_a_paused_queue_where_jobs_wait_is_said_so_with_who_since_when_and_why() -> None:
    counts = [count(State.AVAILABLE, 1200, oldest=60.0), count(State.SCHEDULED, 34)]
    headline, note = findings(counts, [worker()], paused("default"))
    assert headline.text == "All well"
    assert note.text == (
        "Queue default is paused by anna since 2026-01-01 14:02 UTC: the provider is down. 1,234 jobs wait"
    )
    assert not note.is_wrong


def test_a_paused_queue_is_wrong_once_jobs_have_waited_long_and_it_is_said_once() -> None:
    [only] = findings([count(State.AVAILABLE, 1, oldest=301.0)], [worker()], paused("default", "x" * 900))
    assert only.is_wrong
    assert "1 job waits" in only.text
    assert len(only.text) < 250


def test_a_paused_queue_where_nothing_waits_is_no_finding() -> None:
    [only] = findings([count(State.COMPLETED, 9)], [worker()], paused("default"), paused("mail"))
    assert only.text == "All well"
