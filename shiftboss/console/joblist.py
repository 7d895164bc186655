"""The list of jobs: what is read for it, and what stands around its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _

from shiftboss.console import columns, conditions, figures, offers, text
from shiftboss.console.columns import VIEW_ARGUMENTS, Column
from shiftboss.console.figures import Tally
from shiftboss.console.filters import JobFilter
from shiftboss.console.offers import JobAct
from shiftboss.console.paging import JobPage, page_of, place_of
from shiftboss.console.query import Mistake, Query, Term, Text, of
from shiftboss.console.whole import Whole
from shiftboss.permissions import Person
from shiftboss.queue.jobs import JobRow
from shiftboss.queue.states import State
from shiftboss.queue.store.read import PAGE
from shiftboss.queue.store.samples import Count
from shiftboss.queue.store.search import ALL, WINDOWS, FoundJob, Order, Place, Search, Searched, search
from shiftboss.queue.store.statement import run

NEW_SHOWN = 100
"""New jobs are counted up to so many."""

COMPLETIONS = 30
CUT_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Tab:
    """A state to choose, its jobs where they can be told, and the address of its list. No tally: all states."""

    state: State | None
    tally: Tally | None
    query: str
    current: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """A term of the query, the same with what is unseen in it as codes, and the address without it."""

    text: str
    said: str
    query: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the list: the job, what its columns show, and what it is offered with."""

    job: JobRow
    found: FoundJob
    members: dict[str, str | None]
    offers: list[JobAct]


@dataclass(frozen=True, slots=True)
class Pointed:
    """A mistake with the text around it: before, what is wrong, behind; and the address with the nearest right."""

    mistake: Mistake
    before: str
    wrong: str
    behind: str
    query: str | None


def wish(wanted: JobFilter, *, by: Person) -> Search:
    """What the record is asked for."""
    shown = columns.shown(wanted.columns, wanted.states)
    return Search(
        states=wanted.states,
        conditions=conditions.conditions(wanted.asked),
        order=wanted.order,
        members=tuple(one.path for one in members(shown, by=by)),
    )


def members(shown: Iterable[Column], *, by: Person) -> list[Column]:
    """The columns with parts of JSON that this person may see."""
    sees = by.allows(VIEW_ARGUMENTS)
    return [one for one in shown if one.path and (sees or not one.shows_arguments)]


def read(wanted: JobFilter, *, by: Person) -> JobPage:
    """The page. Where it has become empty, the last one that has jobs."""
    if wanted.asked.mistakes:
        return JobPage([])
    asked = wish(wanted, by=by)
    place, found = place_of(wanted), _found(asked, wanted, by)
    if found.rows or place is None or not found.complete:
        return page_of(found, wanted, size=PAGE)
    if not wanted.by_id:
        wanted = wanted.first()
        return page_of(_found(asked, wanted, by, windows=1), wanted, size=PAGE, moved=True)
    # Turned round, from the same place on and with that job itself.
    turned = wanted.beyond if wanted.backwards else wanted.ahead_of
    nearer = 1 if (wanted.order is Order.OLDEST) != wanted.backwards else -1
    wanted = turned(Place(max(place.id + nearer, 0)), seen=wanted.seen)
    found = _found(asked, wanted, by, windows=1)
    return page_of(found, wanted, size=PAGE, moved=bool(found.rows))


def _found(asked: Search, wanted: JobFilter, by: Person, *, windows: int = WINDOWS) -> Searched:
    place, back = place_of(wanted), wanted.backwards
    return run(
        search(asked, authority=by.authority, beyond=place, backwards=back, limit=PAGE + 1, windows=windows)
    )


def newer(wanted: JobFilter, *, by: Person) -> int:
    """How many jobs of this list have come since the page that the reader began with, up to `NEW_SHOWN`."""
    if wanted.seen is None or wanted.asked.mistakes or wanted.order is not Order.NEWEST:
        return 0
    asked = replace(wish(wanted, by=by), members=())
    # One statement has to do: it is asked for with each refresh.
    seen = Place(wanted.seen)
    found = search(asked, authority=by.authority, beyond=seen, backwards=True, limit=NEW_SHOWN, windows=1)
    return len(run(found).rows)


