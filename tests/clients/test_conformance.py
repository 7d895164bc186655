"""One contract of records and clients, held to it by one body of tests: PostgreSQL and memory."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.contract import Lease, Mark, Note, NoteKind, Settlement, WorkerStatus
from shiftboss.queue.errors import InvalidJob, KeyHeld, NotAllowed
from shiftboss.queue.jobs import Answer, Changed, Limits, OnConflict, Unchanged, Why
from shiftboss.queue.keys import Scope
from shiftboss.queue.outcomes import Done, Lost, Outcome, Snoozed
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.ports import CANCEL
from shiftboss.queue.states import State
from tests.clients.records import SYSTEM, MemoryRecord, Record, Seat, SqlRecord
from tests.store.making import (
    DISCARDED,
    DONE,
    FAILED,
    LOST,
    QUARANTINED,
    RELEASED,
    SNOOZED,
    TASK,
    new_job,
)
from tests.waiting import wait_for

KIM, SAM, EVA = Owner("kim"), Owner("sam"), Owner("eva")
LIMITS = Limits(failures=4, losses=2, by_task={TASK: (7, 6)})
OUTCOMES: dict[str, Outcome] = {
    "complete": DONE,
    "fail": FAILED,
    "release": RELEASED,
    "snooze": SNOOZED,
    "discard": DISCARDED,
    "quarantine": QUARANTINED,
    "reap_own": LOST,
}
# What each end makes of a job that may still fail, and of one whose end was asked for.
LEADS_TO = {
    "complete": "completed",
    "fail": "retryable",
    "release": "available",
    "snooze": "scheduled",
    "discard": "discarded",
    "quarantine": "quarantined",
    "reap_own": "retryable",
}
TRACE = {"fail": "failed", "release": "released", "snooze": "snoozed", "reap_own": "lost"} | {
    "discard": "discarded",
    "quarantine": "quarantined",
}

Seats = Callable[..., Seat]


@pytest.fixture(params=["postgres", "memory"])
def both(request: pytest.FixtureRequest, record: None) -> Record:
    """Each of the records, empty."""
    made: Record = SqlRecord() if request.param == "postgres" else MemoryRecord()
    return made


@pytest.fixture
def seats(both: Record) -> Iterator[Seats]:
    """Makes workers, each of its own process."""
    loop = asyncio.new_event_loop()
    made: list[Seat] = []

    def seat(**how: Any) -> Seat:
        made.append(Seat(both, pid=len(made) + 1, loop=loop, **how))
        return made[-1]

    yield seat
    for one in made:
        one.close()
    loop.close()


@pytest.fixture
def worker(seats: Seats) -> Seat:
    """A worker."""
    return seats()


def put(record: Record, n: int = 1, *, authority: Any = SYSTEM, **how: Any) -> list[int]:
    """Ids of new jobs."""
    return [record.enqueue(new_job(**how), authority=authority).id for _ in range(n)]


def state(record: Record, job_id: int) -> str:
    """Where a job stands."""
    return str(record.job(authority=SYSTEM, job_id=job_id).state)


def whole(record: Record, job_id: int) -> Any:
    """All that is known of a job, but for what passes with time, and for events."""
    job = record.job(authority=SYSTEM, job_id=job_id)
    told = {name: getattr(job, name) for name in job.__slots__ if name != "lease_seconds_left"}
    return told, record.attempts(authority=SYSTEM, job_id=job_id)


def events(record: Record, job_id: int) -> list[tuple[int, str, Any]]:
    """Number, kind and data of a job's events."""
    found = record.events(authority=SYSTEM, job_id=job_id)
    return [(event.seq, event.kind, json.loads(event.data)) for event in found]


def lost_lease(record: Record, worker: Seat) -> Lease:
    """A lease that has run out."""
    put(record)
    [lease] = worker.claimed()
    record.later(31)
    return lease


@pytest.mark.requirement("N3", "L2")
def test_a_job_keeps_all_that_it_was_given(both: Record, worker: Seat) -> None:
    due = datetime.now(UTC) + timedelta(hours=1)
    how = {
        "queue": "mail",
        "priority": 7,
        "tenant": "acme",
        "watchers": ("sam",),
        "tags": ("monthly", "x"),
        "key": "k",
        "meta": '{"a": 1}',
        "failure_limit": 9,
        "loss_limit": 8,
    }
    job = new_job(**how, args='{"args": [1], "kwargs": {}}', deadline_in=7200)
    answer = both.enqueue(job, authority=KIM)
    assert (answer.state, answer.existing) == (State.AVAILABLE, False)
    told = both.job(authority=KIM, job_id=answer.id)
    assert (told.queue, told.priority, told.tenant, told.owner) == ("mail", 7, "acme", "kim")
    assert (told.watchers, told.tags, told.key) == (["sam"], ["monthly", "x"], "owner:kim::k")
    assert (json.loads(told.args), json.loads(told.meta)) == ({"args": [1], "kwargs": {}}, {"a": 1})
    assert (told.failure_limit, told.loss_limit, told.failures, told.losses) == (9, 8, 0, 0)
    assert (told.fence, told.worker_id, told.lease_seconds_left) == (0, None, None)
    assert told.deadline == job.deadline
    later = both.enqueue(new_job(due_in=3600), authority=KIM)
    assert (later.state, both.job(authority=KIM, job_id=later.id).due_at > due) == (State.SCHEDULED, True)


