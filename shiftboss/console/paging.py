"""Pages of a list that stay right while jobs come and go: each begins at an id, not at a number of rows."""

from dataclasses import dataclass

from shiftboss.console.filters import JobFilter
from shiftboss.queue.store.read import JobRow


@dataclass(frozen=True, slots=True)
class JobPage:
    """The jobs of a page, newest first, and where its neighbours begin."""

    rows: list[JobRow]
    newer: JobFilter | None
    older: JobFilter | None


def page_of(rows: list[JobRow], wanted: JobFilter, *, size: int) -> JobPage:
    """Cut what was read (one row more than `size`, newest first) to a page; the extra row tells of a next."""
    more = len(rows) > size
    if wanted.after is not None:
        shown = rows[1:] if more else rows
        has_newer, has_older = more, True
    else:
        shown = rows[:size]
        has_newer, has_older = wanted.before is not None, more
    if not shown:
        return JobPage([], None, None)
    return JobPage(
        shown,
        newer=wanted.newer_than(shown[0].id) if has_newer else None,
        older=wanted.older_than(shown[-1].id) if has_older else None,
    )
