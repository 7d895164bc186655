"""Each verb on a job in each state, against a table written by hand from the design, on both executors."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.contract import Heartbeat, Lease, Settlement
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.states import State
from shiftboss.queue.store import operate, upkeep
from shiftboss.queue.store.enqueue import Enqueued
from shiftboss.queue.store.operate import Answer, Changed, Limits, Unchanged, Why
from shiftboss.queue.store.statement import Verb, run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    TASK,
    available,
    claim,
    enqueued,
    events,
    execute,
    expired,
    finished,
    live,
    running,
    scalar,
    state,
    to_be_cancelled,
    wait_for_expiry,
    whole,
)
from tests.store.test_notes import NOTES, tell
from tests.store.test_rejections import offer

Make = Callable[[int], Lease]
LIMITS = Limits(failures=4, losses=2, by_task={TASK: (7, 6)})
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def just_running(worker: int) -> Lease:
    """A job that the worker has just claimed."""
    [held] = running(worker)
    return held


def at_its_failure_limit(worker: int) -> Lease:
    """A running job that may not fail once more."""
    [held] = running(worker, failure_limit=1)
    return held


def at_its_loss_limit(worker: int) -> Lease:
    """A running job that may not be lost once more."""
    [held] = running(worker, loss_limit=1)
    return held


def expired_at_its_loss_limit(worker: int) -> Lease:
    """A job with an expired lease that may not be lost once more."""
    return expired(worker, loss_limit=1)


def expired_to_be_cancelled(worker: int) -> Lease:
    """A job with an expired lease, whose end somebody has asked for."""
    held = to_be_cancelled(worker, lease_seconds=0.1)
    wait_for_expiry(held)
    return held


def a_follow_up(worker: int) -> Lease:
    """A job that waits for the end of the running one with its key."""
    running(worker, key="k1")
    return Lease(enqueued(key="k1", follow_up=True)[0], 0)


STATES: dict[str, Make] = {
    "scheduled": NOT_HELD["scheduled"],
    "follow-up": a_follow_up,
    "available": available,
    "retryable": NOT_HELD["retryable"],
    "running": just_running,
    "running, at its failure limit": at_its_failure_limit,
    "running, at its loss limit": at_its_loss_limit,
    "running, to be cancelled": to_be_cancelled,
    "expired": expired,
    "expired, at its loss limit": expired_at_its_loss_limit,
    "expired, to be cancelled": expired_to_be_cancelled,
    "quarantined": NOT_HELD["quarantined"],
    "completed": NOT_HELD["completed"],
    "cancelled": NOT_HELD["cancelled"],
    "discarded": NOT_HELD["discarded"],
    "missing": NOT_HELD["missing"],
}
"""A job in each state that is possible, made by verbs alone; the lease is the latest that the worker had of it."""


def by_a_person(verb: Callable[..., Verb[Answer]], **params: Any) -> Callable[[Lease, int], Verb[Any]]:
    """A verb of `operate` on the one job."""
    return lambda held, worker: verb([held.job_id], authority=SYSTEM, **params)


def by_a_worker(verb: str) -> Callable[[Lease, int], Verb[Any]]:
    """A worker's verb under its lease."""
    return lambda held, worker: offer(verb, held, worker)


def by_a_handler(note: str) -> Callable[[Lease, int], Verb[Any]]:
    """What a running handler tells."""
    return lambda held, worker: tell(worker, (held, NOTES[note]))


VERBS: dict[str, Callable[[Lease, int], Verb[Any]]] = {
    "claim": lambda held, worker: claim(worker, n=5),
    "stage": lambda held, worker: upkeep.stage(authority=SYSTEM),
    "reap": lambda held, worker: upkeep.reap(authority=SYSTEM),
    "expire": lambda held, worker: upkeep.expire(authority=SYSTEM),
    "quarantine unknown": lambda held, worker: upkeep.quarantine_unknown(authority=SYSTEM, seconds=600),
    "discard held": lambda held, worker: upkeep.discard_held_too_long(authority=SYSTEM, seconds=600),
    "heartbeat": by_a_worker("heartbeat"),
    "progress": by_a_handler("progress"),
    "checkpoint": by_a_handler("checkpoint"),
    "event": by_a_handler("event"),
    "complete": by_a_worker("complete"),
    "fail": by_a_worker("fail"),
    "snooze": by_a_worker("snooze"),
    "release": by_a_worker("release"),
    "discard": by_a_worker("discard"),
    "quarantine": by_a_worker("quarantine"),
    "reap own": by_a_worker("reap_own"),
    "operator: cancel": by_a_person(operate.cancel),
    "operator: expedite": by_a_person(operate.expedite, by="kim"),
    "operator: quarantine": by_a_person(operate.quarantine, by="kim"),
    "operator: reprioritise": by_a_person(operate.reprioritise, by="kim", priority=7),
    "operator: reschedule": by_a_person(operate.reschedule, by="kim", due_at=NOON),
    "operator: reinstate": by_a_person(operate.reinstate, by="kim", limits=LIMITS),
    "operator: discard": by_a_person(operate.discard),
    "operator: rerun": lambda held, worker: operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS),
}

