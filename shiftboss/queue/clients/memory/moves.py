"""What each verb makes of a job: plain functions of the job, the outcome and the time. No I/O, no locks.

Where a verb leads is read from `TRANSITIONS`; what else changes with it is told here.
"""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from shiftboss.queue.clients.memory.job import Job
from shiftboss.queue.jobs import AttemptRow
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.states import FINAL, TRANSITIONS, Actor, QuarantineReason, State, Verb

OUTCOMES: dict[type[Outcome], tuple[Verb, str, str]] = {
    Done: (Verb.COMPLETE, "complete", "completed"),
    Failed: (Verb.FAIL, "fail", "failed"),
    Released: (Verb.RELEASE, "release", "released"),
    Snoozed: (Verb.SNOOZE, "snooze", "snoozed"),
    Discarded: (Verb.DISCARD, "discard", "discarded"),
    Quarantined: (Verb.QUARANTINE, "quarantine", "quarantined"),
    Lost: (Verb.REAP, "reap_own", "lost"),
}
"""For each kind of outcome: the verb, its name where it is refused, and the trace that it leaves."""

EXPIRED = Lost(
    alone=True,
    suspect=False,
    code="lease_expired",
    message="the worker stopped renewing its lease",
    evidence="{}",
)
"""What the reaper knows of a run whose lease has expired."""

LONGEST_CHECKPOINT = 2000
"""In characters of JSON: a longer one is not repeated in the evidence."""


def leads_to(job: Job, verb: Verb, *, by: Actor | None = None, at_limit: bool = False) -> State | None:
    """Where the verb takes the job; None where it is refused."""
    rule = TRANSITIONS.get((job.state, verb))
    if rule is None or (by is not None and by not in rule.by):
        return None
    if job.cancel_requested_at is not None and rule.if_cancel_requested is not None:
        return rule.if_cancel_requested
    return rule.at_limit if at_limit and rule.at_limit is not None else rule.to


def claim(job: Job, *, worker_id: int, lease_seconds: float, now: datetime) -> Job:
    """Lease the job to a worker."""
    return replace(
        job,
        state=State.RUNNING,
        fence=job.fence + 1,
        worker_id=worker_id,
        started_at=now,
        lease_expires_at=now + timedelta(seconds=lease_seconds),
    )


def finish(job: Job, state: State, now: datetime, *, cause: str | None = None, **changes: Any) -> Job:
    """End a job for good. `cause`: of a cancellation that nobody had asked for before."""
    asked_at = job.cancel_requested_at if cause is None else job.cancel_requested_at or now
    return replace(
        job,
        **changes,
        state=state,
        finished_at=now,
        lease_expires_at=None,
        cancel_cause=job.cancel_cause or cause,
        cancel_requested_at=asked_at,
        quarantine_reason=None,
        quarantined_at=None,
        follow_up=False,
    )


def end_run(job: Job, outcome: Outcome, now: datetime) -> tuple[Job, AttemptRow | None]:
    """End the run of a leased job as its worker reports it, with the evidence of what is no success."""
    verb, _, trace = OUTCOMES[type(outcome)]
    limit = _limit(job, outcome)
    state = leads_to(job, verb, at_limit=limit is not None)
    assert state is not None, f"{verb} of a {job.state} job"
    told = _told(outcome)
    if state not in FINAL:
        after = _rested(job, state, outcome, limit, now)
        return after, _attempt(job, trace, now, told)
    match outcome:
        case Done():
            return finish(job, state, now, **_changes(outcome)), None
        case Failed() | Lost():
            return finish(job, state, now, **_changes(outcome)), _attempt(job, trace, now, told)
        case Discarded():
            return finish(job, state, now, **_changes(outcome)), _attempt(job, str(state), now, told)
    # It ended because somebody had asked for that, whatever the worker says.
    told["error_message"] = None
    return finish(job, state, now, run_ms=told.get("run_ms")), _attempt(job, str(state), now, told)


def _rested(job: Job, state: State, outcome: Outcome, limit: QuarantineReason | None, now: datetime) -> Job:
    """The job after a run that was not its last word."""
    changes = {name: value for name, value in _changes(outcome).items() if name != "run_ms"}
    return replace(
        job,
        **changes,
        **_counted(job, outcome, now),
        **_held_back(state, limit or _reason(outcome), now),
        state=state,
        worker_id=None,
        lease_expires_at=None,
    )