@pytest.mark.requirement("N3", "L2")
def test_claims_take_the_highest_priority_first_then_the_longest_due_then_the_oldest(
    both: Record, worker: Seat
) -> None:
    usual = put(both, 2)
    [late] = put(both, due_in=-5)
    [urgent] = put(both, priority=100)
    [idle] = put(both, priority=-100)
    jobs = worker.claim(10)
    assert [job.id for job in jobs] == [urgent, late, *usual, idle]
    assert {(job.fence, job.queue, job.task, job.suspect) for job in jobs} == {(1, "default", TASK, False)}
    assert worker.claim(10) == []


@pytest.mark.requirement("N3", "B13")
def test_a_claim_past_a_mark_takes_only_what_is_behind_it(both: Record, worker: Seat) -> None:
    first, second = put(both, 2)
    put(both, priority=3)
    place = both.job(authority=SYSTEM, job_id=first)
    assert [job.id for job in worker.claim(5, after=Mark(0, place.due_at, first))] == [second]


@pytest.mark.requirement("N3", "L23", "P6", "P5")
def test_what_may_not_run_is_not_claimed(both: Record, worker: Seat) -> None:
    put(both, task="shop.tasks.unknown")
    put(both, queue="other")
    put(both, due_in=3600)
    [late] = put(both, deadline_in=60)
    both.later(61)
    assert worker.claim(10) == []
    assert both.expire(authority=SYSTEM) == 1
    gone = both.job(authority=SYSTEM, job_id=late)
    assert (gone.state, gone.cancel_cause) == (State.CANCELLED, "deadline")
    put(both)
    assert both.pause("default", authority=SYSTEM, by="kim", reason="stop")
    assert not both.pause("default", authority=SYSTEM, by="sam", reason="me too")
    assert worker.claim(10) == []
    assert both.resume("default", authority=SYSTEM)
    assert not both.resume("default", authority=SYSTEM)
    assert len(worker.claim(10)) == 1


@pytest.mark.requirement("N3", "L2")
def test_a_claim_takes_no_more_than_it_may(both: Record, worker: Seat) -> None:
    put(both, 5)
    assert [len(worker.claim(n)) for n in (2, 2, 2)] == [2, 2, 1]


@pytest.mark.requirement("N3", "L5", "N9")
@pytest.mark.parametrize("verb", OUTCOMES)
def test_each_end_of_a_run_leads_where_it_should_and_leaves_its_trace(
    verb: str, both: Record, worker: Seat
) -> None:
    [job_id] = put(both)
    [lease] = worker.claimed()
    assert worker.report(lease, OUTCOMES[verb]) == Settlement(settled={lease})
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert str(job.state) == LEADS_TO[verb]
    assert (job.failures, job.losses) == (int(verb == "fail"), int(verb == "reap_own"))
    assert (job.worker_id, job.lease_seconds_left) == (worker.id if job.finished_at else None, None)
    assert (job.started_at is not None, job.fence, job.suspect) == (True, 1, verb == "reap_own")
    traces = both.attempts(authority=SYSTEM, job_id=job_id)
    assert [one.outcome for one in traces] == ([TRACE[verb]] if verb in TRACE else [])
    assert {(one.fence, one.worker_id) for one in traces} <= {(1, worker.id)}
    if verb == "complete":
        assert (json.loads(job.result), job.run_ms) == ({"sum": 3}, 12)
    if verb == "fail":
        [trace] = traces
        for told in (job, trace):
            assert (told.error_code, told.error_type, told.error_message) == ("handler_raised", "ValueError", "no")
        assert (trace.traceback, trace.run_ms) == ("Traceback…", 12)
    if verb == "quarantine":
        assert (job.quarantine_reason, job.error_code) == ("invalid_arguments", "invalid_arguments")