OF_A_RUNNING_JOB = {
    "heartbeat": "running",
    "progress": "running",
    "checkpoint": "running",
    "event": "running",
    "complete": "completed",
    "fail": "retryable",
    "snooze": "scheduled",
    "release": "available",
    "discard": "discarded",
    "quarantine": "quarantined",
    "reap own": "retryable",
    "operator: cancel": "running",
}
OF_A_WAITING_JOB = {"expire": "cancelled", "operator: cancel": "cancelled", "operator: quarantine": "quarantined"}

# State → what each verb makes of it, once the time has passed that it waits for. A verb that is not named is
# refused, and changes nothing.
TABLE: dict[str, dict[str, str]] = {
    "scheduled": OF_A_WAITING_JOB
    | {
        "stage": "available",
        "operator: expedite": "available",
        "operator: reprioritise": "scheduled",
        "operator: reschedule": "scheduled",
    },
    "follow-up": OF_A_WAITING_JOB
    | {
        "operator: reprioritise": "scheduled",
        "operator: reschedule": "scheduled",
    },
    "available": OF_A_WAITING_JOB
    | {
        "claim": "running",
        "quarantine unknown": "quarantined",
        "operator: reprioritise": "available",
        "operator: reschedule": "scheduled",
    },
    "retryable": OF_A_WAITING_JOB
    | {
        "stage": "available",
        "operator: expedite": "available",
        "operator: reprioritise": "retryable",
        "operator: reschedule": "retryable",
    },
    "running": OF_A_RUNNING_JOB,
    "running, at its failure limit": OF_A_RUNNING_JOB | {"fail": "quarantined"},
    "running, at its loss limit": OF_A_RUNNING_JOB | {"reap own": "quarantined"},
    "running, to be cancelled": {
        "heartbeat": "running",
        "progress": "running",
        "checkpoint": "running",
        "event": "running",
        "complete": "completed",
        "fail": "cancelled",
        "snooze": "cancelled",
        "release": "cancelled",
        "discard": "cancelled",
        "quarantine": "cancelled",
        "reap own": "cancelled",
        "operator: cancel": "running",
    },
    "expired": {"reap": "retryable", "operator: cancel": "running"},
    "expired, at its loss limit": {"reap": "quarantined", "operator: cancel": "running"},
    "expired, to be cancelled": {"reap": "cancelled", "operator: cancel": "running"},
    "quarantined": {
        "operator: cancel": "cancelled",
        "operator: reinstate": "available",
        "operator: discard": "discarded",
        "discard held": "discarded",
    },
    # A rerun is a new job; the old one stays as it is.
    "completed": {"operator: rerun": "completed"},
    "cancelled": {"operator: rerun": "cancelled"},
    "discarded": {"operator: rerun": "discarded"},
    "missing": {},
}


def time_passes(job_id: int, verb: str) -> None:
    """What the verb waits for has come: the job is due, past its deadline, long unknown, long held."""
    match verb:
        case "stage":
            execute("update shiftboss_job set due_at = now() - interval '1 second' where id = %s", job_id)
        case "expire":
            execute("update shiftboss_job set deadline = now() - interval '1 second' where id = %s", job_id)
        case "discard held":
            execute(
                "update shiftboss_job set quarantined_at = now() - interval '1 hour' where state = 'quarantined'"
            )
        case "quarantine unknown":
            execute("update shiftboss_job set task = 'nobody.knows', due_at = due_at - interval '3 hours'")
            execute("update shiftboss_worker set started_at = started_at - interval '3 hours'")


def refused(answer: Any) -> bool:
    """Whether the answer says that the verb did nothing, and says so clearly."""
    match answer:
        case Settlement(settled=settled, lost=lost, busy=busy):
            return bool(lost) and not settled and not busy
        case Heartbeat(renewed=renewed, busy=busy, lost=lost):
            return bool(lost) and not renewed and not busy
        case Answer(changed=(), unchanged=(Unchanged(why=Why.STATE | Why.MISSING),)):
            return True
        case Unchanged(why=Why.STATE | Why.MISSING):
            return True
        case int() | []:
            return not answer
    return False


def repeated(verb: str, kind: str) -> bool:
    """Whether this is the same end of the same run once more, which is settled as it was the first time."""
    return (kind, verb) in {
        ("available", "release"),
        ("retryable", "fail"),
        ("quarantined", "fail"),
        ("completed", "complete"),
        ("discarded", "discard"),
        # A run that ended in a cancellation keeps no word of how the worker had reported it.
        *[("cancelled", verb) for verb in ("release", "snooze", "discard", "quarantine")],
    }


