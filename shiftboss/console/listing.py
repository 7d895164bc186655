"""Jobs for programs: one with all that is known, and pages that begin at an id, so that no job is missed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shiftboss import acts
from shiftboss.console import conditions, query
from shiftboss.console.filters import BadFilter
from shiftboss.console.sight import seen
from shiftboss.console.stored import as_object
from shiftboss.permissions import VIEW_ARGUMENTS, Person, require
from shiftboss.queue.jobs import AttemptRow, EventRow, JobDetail, present_retry_kind, retry_kinds
from shiftboss.queue.payload import args_digest
from shiftboss.queue.states import State
from shiftboss.queue.store.backfill import BackfillRow
from shiftboss.queue.store.read import JobRow
from shiftboss.queue.store.search import Condition, Place, Search, search
from shiftboss.queue.store.statement import run


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs, the newest first; the next page lies before the id `older`, the one before it after the id `newer`."""

    rows: list[JobRow]
    older: int | None
    newer: int | None

    def as_object(self) -> dict[str, Any]:
        """The page for `stored.dumps`."""
        return {
            "jobs": [as_object(row) | {"kind": row.kind} for row in self.rows],
            "older": None if self.older is None else str(self.older),
            "newer": None if self.newer is None else str(self.newer),
        }


def jobs(
    states: Iterable[State],
    *,
    text: str = "",
    queue: str | None,
    before: int | None,
    after: int | None,
    limit: int,
    by: Person,
) -> Page:
    """The page of jobs in these states, of those that a query finds, before an id or after one, or the newest.

    Where few of the jobs that are looked through are meant, it has fewer, none even, and goes on from `older` or
    `newer` all the same. Raises BadFilter, Lacking.
    """
    asked = query.parse(text)
    for mistake in asked.mistakes:
        near = f" (nearest: {mistake.nearest})" if mistake.nearest else ""
        raise BadFilter(f"the query, at character {mistake.at + 1}: {mistake.problem}{near}")
    if any(term.name == "args" for term in asked.terms):
        require(VIEW_ARGUMENTS, by=by)
    told = conditions.states(asked)
    wanted = frozenset(states) if told is None else frozenset(states) & told
    where = conditions.conditions(asked)
    if queue is not None:
        where = (Condition("queue", [queue]), *where)
    start = before if after is None else after
    result = run(
        search(
            Search(states=wanted, conditions=where),
            authority=by.authority,
            beyond=None if start is None else Place(start),
            backwards=after is not None,
            limit=limit + 1,
        )
    )
    rows, more = [row.job for row in result.rows[:limit]], len(result.rows) > limit
    ended = result.edge.id if not more and not result.complete and result.edge else None
    if after is not None:
        rows.reverse()
        first = rows[0].id if rows else None
        return Page(rows, older=rows[-1].id if rows else None, newer=first if more else ended)
    last = rows[-1].id if rows else None
    return Page(rows, older=last if more else ended, newer=rows[0].id if rows and before is not None else None)


def job(
    found: JobDetail, attempts: Sequence[AttemptRow], events: Sequence[EventRow], *, by: Person
) -> dict[str, Any]:
    """One job for `stored.dumps`: what it is, what its state allows, its events, its attempts as `by` sees them.

    Retries of the job itself say of which kind they are; `kind` tells a rerun and a backfill's job from others.
    Its arguments are told by their digest alone: to reveal them is an act.
    """
    return {
        **as_object(found),
        "args": None,
        "args_sha256": args_digest(found.args),
        "kind": found.kind,
        "retry_kind": present_retry_kind(found, attempts),
        "acts": acts.legal(found.state),
        "attempts": [
            one.as_object() | {"retry_kind": kind}
            for one, kind in zip(seen(attempts, by=by), retry_kinds(attempts), strict=False)
        ],
        "events": [as_object(row) for row in events],
    }


def backfill(row: BackfillRow) -> dict[str, Any]:
    """One backfill for `stored.dumps`: what it is, and how far."""
    return as_object(row) | {"state": row.state, "items": row.items}