@pytest.mark.requirement("N3", "N11", "L5")
@pytest.mark.parametrize("verb", OUTCOMES)
def test_an_end_that_was_asked_for_comes_with_whatever_end_but_a_completion(
    verb: str, both: Record, worker: Seat
) -> None:
    [job_id] = put(both)
    [lease] = worker.claimed()
    asked = Answer((Changed(job_id, State.RUNNING, State.RUNNING),))
    assert both.cancel([job_id], authority=SYSTEM) == asked
    assert both.cancel([job_id], authority=SYSTEM, cause="superseded") == asked
    beat = worker.heartbeat(lease)
    assert (beat.renewed, beat.cancelled) == ({lease}, {lease: "user"})
    assert worker.report(lease, OUTCOMES[verb]) == Settlement(settled={lease})
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert str(job.state) == ("completed" if verb == "complete" else "cancelled")
    assert (job.cancel_cause, job.worker_id, job.failures, job.losses) == ("user", worker.id, 0, 0)
    # The answer was lost: the same report once more.
    before = whole(both, job_id)
    assert worker.report(lease, OUTCOMES[verb]) == Settlement(settled={lease})
    assert whole(both, job_id) == before
    assert events(both, job_id) == []


@pytest.mark.requirement("N3", "L27", "N9")
@pytest.mark.parametrize("verb", OUTCOMES)
def test_a_repeat_is_answered_as_the_first_time_and_anything_else_is_refused(
    verb: str, both: Record, worker: Seat
) -> None:
    [job_id] = put(both)
    [lease] = worker.claimed()
    worker.report(lease, OUTCOMES[verb])
    before = whole(both, job_id)
    assert worker.report(lease, OUTCOMES[verb]) == Settlement(settled={lease})
    other = RELEASED if verb == "complete" else DONE
    assert worker.report(lease, other) == Settlement(lost={lease})
    assert whole(both, job_id) == before
    [(seq, kind, told)] = events(both, job_id)
    assert (seq, kind, told["state"]) == (1, "write_rejected", LEADS_TO[verb])
    # A heartbeat that comes after the end is not late, but needless.
    assert worker.heartbeat(lease).lost == {lease}
    assert len(events(both, job_id)) == 1


@pytest.mark.requirement("N3", "S8")
def test_a_completion_with_another_result_is_another_completion(both: Record, worker: Seat) -> None:
    put(both)
    [lease] = worker.claimed()
    worker.report(lease, Done('{"a": 1, "b": [2]}', 12))
    assert worker.report(lease, Done('{"b":[2],"a":1}', 99)) == Settlement(settled={lease})
    assert worker.report(lease, Done('{"a": 2}', 12)) == Settlement(lost={lease})


@pytest.mark.requirement("N3", "L4", "B4")
@pytest.mark.parametrize("verb", [*OUTCOMES, "heartbeat", "note"])
@pytest.mark.parametrize("held", ["by another", "expired", "by an older fence"])
def test_who_holds_no_lease_changes_nothing_and_is_recorded(
    held: str, verb: str, both: Record, seats: Seats
) -> None:
    owner, stranger = seats(), seats()
    if held == "by another":
        put(both)
        [lease] = owner.claimed()
        who = stranger
    else:
        lease, who = lost_lease(both, owner), owner
        if held == "by an older fence":
            assert both.reap(authority=SYSTEM) == [lease.job_id]
            assert both.stage(authority=SYSTEM) == 1
            assert owner.claimed() == [Lease(lease.job_id, 2)]
    before = whole(both, lease.job_id)
    if verb == "heartbeat":
        assert (who.heartbeat(lease).lost, who.heartbeat(lease).renewed) == ({lease}, set())
    elif verb == "note":
        note = Note(NoteKind.CHECKPOINT, "1")
        assert who.note((lease, note), (lease, note)) == Settlement(lost={lease})
    elif (held, verb) == ("by an older fence", "reap_own"):
        # Reaped it is, whoever has done it.
        assert who.report(lease, LOST) == Settlement(settled={lease})
        return
    else:
        assert who.report(lease, OUTCOMES[verb]) == Settlement(lost={lease})
    assert whole(both, lease.job_id) == before
    told = [data for _, kind, data in events(both, lease.job_id) if kind == "write_rejected"]
    fence = 2 if held == "by an older fence" else 1
    expected = {
        "verb": "checkpoint" if verb == "note" else verb,
        "fence_offered": 1,
        "fence_held": fence,
        "worker_held": owner.id,
        "state": "running",
    }
    assert told == [expected] * (2 if verb == "heartbeat" else 1)


@pytest.mark.requirement("N3", "L4")
def test_a_lease_of_a_job_that_is_not_there_is_lost(both: Record, worker: Seat) -> None:
    nobody = Lease(2**40, 1)
    assert worker.report(nobody, DONE) == Settlement(lost={nobody})
    assert worker.heartbeat(nobody).lost == {nobody}
    assert [kind for _, kind, _ in events(both, nobody.job_id)] == ["write_rejected"] * 2


