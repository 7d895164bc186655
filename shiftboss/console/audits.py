"""Acts that were kept, arranged for reading. Plain functions over what was read."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _

from shiftboss.acts import LimitWord
from shiftboss.console import words
from shiftboss.console.text import number, stored
from shiftboss.permissions import Act
from shiftboss.queue.states import State
from shiftboss.queue.store.audit import AuditRow


@dataclass(frozen=True, slots=True)
class Line:
    """One act, or all batches of a bulk act that stand together: who, when, what to, why, and what it changed."""

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


def lines(rows: Iterable[AuditRow]) -> list[Line]:
    """A line for each operation, in the order of the rows."""
    return [_line(list(batches)) for _operation, batches in groupby(rows, key=lambda row: row.operation)]


def reruns(rows: Iterable[AuditRow]) -> list[int]:
    """The jobs that acts of these have made, the oldest first."""
    return sorted(line.new_job_id for line in lines(rows) if line.new_job_id is not None)


def _line(batches: list[AuditRow]) -> Line:
    row = batches[0]
    new_job_id = json.loads(row.after).get("new_job_id")
    asked = json.loads(row.asked)
    backfill_id, worker_id = asked.get("backfill_id"), asked.get("worker_id")
    return Line(
        id=row.id,
        at=row.at,
        by=row.actor_name,
        via=words.spoken(words.VIAS, row.via),
        act=words.spoken(words.ACTS, row.act),
        job_id=row.job_id,
        queue=row.queue,
        jobs=sum(batch.jobs for batch in batches),
        reason=row.reason,
        change=_bulk_change(batches) if row.job_id is None and row.jobs else _change(row),
        new_job_id=None if new_job_id is None else int(new_job_id),
        backfill_id=None if backfill_id is None else int(backfill_id),
        worker_id=None if worker_id is None else int(worker_id),
    )


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
        sums.update(json.loads(document))
    return ", ".join(f"{number(jobs)} {_state(state)}" for state, jobs in sorted(sums.items()))


def _state(name: str) -> str:
    return words.spoken({**words.WORKER_STATES, **words.STATES, **words.QUEUE_STATES}, name)
