"""What a job went through, as a line of moments: what happened, when, by whom, and how long it stayed so.

Told from what the record keeps anyway: the job's own times, its attempts, its stored events. Plain functions.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _

from shiftboss.console import words
from shiftboss.permissions import Act
from shiftboss.queue.jobs import AttemptRow, EventRow, JobDetail
from shiftboss.queue.states import FINAL, QuarantineReason, State
from shiftboss.queue.store.audit import AuditRow

LONGEST = 60
"""Moments that are shown; of more, the middle is left out."""

OF_HANDLERS = "event"
"""The kind of the events that handlers tell; the table of events has them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a job. `lasted_seconds` until the next one; None for the last of an ended job.

    `left_out`: so many moments that stand between are not shown, and this is where.
    """

    at: datetime
    what: str
    detail: str = ""
    fence: int | None = None
    worker_id: int | None = None
    wrong: bool = False
    lasted_seconds: float | None = None
    left_out: int = 0


def moments(
    job: JobDetail,
    attempts: Sequence[AttemptRow],
    events: Iterable[EventRow],
    acts: Iterable[AuditRow],
    *,
    now: datetime,
) -> list[Moment]:
    """The line, the oldest first. Equal times keep the order in which such things happen.

    `acts` on the job, as far as whoever looks may see them: they tell who ended it.
    """
    ended_by = next((_said(act) for act in acts if act.act in {Act.CANCEL, Act.DISCARD}), "")
    told = sorted(
        [
            *_of_the_job(job, ended_by),
            *_of_attempts(attempts),
            *_of_the_last_run(job, attempts),
            *_of_events(events),
        ],
        key=lambda moment: moment.at,
    )
    ends = [moment.at for moment in told[1:]] + [None if job.state in FINAL else now]
    whole = [
        replace(moment, lasted_seconds=None if end is None else max(0.0, (end - moment.at).total_seconds()))
        for moment, end in zip(told, ends, strict=True)
    ]
    if len(whole) <= LONGEST:
        return whole
    half = LONGEST // 2
    gap = replace(whole[half], what="", detail="", left_out=len(whole) - 2 * half, lasted_seconds=None)
    return [*whole[:half], gap, *whole[-half:]]


def _said(act: AuditRow) -> str:
    return _("by %(by)s: %(reason)s") % {"by": act.actor_name, "reason": act.reason}


def _of_the_job(job: JobDetail, ended_by: str) -> Iterator[Moment]:
    rerun = _("as a rerun of job %(job)s") % {"job": job.rerun_of} if job.rerun_of is not None else ""
    yield Moment(job.enqueued_at, _("Enqueued"), rerun)
    if job.due_at > job.enqueued_at and job.state is not State.QUARANTINED and not job.finished_at:
        yield Moment(job.due_at, _("Due"))
    if job.cancel_requested_at is not None:
        cause = words.spoken(words.CAUSES, job.cancel_cause or "")
        yield Moment(job.cancel_requested_at, _("End requested"), ended_by or cause)
    # What a person holds back has an event that tells who.
    if job.quarantined_at is not None and job.quarantine_reason != QuarantineReason.OPERATOR:
        reason = words.spoken(words.REASONS, job.quarantine_reason or "")
        yield Moment(job.quarantined_at, _("Quarantined"), reason, wrong=True)
    if job.finished_at is not None:
        what = words.spoken(words.STATES, job.state).capitalize()
        by = ended_by if job.state in {State.CANCELLED, State.DISCARDED} and not job.cancel_requested_at else ""
        yield Moment(job.finished_at, what, by, wrong=job.state is State.DISCARDED)


def _of_attempts(attempts: Iterable[AttemptRow]) -> Iterator[Moment]:
    for attempt in attempts:
        fence, worker_id = attempt.fence, attempt.worker_id
        if attempt.started_at is not None:
            yield Moment(attempt.started_at, _("Started"), fence=fence, worker_id=worker_id)
        error = ": ".join(part for part in (attempt.error_type, attempt.error_message) if part)
        wrong = attempt.outcome in {"failed", "lost"}
        what = words.spoken(words.OUTCOMES, attempt.outcome).capitalize()
        yield Moment(attempt.ended_at, what, error or attempt.error_code or "", fence, worker_id, wrong=wrong)


def _of_the_last_run(job: JobDetail, attempts: Sequence[AttemptRow]) -> Iterator[Moment]:
    """The start of the run that goes on, or that completed the job: it has left no row of an attempt."""
    if job.started_at is not None and job.state in {State.RUNNING, State.COMPLETED}:
        yield Moment(job.started_at, _("Started"), fence=job.fence, worker_id=job.worker_id)


def _of_events(events: Iterable[EventRow]) -> Iterator[Moment]:
    for event in events:
        if event.kind == OF_HANDLERS:
            continue
        detail = words.event(event.kind, json.loads(event.data)) or ""
        wrong = event.kind == "write_rejected"
        what = words.spoken(words.EVENTS, event.kind)
        yield Moment(event.at, what, detail, event.fence, event.worker_id, wrong=wrong)