@pytest.mark.requirement("N3", "L4")
def test_one_batch_may_hold_good_and_bad_and_a_job_under_two_fences(both: Record, seats: Seats) -> None:
    worker, other = seats(), seats()
    put(both, 3)
    one, two = worker.claimed(2)
    [foreign] = other.claimed()
    stale = Lease(one.job_id, 0)
    answer = worker.report([one, two, foreign, stale], DONE)
    assert answer == Settlement(settled={one, two}, lost={foreign, stale})
    assert state(both, foreign.job_id) == "running"


@pytest.mark.requirement("N3", "L3", "N9")
def test_a_heartbeat_prolongs_the_lease(both: Record, worker: Seat) -> None:
    put(both)
    [lease] = worker.claimed()
    both.later(29)
    assert worker.heartbeat(lease).renewed == {lease}
    both.later(29)
    assert both.reap(authority=SYSTEM) == []
    assert worker.heartbeat().renewed == set()
    assert worker.report(lease, DONE).settled == {lease}


@pytest.mark.requirement("N3", "N14", "L29")
def test_an_expired_lease_is_reaped_and_at_its_limit_quarantined(both: Record, worker: Seat) -> None:
    [job_id] = put(both, loss_limit=2)
    for after in ("retryable", "quarantined"):
        both.stage(authority=SYSTEM)
        [lease] = worker.claimed()
        assert both.reap(authority=SYSTEM) == []
        both.later(30.1)
        assert both.reap(authority=SYSTEM) == [job_id]
        assert state(both, job_id) == after
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert (job.losses, job.quarantine_reason, job.error_code) == (2, "losses_exhausted", "lease_expired")
    assert [one.outcome for one in both.attempts(authority=SYSTEM, job_id=job_id)] == ["lost"] * 2
    # The reaper's word is not the worker's own.
    assert worker.heartbeat(lease).lost == {lease}
    assert [kind for _, kind, _ in events(both, job_id)] == ["write_rejected"]


@pytest.mark.requirement("N3", "N14")
def test_a_reaped_run_whose_end_was_asked_for_is_cancelled(both: Record, worker: Seat) -> None:
    lease = lost_lease(both, worker)
    both.cancel([lease.job_id], authority=SYSTEM)
    both.reap(authority=SYSTEM)
    job = both.job(authority=SYSTEM, job_id=lease.job_id)
    assert (job.state, job.cancel_cause, job.worker_id) == (State.CANCELLED, "user", None)
    assert job.error_code == "lease_expired"


@pytest.mark.requirement("N3", "L29", "R6")
@pytest.mark.parametrize(
    ("alone", "after", "losses"),
    [(True, "quarantined", 1), (False, "retryable", 0)],
    ids=["alone", "among others"],
)
def test_only_a_death_while_alone_counts(alone: bool, after: str, losses: int, both: Record, worker: Seat) -> None:
    [job_id] = put(both, loss_limit=1)
    [lease] = worker.claimed()
    worker.report(lease, Lost(alone=alone, suspect=True, code="executor_died", message="9", evidence='{"s": 9}'))
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert (str(job.state), job.losses, job.suspect) == (after, losses, True)
    assert job.quarantine_reason == ("poison" if alone else None)
    [trace] = both.attempts(authority=SYSTEM, job_id=job_id)
    assert json.loads(trace.evidence) == {"s": 9}


@pytest.mark.requirement("N3", "L29")
def test_a_job_that_has_failed_as_often_as_it_may_is_held_until_it_is_reinstated(
    both: Record, worker: Seat
) -> None:
    [job_id] = put(both, failure_limit=1)
    [lease] = worker.claimed()
    worker.report(lease, FAILED)
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert (job.state, job.quarantine_reason) == (State.QUARANTINED, "failures_exhausted")
    changed = Answer((Changed(job_id, State.QUARANTINED, State.AVAILABLE),))
    assert both.reinstate([job_id], authority=SYSTEM, by="kim", limits=LIMITS) == changed
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert (job.failures, job.failure_limit, job.loss_limit, job.quarantined_at) == (1, 8, 6, None)
    assert worker.claimed() == [Lease(job_id, 2)]


