"""The verdict: what the strip and the overview say of the whole."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from shiftboss.console.verdict import Finding, is_late, late_after
from shiftboss.console.verdict import findings as all_findings
from shiftboss.console.whole import Beat, Heard, Held, HeldBack, Served, Stuck, Whole, Workers
from shiftboss.queue.shortage import Shortage
from shiftboss.queue.states import State
from shiftboss.queue.store.queues import Pause
from shiftboss.queue.store.read import WorkerRow
from shiftboss.queue.store.samples import Count, Part

pytestmark = pytest.mark.requirement("C3", "L28")

HEARD = datetime(2026, 1, 1, 14, 2, tzinfo=UTC)
LATE = Beat(worker_id=3, host="web-1", seconds=16.0, lease_seconds=30.0)


def serving(*queues: str, **more: object) -> Workers:
    """A live worker of these queues."""
    named = {queue: Served(1, 8, 0, HEARD) for queue in queues or ("default",)}
    return Workers(live=1, slots=8, queues=named, **more)  # type: ignore[arg-type]


def findings(counts: list[Count], workers: Workers, *pauses: Pause, **more: object) -> list[Finding]:
    ages = dict.fromkeys(Part, 1.0)
    return all_findings(Whole(counts=counts, workers=workers, pauses=list(pauses), ages=ages, **more))  # type: ignore[arg-type]


def worker(*, heartbeat_age: float = 1.0, lease: float = 30.0, heartbeat: float = 5.0) -> WorkerRow:
    return WorkerRow(
        id=3,
        pool="default",
        host="web-1",
        pid=4711,
        state="running",
        queues=["default"],
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
        started_at=HEARD,
    )


def count(state: State, jobs: int = 1, *, queue: str = "default", oldest: float | None = None) -> Count:
    return Count(queue, state, jobs, oldest, False)


def texts(found: list[Finding]) -> list[str]:
    return [finding.text.replace("\N{NO-BREAK SPACE}", " ") for finding in found]


def test_a_served_queue_without_waits_is_well() -> None:
    [only] = findings([count(State.AVAILABLE, 9, oldest=2.0)], serving())
    assert only.text == "All well"
    assert not only.is_wrong


def test_no_live_worker_at_all_is_wrong_even_without_jobs() -> None:
    [headline] = findings([], Workers(last_heard=HEARD))
    assert headline.text == "No live worker: nothing runs"
    assert headline.is_wrong
    assert headline.since == HEARD


def test_before_anybody_has_looked_nothing_is_known_and_that_is_said() -> None:
    [only] = all_findings(Whole())
    assert only.text == (
        "No maintainer has looked at the record yet, so nothing is known of it."
        " Start one: manage.py shiftboss_maintainer"
    )
    assert only.is_wrong


@pytest.mark.requirement("B7")
def test_where_nobody_looks_any_more_it_is_said_how_old_all_is() -> None:
    headline, *_ = findings([], serving(), overdue_seconds=185.0)
    assert texts([headline]) == [
        "No maintainer looks at the record: what is shown is old. Start one: manage.py shiftboss_maintainer"
    ]
    assert headline.is_wrong
    assert headline.since
    assert abs(timezone.now() - headline.since - timedelta(seconds=185)) < timedelta(minutes=1)


@pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE, State.RETRYABLE])
def test_waiting_jobs_of_a_queue_that_nobody_serves_are_wrong(state: State) -> None:
    [served_once] = findings(
        [count(state, 1234, queue="mail")],
        Workers(live=1, queues={"default": Served(1, 8, 0, HEARD), "mail": Served(0, 0, 0, HEARD)}),
    )
    assert texts([served_once]) == ["No live worker for queue mail, where 1,234 jobs wait"]
    assert served_once.since == HEARD
    [never_served] = findings([count(state, 1, queue="mail")], serving("default"))
    assert texts([never_served]) == ["No live worker for queue mail, where 1 job waits"]
    assert never_served.since is None


def test_history_of_a_queue_that_nobody_serves_is_no_matter() -> None:
    assert texts(findings([count(State.COMPLETED, 5, queue="mail")], serving())) == ["All well"]


def test_a_job_that_waits_too_long_is_named_by_its_queue() -> None:
    counts = [
        count(State.AVAILABLE, oldest=299.0),
        count(State.AVAILABLE, queue="mail", oldest=3725.0),
        count(State.RUNNING, oldest=99999.0),
    ]
    found = findings(counts, serving("default", "mail"))
    assert texts(found) == ["Oldest available job waits 1 h 2 min in queue mail"]
    both = findings(
        [*counts, count(State.AVAILABLE, queue="news", oldest=301.0)], serving("default", "mail", "news")
    )
    assert texts(both) == ["2 queues are late; the oldest available job waits 1 h 2 min in queue mail"]


def test_a_late_worker_is_wrong_while_its_lease_still_runs() -> None:
    assert is_late(worker(heartbeat_age=16.0))
    assert not is_late(worker(heartbeat_age=14.0))
    found = findings([], serving(late=1, latest=LATE))
    assert texts(found) == ["Worker #3 on web-1 is late: last heartbeat 16 s ago, its lease is 30 s"]
    assert found[0].is_wrong


def test_late_begins_before_the_lease_ends_also_where_it_is_three_heartbeats() -> None:
    assert late_after(worker(lease=15.0, heartbeat=5.0)) < 15.0


def test_a_silent_worker_is_noted_below_the_headline() -> None:
    found = findings([], serving(silent=1))
    assert texts(found) == ["All well", "1 worker fell silent without a goodbye in the last hour"]


def test_quarantined_jobs_are_noted_below_the_headline() -> None:
    found = findings([count(State.QUARANTINED, 2), count(State.QUARANTINED, queue="mail")], serving())
    assert texts(found) == ["All well", "3 jobs are quarantined and wait for a person"]


def test_quarantined_jobs_of_the_last_hour_are_told_apart() -> None:
    held = [Held("poison", "default", 2, 2, HEARD, HEARD, 7)]
    found = findings([count(State.QUARANTINED, 2)], serving(), quarantine=held)
    assert texts(found) == ["All well", "2 jobs are quarantined and wait for a person, 2 of the last hour"]


def test_a_lease_that_is_over_and_was_not_taken_back_is_wrong() -> None:
    stuck = [Stuck(7, "default", "task", 3, 62.0)]
    [one] = findings([], serving(), stuck_in={"default": 1}, longest_stuck=stuck)
    assert texts([one]) == ["1 lease is over and its job was not taken back, for 1 min 2 s now"]
    assert one.is_wrong
    assert (one.page, one.query) == ("jobs", "?state=running")


def test_what_is_wrong_comes_first_and_all_is_well_is_not_said() -> None:
    found = findings([count(State.QUARANTINED), count(State.AVAILABLE, queue="mail")], serving())
    assert texts(found) == [
        "No live worker for queue mail, where 1 job waits",
        "1 job is quarantined and waits for a person",
    ]


def paused(queue: str, reason: str = "the provider is down.") -> Pause:
    return Pause(queue, datetime(2026, 1, 1, 14, 2, tzinfo=UTC), "anna", reason)


def test_a_paused_queue_where_jobs_wait_is_said_so_with_who_since_when_and_why() -> None:
    counts = [count(State.AVAILABLE, 1200, oldest=60.0), count(State.SCHEDULED, 34)]
    headline, note = findings(counts, serving(), paused("default"))
    assert headline.text == "All well"
    assert note.text == ("1,234 jobs wait in queue default, which is paused by anna (the provider is down)")
    assert note.since == datetime(2026, 1, 1, 14, 2, tzinfo=UTC)
    assert not note.is_wrong


def test_a_paused_queue_is_wrong_once_jobs_have_waited_long_and_it_is_said_once() -> None:
    [only] = findings([count(State.AVAILABLE, 1, oldest=301.0)], serving(), paused("default", "x" * 900))
    assert only.is_wrong
    assert "1 job waits" in only.text
    assert len(only.text) < 250


def test_a_paused_queue_where_nothing_waits_is_no_finding() -> None:
    [only] = findings([count(State.COMPLETED, 9)], serving(), paused("default"), paused("mail"))
    assert only.text == "All well"


def test_a_host_without_an_agent_is_told_and_one_without_a_supervisor_is_wrong() -> None:
    hosts = [Heard("web-1", HEARD, False, None, ()), Heard("web-2", HEARD, True, "no answer", ())]
    trouble, silent = findings([], serving(), hosts=hosts)
    assert (trouble.text, trouble.is_wrong) == ("The supervisor of host web-2 does not answer its agent", True)
    assert silent.text == "The agent of host web-1 is silent: nobody sees what runs there, or can steer it"
    assert (silent.is_wrong, silent.since, silent.page) == (False, HEARD, "hosts")


@pytest.mark.parametrize(
    ("short", "text", "wrong"),
    [
        (Shortage("disk", "home, data", 96), "the disk of home, data is 96 % full", True),
        (Shortage("memory", None, 93), "93 % of the memory is used", True),
        (Shortage("files", "web", 90), "web has opened 90 % of the files that it may", True),
        (Shortage("supervisor", None, 97), "its supervisor itself takes 97 % of a core", False),
        (
            Shortage("processor", None, 85),
            "programs waited for the processor for 85 % of the last minute",
            False,
        ),
    ],
)
def test_what_a_host_runs_short_of_is_told(short: Shortage, text: str, wrong: bool) -> None:
    found = findings([], serving(), hosts=[Heard("web-1", HEARD, True, None, (short,))])
    assert [(one.text, one.is_wrong) for one in found if one.page == "hosts"] == [(f"Host web-1: {text}", wrong)]


@pytest.mark.requirement("B2")
def test_a_program_that_crashes_in_a_loop_is_wrong_and_says_until_when_it_is_held_back() -> None:
    until = HEARD + timedelta(minutes=1)
    first = HeldBack("web-1", "worker-default-1", HEARD, until, 4, 40.0)
    again = HeldBack("a&b", "web", HEARD, until, 1, 0.0)
    headline, other, *_ = findings([], serving(), holds=[first, again])
    assert headline.text == "Crash loop: worker-default-1 on web-1 ended 4 times in 40\N{NO-BREAK SPACE}s"
    assert (headline.is_wrong, headline.since, headline.until) == (True, HEARD, until)
    assert (headline.page, headline.query, other.query) == ("hosts", "?host=web-1", "?host=a%26b")
    assert other.text == "Crash loop: web on a&b ended again after it had been held back"