def held(wanted: JobFilter, page: JobPage) -> str | None:
    """The address at which the newest page stays as it is while jobs come, and says how many have."""
    if not (page.rows and wanted.is_first and wanted.order is Order.NEWEST):
        return None
    newest = page.rows[0].job.id
    return replace(wanted, before=newest + 1, seen=newest).query


def tabs(seen: Whole, wanted: JobFilter) -> list[Tab]:
    """A tab for every state and one for all; with counts where they are those of these lists."""
    queue = wanted.queue
    within = [count for count in seen.counts if queue in (None, count.queue)]
    told = wanted.counts_whole_queues and seen.tells_of_queues
    tallies = figures.tally(within, finished=seen.finished if queue is None else None)
    return [
        *(
            Tab(
                line.state,
                line if told else None,
                wanted.of_states([line.state]).query,
                current=line.state in wanted.states and wanted.states != ALL,
            )
            for line in tallies
        ),
        Tab(None, None, wanted.of_states(ALL).query, current=wanted.states == ALL),
    ]


def chips(wanted: JobFilter) -> list[Chip]:
    """The terms of the query, each with the way to be rid of it."""
    return [Chip(str(term), text.visible(str(term)), wanted.without(term).query) for term in wanted.asked.terms]


def lines(page: JobPage, shown: Sequence[Column], *, by: Person) -> list[Line]:
    """The rows with what they show and offer."""
    names = [one.name for one in members(shown, by=by)]
    offered: dict[State, list[JobAct]] = {}
    for row in page.rows:
        if row.job.state not in offered:
            offered[row.job.state] = offers.in_list(row.job.state, to=by)
    return [
        Line(row.job, row, dict(zip(names, row.members, strict=True)), offered[row.job.state]) for row in page.rows
    ]


def completions(wanted: JobFilter, counts: Iterable[Count], page: JobPage) -> list[str]:
    """Queries that go on from the present one with a name that is known: of a queue, a task, a tag."""
    if wanted.asked.mistakes:
        return []
    queues = sorted({count.queue for count in counts})
    tasks = sorted({row.job.task for row in page.rows})
    tags = sorted({tag for row in page.rows for tag in row.tags})
    told = {term.name for term in wanted.asked.terms}
    names = (
        [("queue", name) for name in queues] + [("task", name) for name in tasks] + [("tag", tag) for tag in tags]
    )
    further = [
        Term(name=name, values=(Text((text,)),))
        for name, text in names
        if (name not in told or name == "tag") and text.isprintable()
    ]
    return [str(of([*wanted.asked.terms, term])) for term in further[:COMPLETIONS]]


def mistakes(wanted: JobFilter) -> list[Pointed]:
    """The mistakes of the query, each where it stands."""
    return [_pointed(mistake, wanted) for mistake in wanted.asked.mistakes]


def _pointed(mistake: Mistake, wanted: JobFilter) -> Pointed:
    text, end = wanted.asked.text, mistake.at + mistake.length
    mended = None
    if mistake.nearest is not None:
        mended = wanted.asking(Query(text[: mistake.at] + mistake.nearest + text[end:])).query
    return Pointed(
        mistake,
        _cut(text[: mistake.at], keep_end=True),
        _cut(text[mistake.at : end]),
        _cut(text[end:]),
        mended,
    )


def _cut(text: str, *, keep_end: bool = False) -> str:
    if len(text) <= CUT_CHARACTERS:
        return text
    return "…" + text[-CUT_CHARACTERS:] if keep_end else text[:CUT_CHARACTERS] + "…"


def refusal(wanted: JobFilter, *, by: Person) -> str | None:
    """Why the order that is asked for cannot be had, if it cannot."""
    if wanted.asked.mistakes or wish(wanted, by=by).can_be_sorted:
        return None
    if wanted.order is Order.DUE:
        return _("By due time only scheduled and retryable jobs can be sorted: these are shown by id.")
    return _("As workers take them only the available jobs of one queue can be sorted: these are shown by id.")