@pytest.mark.requirement("N3", "R8")
def test_a_failure_without_a_backoff_is_held_at_once_with_its_evidence(both: Record, worker: Seat) -> None:
    [final, retried] = put(both, 2, failure_limit=5)
    one, other = worker.claimed(2)
    worker.report(one, dataclasses.replace(FAILED, backoff_seconds=None))
    worker.report(other, dataclasses.replace(FAILED, backoff_seconds=0.0))
    job = both.job(authority=SYSTEM, job_id=final)
    assert (job.state, job.quarantine_reason, job.failures) == (State.QUARANTINED, "failures_exhausted", 1)
    assert job.quarantined_at is not None
    [trace] = both.attempts(authority=SYSTEM, job_id=final)
    assert (trace.outcome, trace.error_type, trace.traceback) == ("failed", FAILED.type, FAILED.traceback)
    assert both.job(authority=SYSTEM, job_id=retried).state is State.RETRYABLE


@pytest.mark.requirement("N3", "P5")
def test_what_waits_is_staged_when_it_is_due(both: Record, worker: Seat) -> None:
    scheduled = put(both, due_in=100)
    put(both, 2)
    failed, snoozed = worker.claimed(2)
    worker.report(failed, FAILED)
    worker.report(snoozed, Snoozed(90.0, 12))
    assert both.stage(authority=SYSTEM) == 0
    both.later(61)
    assert both.stage(authority=SYSTEM) == 1
    assert worker.do(worker.client.stage()) == 0
    both.later(40)
    assert worker.do(worker.client.stage()) == 2
    assert [job.id for job in worker.claim(5)] == [failed.job_id, snoozed.job_id, *scheduled]


@pytest.mark.requirement("N3", "L5")
def test_a_result_that_is_no_json_is_a_failure_of_that_one_alone(both: Record, worker: Seat) -> None:
    put(both, 2)
    good, bad = worker.claimed(2)
    answer = worker.do(worker.client.complete([(good, DONE), (bad, Done("{", 12))]))
    assert answer == Settlement(settled={good, bad})
    job = both.job(authority=SYSTEM, job_id=bad.job_id)
    assert (job.state, job.error_code, state(both, good.job_id)) == (
        State.RETRYABLE,
        "result_not_storable",
        "completed",
    )


@pytest.mark.requirement("N3", "L18", "L20", "N8")
def test_what_a_handler_notes_is_kept_and_its_checkpoint_comes_with_the_next_claim(
    both: Record, worker: Seat
) -> None:
    [job_id] = put(both)
    [job] = worker.claim()
    assert job.checkpoint is None
    notes = [
        Note(NoteKind.CHECKPOINT, '{"row": 1}'),
        Note(NoteKind.EVENT, '{"n": 1}', "begun"),
        Note(NoteKind.PROGRESS, '{"done": 3}'),
        Note(NoteKind.EVENT, '{"n": 2}', "half"),
        Note(NoteKind.CHECKPOINT, '{"row": 2}'),
    ]
    assert worker.note(*[(job.lease, note) for note in notes]) == Settlement(settled={job.lease})
    assert events(both, job_id) == [
        (1, "event", {"name": "begun", "data": {"n": 1}}),
        (2, "event", {"name": "half", "data": {"n": 2}}),
    ]
    worker.report(job.lease, RELEASED)
    [again] = worker.claim()
    assert (again.fence, json.loads(again.checkpoint or "")) == (2, {"row": 2})


@pytest.mark.requirement("N3", "L15", "L20")
def test_a_job_keeps_its_revision_and_a_rerun_takes_it_or_another(both: Record, worker: Seat) -> None:
    old, new = TaskConfig(task=TASK, isolation="process"), TaskConfig(task=TASK, timeout_seconds=5)
    [job_id] = put(both, revision=old)
    [job] = worker.claim()
    assert job.revision_id == old.revision
    texts = worker.do(worker.client.revisions([old.revision, 7]))
    assert {number: TaskConfig.from_json(text) for number, text in texts.items()} == {old.revision: old}
    worker.report(job.lease, DONE)
    same = both.rerun(job_id, authority=SYSTEM, limits=LIMITS)
    other = both.rerun(job_id, authority=SYSTEM, limits=LIMITS, revision=new)
    assert [one.revision_id for one in worker.claim(2)] == [old.revision, new.revision]
    assert both.job(authority=SYSTEM, job_id=same.id).rerun_of == job_id
    told = both.job(authority=SYSTEM, job_id=other.id)
    assert (TaskConfig.from_json(told.revision), told.failure_limit, told.loss_limit) == (new, 7, 6)


@pytest.mark.requirement("N3", "N1", "N14")
def test_a_worker_is_known_by_its_id_and_keeps_it(both: Record, seats: Seats) -> None:
    worker, other = seats(), seats()
    assert worker.id != other.id
    status = WorkerStatus(state="running", in_use=0, idle=True, tasks=(TASK,), lag_ms=0, losses=0)
    assert worker.do(worker.client.worker_heartbeat(status))
    assert worker.do(worker.client.register(worker.registration, [TASK])) == worker.id
    assert not both.worker_heartbeat(status, authority=SYSTEM, worker_id=10**9)
    put(both, task="shop.tasks.unknown")
    put(both, task="other.queue", queue="other")
    assert worker.do(worker.client.waiting_tasks([TASK])) == ["shop.tasks.unknown"]
    assert worker.do(worker.client.reap()) == 0


