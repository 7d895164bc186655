"""The audit: who did what to which job or queue, why, and what it changed. It is only ever added to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from shiftboss.queue.authority import Authority, queues_of, require_staff, require_system
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import Statement, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One act to be kept. `asked`, `before` and `after` are JSON texts of objects; `jobs`: how many it changed."""

    actor_kind: str
    actor_id: str | None
    actor_name: str
    via: str
    act: str
    reason: str
    operation: UUID
    job_id: int | None = None
    queue: str | None = None
    jobs: int = 0
    request_id: str | None = None
    asked: str = "{}"
    before: str = "{}"
    after: str = "{}"


class Actor(NamedTuple):
    """Who acts or reads, as the audit knows them."""

    kind: str | None
    id: str | None


NOBODY = Actor(None, None)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One act as it was kept."""

    id: int
    at: datetime
    actor_kind: str
    actor_id: str | None
    actor_name: str
    via: str
    act: str
    job_id: int | None
    queue: str | None
    reason: str
    jobs: int
    operation: UUID
    request_id: str | None
    asked: str
    before: str
    after: str


_WRITE = Statement("audit", lambda id: int(id))
_AUDITED = Statement("audited", AuditRow)
_HOLD_REQUEST = Statement("hold_request", lambda *_: None)
_ENTRIES = Statement("audit_entries", AuditRow)
_OF_JOB = Statement("audit_of_job", AuditRow)
_TOTAL = Statement("audit_total", lambda jobs: int(jobs))

_REACH = Statement("audit_reach", lambda id, at: (int(id), at))

PAGE = 50
REACH = 20_000
"""Of a list that is narrowed by what no index knows, so many acts are looked at."""


def write(entry: Entry, *, authority: Authority) -> Verb[int]:
    """Keep an act; its number. In the transaction of the act itself.

    Raises psycopg.errors.UniqueViolation where this person's request has been done already.
    """
    require_system(authority, "audit")
    [number] = yield _WRITE.call(
        actor_kind=entry.actor_kind,
        actor_id=entry.actor_id,
        actor_name=entry.actor_name,
        via=entry.via,
        act=entry.act,
        job_id=entry.job_id,
        queue=entry.queue,
        reason=entry.reason,
        jobs=entry.jobs,
        operation=entry.operation,
        request_id=entry.request_id,
        asked=entry.asked,
        before=entry.before,
        after=entry.after,
    )
    return int(number)


def audited(
    request_id: str, *, authority: Authority, actor_kind: str, actor_id: str | None
) -> Verb[AuditRow | None]:
    """What this person's request did when it came first, or None."""
    require_system(authority, "audit")
    rows: list[AuditRow] = yield _AUDITED.call(request_id=request_id, actor_kind=actor_kind, actor_id=actor_id)
    return rows[0] if rows else None


def hold_request(request_id: str, *, authority: Authority, actor_kind: str, actor_id: str | None) -> Verb[None]:
    """Wait for an equal request of this person that is under way, and keep others waiting.

    Within a transaction only, until its end.
    """
    require_system(authority, "audit")
    yield _HOLD_REQUEST.call(request_id=request_id, actor_kind=actor_kind, actor_id=actor_id)


def entries(
    *,
    authority: Authority,
    job_id: int | None = None,
    queue: str | None = None,
    act: str | None = None,
    via: str | None = None,
    actor: str | None = None,
    before_id: int | None = None,
    limit: int = PAGE,
    reader: Actor = NOBODY,
) -> Verb[list[AuditRow]]:
    """Acts, the newest first, of one job or queue or of all; `before_id` goes on from an earlier page.

    Those of a job are the acts on it alone, and those on many that have changed it (by an index of its own).
    `act`, `via` and `actor` (a part of a name, in any case) narrow the newest `REACH` of them: see `reach`. So
    does a scope: it holds acts on its queues, the reader's own, and all on a job of its own that is asked for.
    """
    within = queues_of(authority, "audit")
    if job_id is not None and within is not None:
        if (yield from read.job(authority=authority, job_id=job_id)) is None:
            return []
        within = None
    asked = _ENTRIES if job_id is None else _OF_JOB
    rows: list[AuditRow] = yield asked.call(
        job_id=job_id,
        queue=queue,
        act=act,
        via=via,
        actor=actor,
        before_id=before_id,
        reach=REACH,
        limit=limit,
        **seen_by(within, reader),
    )
    return rows


def seen_by(within: frozenset[str] | None, reader: Actor) -> dict[str, Any]:
    """Parameters of `parts/audit_within.sql`."""
    return {
        "within": None if within is None else sorted(within),
        "reader_kind": reader.kind,
        "reader_id": reader.id,
    }


def reach(
    *, authority: Authority, job_id: int | None = None, queue: str | None = None, before_id: int | None = None
) -> Verb[tuple[int, datetime] | None]:
    """The last act that such a list has looked at, its id and its time, where there are more behind it.

    Of one job there never are.
    """
    require_staff(authority, "audit")
    if job_id is not None:
        return None
    rows: list[tuple[int, datetime]] = yield _REACH.call(queue=queue, before_id=before_id, reach=REACH)
    return rows[0] if rows else None


def total(operation: UUID, *, authority: Authority) -> Verb[int]:
    """How many jobs all acts of one operation have changed."""
    require_system(authority, "audit")
    [jobs] = yield _TOTAL.call(operation=operation)
    return int(jobs)
