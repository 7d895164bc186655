"""Acts that were kept, arranged for reading. Plain functions over what was read."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from shiftboss.acts import LimitWord, undone_by
from shiftboss.console import held, words
from shiftboss.console.text import number, stored
from shiftboss.permissions import Act, Person
from shiftboss.queue.states import State
from shiftboss.queue.store.audit import AuditRow

NEW_JOB = "new_job_id"
"""Beside the states of what an act has changed the job that it made."""


@dataclass(frozen=True, slots=True)
class Line:
    """One act, or all batches of a bulk act that stand together: who, when, what to, why, and what it changed.

    `host` and its `program`, or `pool`, are what something was asked of, `command_id` says what became of it.
    `scope`: what the jobs of a bulk act have in common beside their queue. `undo`: the operation, where the reader
    can still undo it.
    """

    id: int
    at: datetime
    by: str
    via: str
    act: str
    job_id: int | None
    queue: str | None
    jobs: int
    reason: str
    change: str
    new_job_id: int | None
    backfill_id: int | None = None
    worker_id: int | None = None
    host: str | None = None
    program: str | None = None
    pool: str | None = None
    command_id: int | None = None
    scope: str = ""
    undo: UUID | None = None


def lines(rows: Iterable[AuditRow], *, by: Person | None = None) -> list[Line]:
    """A line for each operation, in the order of the rows. `by`: who is offered to undo what they can."""
    return [_line(list(batches), by) for _operation, batches in groupby(rows, key=lambda row: row.operation)]


def reruns(rows: Iterable[AuditRow]) -> list[int]:
    """The jobs that acts of these have made, the oldest first."""
    return sorted(line.new_job_id for line in lines(rows) if line.new_job_id is not None)


def _line(batches: list[AuditRow], by: Person | None) -> Line:
    row = batches[0]
    after = json.loads(row.after)
    new_job_id, command_id = after.get(NEW_JOB), after.get("command_id")
    asked = json.loads(row.asked)
    backfill_id, worker_id = asked.get("backfill_id"), asked.get("worker_id")
    return Line(
        id=row.id,
        at=row.at,
        by=row.actor_name,
        via=words.spoken(words.VIAS, row.via),
        act=_act(row, asked),
        job_id=row.job_id,
        queue=row.queue,
        jobs=sum(batch.jobs for batch in batches),
        reason=row.reason,
        change=_bulk_change(batches) if row.job_id is None and row.jobs else _change(row),
        new_job_id=None if new_job_id is None else int(new_job_id),
        backfill_id=None if backfill_id is None else int(backfill_id),
        worker_id=None if worker_id is None else int(worker_id),
        host=asked.get("host"),
        program=asked.get("program"),
        pool=asked.get("pool"),
        command_id=None if command_id is None else int(command_id),
        scope=_scope(row, asked),
        undo=row.operation if by and _can_be_undone(row, by) else None,
    )


def _act(row: AuditRow, asked: dict[str, Any]) -> str:
    act = words.spoken(words.ACTS, row.act)
    return _("%(act)s, to undo") % {"act": act} if "undoes" in asked else act


def _scope(row: AuditRow, asked: dict[str, Any]) -> str:
    """Of a bulk act on the quarantine the reason and the task; of one on a queue the task."""
    if row.job_id is not None or not row.jobs or "undoes" in asked:
        return ""
    reason = held.HEADLINES.get(asked.get("reason", ""))
    return ", ".join(str(part) for part in (reason, asked.get("task")) if part)


def _can_be_undone(row: AuditRow, by: Person) -> bool:
    return row.jobs > 0 and undone_by(row.act, (timezone.now() - row.at).total_seconds(), by=by) is not None


def _change(row: AuditRow) -> str:
    asked, before, after = (json.loads(document) for document in (row.asked, row.before, row.after))
    match row.act:
        case Act.REPRIORITISE:
            return f"{before.get('priority')} → {after.get('priority')}"
        case Act.RESCHEDULE:
            return f"{stored(before.get('due_at'))} → {stored(after.get('due_at'))}"
        case Act.RERUN | Act.EDIT | Act.REVEAL:
            return ""  # the new job is named; to look changes nothing
        case Act.CANCEL if after.get("state") == State.RUNNING:
            return _("end requested")
        case Act.LIMIT:
            change = f"{words.limit(before['state'])} → {words.limit(after['state'])}"
            return _("%(change)s, as the settings say") % {"change": change} if _is_reset(asked) else change
        case Act.RETRY_BACKFILL | Act.CANCEL_BACKFILL:
            return _("%(items)s items") % {"items": number(after.get("items", 0))}
        case Act.SCALE_POOL:
            return _("%(count)s workers") % {"count": number(int(asked.get("count", 0)))}
        case _ if "host" in asked:
            return ""  # what became of it is told by its command
        case Act.PURGE:
            return _("history before %(day)s") % {"day": asked.get("before")}
    if before.get("state") is None or after.get("state") is None:
        return ", ".join(str(value) for value in asked.values())
    return f"{_state(before['state'])} → {_state(after['state'])}"


def _is_reset(asked: dict[str, Any]) -> bool:
    """Whether the settings were to hold again, and not what they say was wished for."""
    return bool(asked.get("limit") == LimitWord.SETTINGS)


def _bulk_change(batches: list[AuditRow]) -> str:
    return f"{_tally(batch.before for batch in batches)} → {_tally(batch.after for batch in batches)}"


def _tally(documents: Iterable[str]) -> str:
    """How many jobs were in which state, over all batches."""
    sums: Counter[str] = Counter()
    for document in documents:
        sums.update({state: jobs for state, jobs in json.loads(document).items() if state != NEW_JOB})
    return ", ".join(f"{number(jobs)} {_state(state)}" for state, jobs in sorted(sums.items()))


def _state(name: str) -> str:
    return words.spoken({**words.WORKER_STATES, **words.STATES, **words.QUEUE_STATES}, name)