@pytest.mark.requirement("N2", "L4")
def test_workers_of_one_record_share_its_jobs_and_the_end_of_one_disturbs_no_other(
    both: Record, seats: Seats
) -> None:
    one, other = seats(), seats()
    ids = put(both, 4)
    ours, theirs = one.claimed(2), other.claimed(2)
    assert sorted(lease.job_id for lease in [*ours, *theirs]) == ids
    one.close()
    assert other.heartbeat(*theirs).renewed == set(theirs)
    assert other.report(theirs, DONE).settled == set(theirs)
    # What the first one held is another's only after its lease.
    assert other.claim(5) == []
    both.later(31)
    assert sorted(both.reap(authority=SYSTEM)) == sorted(lease.job_id for lease in ours)
    both.stage(authority=SYSTEM)
    assert sorted(lease.job_id for lease in other.claimed(2)) == sorted(lease.job_id for lease in ours)


@pytest.mark.requirement("N3", "N5", "P2")
def test_a_key_is_held_by_one_live_job_of_its_owner_or_of_all(both: Record, worker: Seat) -> None:
    first = both.enqueue(new_job(key="k"), authority=KIM)
    again = both.enqueue(new_job(key="k"), authority=KIM)
    assert (again.id, again.existing, again.state) == (first.id, True, State.AVAILABLE)
    other = both.enqueue(new_job(key="k"), authority=SAM)
    assert not other.existing
    everyones = both.enqueue(new_job(key="k", key_scope=Scope.GLOBAL), authority=KIM)
    met = both.enqueue(new_job(key="k", key_scope=Scope.GLOBAL), authority=SAM)
    assert (everyones.existing, met.existing, met.id) == (False, True, everyones.id)
    with pytest.raises(KeyHeld) as refused:
        both.enqueue(new_job(key="k", on_conflict=OnConflict.REFUSE), authority=KIM)
    assert refused.value.holder == first.id
    assert worker.report(worker.claimed(3), DONE).lost == set()
    assert not both.enqueue(new_job(key="k"), authority=KIM).existing


@pytest.mark.requirement("N3", "P2")
def test_a_waiting_holder_is_replaced_and_no_other(both: Record, worker: Seat) -> None:
    how = {"key": "k", "key_scope": Scope.GLOBAL, "on_conflict": OnConflict.REPLACE}
    first = both.enqueue(new_job(**how), authority=KIM)
    with pytest.raises(KeyHeld, match="another owner"):
        both.enqueue(new_job(**how), authority=SAM)
    second = both.enqueue(new_job(**how), authority=KIM)
    gone = both.job(authority=KIM, job_id=first.id)
    assert (gone.state, gone.cancel_cause, second.existing) == (State.CANCELLED, "superseded", False)
    worker.claimed()
    with pytest.raises(KeyHeld, match="running"):
        both.enqueue(new_job(**how), authority=KIM)


@pytest.mark.requirement("N3", "P2")
def test_a_follow_up_waits_for_the_end_of_the_one_that_runs(both: Record, worker: Seat) -> None:
    [first] = put(both, key="k")
    [lease] = worker.claimed()
    after = both.enqueue(new_job(key="k", follow_up=True), authority=SYSTEM)
    assert (after.state, after.existing) == (State.SCHEDULED, False)
    assert both.job(authority=SYSTEM, job_id=after.id).key_holder == first
    assert both.enqueue(new_job(key="k", follow_up=True), authority=SYSTEM).id == after.id
    assert both.stage(authority=SYSTEM) == 0
    unchanged = Answer((), (Unchanged(after.id, Why.KEY_HELD, State.SCHEDULED, first),))
    assert both.expedite([after.id], authority=SYSTEM, by="kim") == unchanged
    worker.report(lease, DONE)
    assert both.enqueue(new_job(key="k"), authority=SYSTEM).id == after.id
    assert both.stage(authority=SYSTEM) == 1
    assert worker.claimed() == [Lease(after.id, 1)]
    held = both.rerun(first, authority=SYSTEM, limits=LIMITS)
    assert held == Unchanged(first, Why.KEY_HELD, State.COMPLETED, after.id)