def reap(job: Job, now: datetime, lost: Lost = EXPIRED) -> tuple[Job, AttemptRow]:
    """Take a job from a worker that does not answer for it any more."""
    at_limit = job.losses + 1 >= job.loss_limit
    state = leads_to(job, Verb.REAP, at_limit=at_limit)
    assert state is not None, f"reap of a {job.state} job"
    attempt = _attempt(job, "lost", now, _told(lost))
    if state in FINAL:
        return finish(job, state, now, worker_id=None, **_error(lost.code, lost.message)), attempt
    after = replace(
        job,
        **_error(lost.code, lost.message),
        **_held_back(state, QuarantineReason.LOSSES_EXHAUSTED, now),
        state=state,
        losses=job.losses + 1,
        due_at=now,
        worker_id=None,
        lease_expires_at=None,
    )
    return after, attempt


def _limit(job: Job, outcome: Outcome) -> QuarantineReason | None:
    """Which limit this outcome uses up."""
    match outcome:
        case Failed(backoff_seconds=wait) if wait is None or job.failures + 1 >= job.failure_limit:
            return QuarantineReason.FAILURES_EXHAUSTED
        case Lost(alone=True) if job.losses + 1 >= job.loss_limit:
            return QuarantineReason.POISON
    return None


def _reason(outcome: Outcome) -> QuarantineReason | None:
    return outcome.reason if isinstance(outcome, Quarantined) else None


def _counted(job: Job, outcome: Outcome, now: datetime) -> dict[str, Any]:
    """What a run that goes on later counts, and when it is due again."""
    match outcome:
        case Failed(backoff_seconds=wait):
            return {"failures": job.failures + 1, "suspect": False, "due_at": now + timedelta(seconds=wait or 0.0)}
        case Lost(alone=alone, suspect=suspect):
            return {"losses": job.losses + alone, "suspect": suspect, "due_at": now}
        case Snoozed(seconds=wait):
            return {"due_at": now + timedelta(seconds=wait)}
    return {}


def _held_back(state: State, reason: str | None, now: datetime) -> dict[str, Any]:
    held = state is State.QUARANTINED
    return {"quarantine_reason": str(reason) if held else None, "quarantined_at": now if held else None}


def _changes(outcome: Outcome) -> dict[str, Any]:
    """The fields of the job that the outcome itself says."""
    match outcome:
        case Done(result=result, run_ms=run_ms):
            return {"result": result, "run_ms": run_ms}
        case Failed():
            error = _error(outcome.code, outcome.message, outcome.type, outcome.fingerprint)
            return {**error, "run_ms": outcome.run_ms}
        case Discarded(message=message, run_ms=run_ms):
            return {**_error("discarded", message), "run_ms": run_ms}
        case Quarantined(reason=reason, message=message):
            return _error(str(reason), message)
        case Lost(code=code, message=message):
            return _error(code, message)
    return {}


def _told(outcome: Outcome) -> dict[str, Any]:
    """The evidence that the outcome gives."""
    told = _changes(outcome)
    match outcome:
        case Failed(traceback=traceback):
            told["traceback"] = traceback
        case Released(code=code):
            told["error_code"] = code
        case Snoozed(run_ms=run_ms):
            told["run_ms"] = run_ms
    if not isinstance(outcome, Done):
        told["evidence"] = outcome.evidence
    return told


def _evidence(said: str, checkpoint: str | None) -> str:
    """What an attempt keeps: what its worker says of it, and the checkpoint that the job had by then."""
    told: dict[str, Any] = json.loads(said)
    if checkpoint is not None:
        short = len(checkpoint) <= LONGEST_CHECKPOINT
        told |= {"checkpoint": json.loads(checkpoint)} if short else {"checkpoint_characters": len(checkpoint)}
    return json.dumps(told, ensure_ascii=False)


def _error(code: str, message: str, type: str | None = None, fingerprint: str | None = None) -> dict[str, Any]:
    return {"error_code": code, "error_type": type, "error_message": message, "error_fingerprint": fingerprint}


def _attempt(job: Job, outcome: str, now: datetime, told: dict[str, Any]) -> AttemptRow:
    blank: dict[str, Any] = dict.fromkeys(
        ("run_ms", "error_code", "error_type", "error_message", "error_fingerprint", "traceback")
    )
    return AttemptRow(
        job_id=job.id,
        fence=job.fence,
        worker_id=job.worker_id,
        outcome=outcome,
        started_at=job.started_at,
        ended_at=now,
        **{**blank, **told, "evidence": _evidence(told.get("evidence", "{}"), job.checkpoint)},
    )