EDGES = [(kind, verb) for kind, verbs in TABLE.items() for verb in verbs]


def test_the_table_names_every_state_and_only_verbs_that_are_tried() -> None:
    assert set(TABLE) == set(STATES)
    assert {verb for verbs in TABLE.values() for verb in verbs} == set(VERBS)


@pytest.mark.requirement("L5", "L17", "N10")
@pytest.mark.parametrize(("kind", "verb"), EDGES)
def test_a_verb_leads_to_where_the_design_says(kind: str, verb: str, perform: Perform, worker: int) -> None:
    held = STATES[kind](worker)
    time_passes(held.job_id, verb)
    before = live(held.job_id) or finished(held.job_id) or {}
    answer = perform(VERBS[verb](held, worker))
    after = TABLE[kind][verb]
    assert not refused(answer)
    assert state(held.job_id) == after
    if isinstance(answer, Answer):
        assert answer == Answer((Changed(held.job_id, State(before["state"]), State(after)),), ())
    if isinstance(answer, Settlement):
        assert answer == Settlement(settled={held})
    if isinstance(answer, Enqueued):
        assert scalar("select rerun_of from shiftboss_job where id = %s", answer.id) == held.job_id
    # The row is in one table, with a cause where it was cancelled.
    assert (live(held.job_id) is None) == (after in {"completed", "cancelled", "discarded"})
    if after == "cancelled" != before["state"]:
        row = finished(held.job_id) or {}
        assert row["cancel_cause"] == ("deadline" if verb == "expire" else "user")
        assert row["cancel_requested_at"] is not None


@pytest.mark.requirement("L4", "L5", "C4")
@pytest.mark.parametrize("kind", STATES)
def test_every_other_verb_is_refused_and_changes_nothing(kind: str, perform: Perform, worker: int) -> None:
    for verb in VERBS:
        if verb in TABLE[kind]:
            continue
        held = STATES[kind](worker)
        time_passes(held.job_id, verb)
        before = whole(held.job_id)
        answer = perform(VERBS[verb](held, worker))
        assert whole(held.job_id) == before, verb
        if (kind, verb) == ("follow-up", "operator: expedite"):
            [unchanged] = answer.unchanged
            assert (unchanged.why, unchanged.holder) == (
                Why.KEY_HELD,
                scalar("select id from shiftboss_job where state = 'running'"),
            )
        elif repeated(verb, kind):
            assert answer == Settlement(settled={held}), verb
        elif verb == "claim":
            assert held.job_id not in {job.id for job in answer}
        else:
            assert refused(answer), (verb, answer)
        execute("delete from shiftboss_job")


@pytest.mark.requirement("C4", "N4")
@pytest.mark.parametrize(
    "verb",
    [verb for verb in VERBS if verb.startswith("operator") and verb != "operator: cancel"],
)
def test_an_owner_does_what_is_its_own_and_no_more(verb: str, worker: int) -> None:
    [job_id] = enqueued(authority=Owner("kim"))
    before = whole(job_id)
    function = {
        "expedite": lambda who: operate.expedite([job_id], authority=who, by="kim"),
        "quarantine": lambda who: operate.quarantine([job_id], authority=who, by="kim"),
        "reprioritise": lambda who: operate.reprioritise([job_id], authority=who, by="kim", priority=1),
        "reschedule": lambda who: operate.reschedule([job_id], authority=who, by="kim", due_at=NOON),
        "reinstate": lambda who: operate.reinstate([job_id], authority=who, by="kim", limits=LIMITS),
        "discard": lambda who: operate.discard([job_id], authority=who),
        "rerun": lambda who: operate.rerun(job_id, authority=who, limits=LIMITS),
    }[verb.removeprefix("operator: ")]
    with pytest.raises(NotAllowed, match="is for System"):
        run(function(Owner("kim")))
    assert whole(job_id) == before


BY_A_PERSON = {
    "expedite": ("scheduled", {}),
    "quarantine": ("available", {}),
    "reprioritise": ("retryable", {"priority": 7, "priority_before": 0}),
    "reinstate": ("quarantined", {}),
}


@pytest.mark.requirement("L17", "B6")
@pytest.mark.parametrize("verb", BY_A_PERSON)
def test_what_the_rows_own_times_do_not_tell_is_an_event(verb: str, perform: Perform, worker: int) -> None:
    kind, detail = BY_A_PERSON[verb]
    held = STATES[kind](worker)
    perform(offer("complete", held, worker))  # a rejection: the first event
    perform(VERBS[f"operator: {verb}"](held, worker))
    rejected, event = events(held.job_id)
    assert (rejected["seq"], rejected["kind"], event["seq"], event["kind"]) == (1, "write_rejected", 2, verb)
    expected = {"by": "kim", "from": kind} | detail
    assert scalar("select data::jsonb = %s::jsonb from shiftboss_event where seq = 2", json.dumps(expected))