@pytest.mark.requirement("N3", "P5", "P2")
def test_many_are_enqueued_in_their_order_and_all_or_none(both: Record, worker: Seat) -> None:
    jobs = [new_job(key="b"), new_job(), new_job(key="a"), new_job(key="b"), new_job(due_in=60)]
    answers = both.enqueue_many(jobs, authority=KIM)
    assert [answer.existing for answer in answers] == [False, False, False, True, False]
    assert answers[3].id == answers[0].id
    assert [answer.state for answer in answers[1:]] == [State.AVAILABLE] * 3 + [State.SCHEDULED]
    with pytest.raises(KeyHeld):
        both.enqueue_many([new_job(), new_job(key="b", on_conflict=OnConflict.REFUSE)], authority=KIM)
    replaced = new_job(key="a", on_conflict=OnConflict.REPLACE)
    with pytest.raises(KeyHeld):
        both.enqueue_many([replaced, new_job(key="b", on_conflict=OnConflict.REFUSE)], authority=KIM)
    assert len(both.jobs(authority=SYSTEM, state=State.AVAILABLE)) == 3
    assert len(worker.claim(10)) == 3


@pytest.mark.requirement("N3", "N4", "N6", "C4")
def test_an_owner_sees_and_cancels_its_own_and_what_it_watches_and_nothing_else(
    both: Record, worker: Seat
) -> None:
    [job_id] = put(both, authority=KIM, watchers=("sam",))
    for who, sees in ((KIM, True), (SAM, True), (SYSTEM, True), (EVA, False)):
        assert (both.job(authority=who, job_id=job_id) is not None) == sees
        assert [row.id for row in both.jobs(authority=who, state=State.AVAILABLE)] == [job_id] * sees
    worker.heartbeat(Lease(job_id, 5))
    assert both.events(authority=EVA, job_id=job_id) == []
    assert len(both.events(authority=SAM, job_id=job_id)) == 1
    assert both.cancel([job_id], authority=EVA) == Answer((), (Unchanged(job_id, Why.MISSING),))
    for verb, how in (
        (both.expedite, {"by": "kim"}),
        (both.reprioritise, {"by": "kim", "priority": 1}),
        (both.reschedule, {"by": "kim", "due_at": datetime.now(UTC)}),
        (both.quarantine, {"by": "kim"}),
        (both.reinstate, {"by": "kim", "limits": LIMITS}),
        (both.discard, {}),
    ):
        with pytest.raises(NotAllowed):
            verb([job_id], authority=KIM, **how)
    changed = Answer((Changed(job_id, State.AVAILABLE, State.CANCELLED),))
    assert both.cancel([job_id], authority=SAM) == changed
    assert both.cancel([job_id], authority=SAM) == Answer((), (Unchanged(job_id, Why.STATE, State.CANCELLED),))
    again = both.rerun(job_id, authority=SYSTEM, limits=LIMITS)
    rerun = both.job(authority=KIM, job_id=again.id)
    assert (rerun.owner, rerun.watchers, rerun.rerun_of) == ("kim", [], job_id)
    assert both.job(authority=SAM, job_id=again.id) is None


@pytest.mark.requirement("N3", "N4")
def test_nobody_calls_without_authority(both: Record, worker: Seat) -> None:
    [job_id] = put(both)
    for call in (
        lambda who: both.enqueue(new_job(), authority=who),
        lambda who: both.cancel([job_id], authority=who),
        lambda who: both.job(authority=who, job_id=job_id),
        lambda who: both.jobs(authority=who, state=State.AVAILABLE),
        lambda who: both.stage(authority=who),
        lambda who: both.pause("default", authority=who, by="x", reason="y"),
    ):
        for nobody in (None, "kim", ""):
            with pytest.raises(TypeError, match="authority"):
                call(nobody)
    with pytest.raises(NotAllowed):
        both.claim(authority=KIM, worker_id=worker.id, queue="default", tasks=[TASK], limit=1, lease_seconds=30)
    with pytest.raises(NotAllowed):
        both.report([(Lease(job_id, 1), DONE)], authority=KIM, worker_id=worker.id)
    assert state(both, job_id) == "available"


@pytest.mark.requirement("N3", "C4", "L17")
def test_what_an_operator_does_is_an_event(both: Record, worker: Seat) -> None:
    [job_id] = put(both, due_in=3600)
    noon = datetime(2090, 1, 1, 12, tzinfo=UTC)
    both.reprioritise([job_id], authority=SYSTEM, by="kim", priority=9)
    both.reschedule([job_id], authority=SYSTEM, by="kim", due_at=noon)
    assert both.job(authority=SYSTEM, job_id=job_id).due_at == noon
    both.expedite([job_id], authority=SYSTEM, by="kim")
    both.quarantine([job_id], authority=SYSTEM, by="sam")
    told = events(both, job_id)
    assert [(seq, kind, data["by"], data["from"]) for seq, kind, data in told] == [
        (1, "reprioritise", "kim", "scheduled"),
        (2, "reschedule", "kim", "scheduled"),
        (3, "expedite", "kim", "scheduled"),
        (4, "quarantine", "sam", "available"),
    ]
    assert (told[0][2]["priority"], told[0][2]["priority_before"]) == (9, 0)
    job = both.job(authority=SYSTEM, job_id=job_id)
    assert (job.quarantine_reason, job.priority) == ("operator", 9)
    discarded = Answer((Changed(job_id, State.QUARANTINED, State.DISCARDED),))
    assert both.discard([job_id, job_id], authority=SYSTEM) == discarded
    assert both.discard([job_id], authority=SYSTEM).unchanged == (Unchanged(job_id, Why.STATE, State.DISCARDED),)


