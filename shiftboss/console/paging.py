"""Pages of a list that stay right while jobs come and go: each begins at an id, not at a number of rows."""

from dataclasses import dataclass
from datetime import datetime

from shiftboss.console.filters import JobFilter
from shiftboss.queue.store.search import FoundJob, Place, Searched


@dataclass(frozen=True, slots=True)
class JobPage:
    """The jobs of a page in their order, and where its neighbours begin.

    `further`: where the search goes on that was ended before its page was full; it has looked at `looked` jobs,
    as far as `looked_to`. `moved`: the page that was asked for is empty by now, this is the last that has jobs.
    """

    rows: list[FoundJob]
    newer: JobFilter | None = None
    older: JobFilter | None = None
    further: JobFilter | None = None
    looked: int = 0
    looked_to: datetime | None = None
    moved: bool = False


def place_of(wanted: JobFilter) -> Place | None:
    """The place beyond which the page lies."""
    if wanted.place is not None:
        return wanted.place
    at = wanted.before if wanted.after is None else wanted.after
    return None if at is None else Place(at)


def _place(row: FoundJob) -> Place:
    return Place(row.job.id, row.job.due_at, row.job.priority)


def page_of(found: Searched, wanted: JobFilter, *, size: int, moved: bool = False) -> JobPage:
    """Cut what was found (one more than `size`, in the order of the search) to a page.

    The one more tells that there is a next page.
    """
    more = len(found.rows) > size
    rows = found.rows[:size]
    if wanted.backwards:
        rows.reverse()
        has_newer, has_older = more, True
    else:
        has_newer, has_older = not wanted.is_first, more
    seen = wanted.seen or (rows[0].job.id if rows else None)
    ended = not more and not found.complete and found.edge is not None
    return JobPage(
        rows,
        newer=wanted.ahead_of(_place(rows[0]), seen=seen) if rows and has_newer and wanted.by_id else None,
        older=wanted.beyond(_place(rows[-1]), seen=seen) if rows and has_older else None,
        further=_further(found, wanted, seen) if ended else None,
        looked=found.looked,
        looked_to=found.edge.at if found.edge else None,
        moved=moved,
    )


def _further(found: Searched, wanted: JobFilter, seen: int | None) -> JobFilter | None:
    if found.edge is None:
        return None
    step = wanted.ahead_of if wanted.backwards else wanted.beyond
    return step(found.edge, seen=seen)