@pytest.mark.requirement("N3")
def test_what_no_record_could_hold_is_refused(both: Record) -> None:
    [job_id] = put(both)
    with pytest.raises(InvalidJob):
        both.reprioritise([job_id], authority=SYSTEM, by="kim", priority=101)
    with pytest.raises(InvalidJob):
        both.reschedule([job_id], authority=SYSTEM, by="kim", due_at=datetime(2030, 1, 1))
    with pytest.raises(InvalidJob):
        both.pause("", authority=SYSTEM, by="kim", reason="x")
    with pytest.raises(InvalidJob):
        both.limit("default", authority=SYSTEM, concurrency=0)
    with pytest.raises(InvalidJob):
        both.limit("default", authority=SYSTEM, concurrency=2, sequential=True)


@pytest.mark.requirement("N3", "L6", "P6")
def test_a_limited_queue_runs_no_more_than_its_limit(both: Record, seats: Seats) -> None:
    one, other = seats(), seats()
    put(both, 5)
    both.limit("default", authority=SYSTEM, concurrency=2)
    first = one.claimed()
    second = other.claim(5)
    assert (len(second), one.claim(5)) == (1, [])
    one.report(first, FAILED)
    assert len(one.claim(5)) == 1
    both.limit("default", authority=SYSTEM, concurrency=None)
    assert len(other.claim(5)) == 2


@pytest.mark.requirement("N3", "N16")
def test_a_sequential_queue_keeps_its_order_and_a_retry_holds_the_line(both: Record, worker: Seat) -> None:
    first, second = put(both, 2)
    both.limit("default", authority=SYSTEM, concurrency=1, sequential=True)
    [lease] = worker.claimed()
    assert (lease.job_id, worker.claim(5)) == (first, [])
    worker.report(lease, FAILED)
    assert worker.claim(5) == []
    both.later(61)
    both.stage(authority=SYSTEM)
    [again] = worker.claim(5)
    assert again.id == first
    worker.report(again.lease, DONE)
    assert [job.id for job in worker.claim(5)] == [second]


@pytest.mark.requirement("N3", "N16")
def test_a_line_whose_holder_is_past_its_deadline_goes_on_by_the_workers_alone(both: Record, worker: Seat) -> None:
    [late] = put(both, deadline_in=30)
    [second] = put(both)
    both.limit("default", authority=SYSTEM, concurrency=1, sequential=True)
    [lease] = worker.claimed()
    assert lease.job_id == late
    worker.report(lease, FAILED)
    both.later(61)
    assert worker.do(worker.client.stage()) == 1
    assert (state(both, late), [job.id for job in worker.claim(5)]) == ("cancelled", [second])


@pytest.mark.requirement("N3", "C1", "N11")
def test_hints_and_orders_are_heard_by_whom_they_concern(both: Record, worker: Seat) -> None:
    status = WorkerStatus(state="running", in_use=0, idle=True, tasks=(TASK,), lag_ms=0, losses=0)
    worker.do(worker.client.worker_heartbeat(status))
    put(both)
    [lease] = worker.claimed()
    heard: list[tuple[str | None, int]] = []
    orders: list[str] = []
    loop = asyncio.new_event_loop()
    ended = threading.Event()

    async def listen() -> None:
        try:
            await both.wakeups().listen(
                worker.id, woken=lambda queue, priority: heard.append((queue, priority)), ordered=orders.append
            )
        finally:
            ended.set()

    listening = loop.create_task(listen())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        # Whoever begins to listen may have missed anything.
        wait_for(lambda: heard == [(None, 0)] and orders == [CANCEL], seconds=10)
        put(both, priority=-7)
        wait_for(lambda: heard == [(None, 0), ("default", -7)], seconds=10)
        both.cancel([lease.job_id], authority=SYSTEM)
        wait_for(lambda: orders == [CANCEL, CANCEL], seconds=10)
    finally:
        loop.call_soon_threadsafe(listening.cancel)
        assert ended.wait(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
    put(both)  # nobody listens any more
    assert len(heard) == 2
