"""The list of jobs: what is searched for, newest first, a page at a time."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse

from shiftboss.console import columns, filters, joblist, live, revealing
from shiftboss.console.columns import VIEW_ARGUMENTS
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.query import FIELDS
from shiftboss.console.record import bounded
from shiftboss.console.views import many
from shiftboss.queue.states import WAITING
from shiftboss.queue.store import samples
from shiftboss.queue.store.search import ALL, Order


def index(request: HttpRequest) -> HttpResponse:
    """Jobs that are searched for. What cannot be read of a query is pointed at. Raises BadFilter."""
    by = person_of(request)
    may_reveal = by.allows(VIEW_ARGUMENTS) and not revealing.is_revealed(request, revealing.LISTS)
    if may_reveal:
        by = by.without(VIEW_ARGUMENTS)
    asked = filters.read(request.GET)
    wanted = filters.permitted(asked, by=by)
    refused = joblist.refusal(wanted, by=by)
    if refused:
        wanted = replace(wanted.first(), order=Order.NEWEST)
    with bounded():
        seen = seen_by(by)
        page = joblist.read(wanted, by=by)
        # Where there is none at all it was looked for newer ones already.
        looked_beyond = page.moved or not (page.rows or page.further)
        fresh = 0 if looked_beyond else joblist.newer(wanted, by=by)
    shown = columns.shown(wanted.columns, wanted.states)
    context = {
        "filter": wanted,
        "refused": refused,
        "all_states": wanted.of_states(ALL).query if wanted.asked.terms and wanted.states != ALL else None,
        "whole": seen,
        "tabs": joblist.tabs(seen, wanted),
        "chips": joblist.chips(wanted),
        "mistakes": joblist.mistakes(wanted),
        "completions": joblist.completions(wanted, seen.counts, page),
        "fields": FIELDS,
        "paused": {pause.queue: pause for pause in seen.pauses} if wanted.states & WAITING else {},
        "page": page,
        "many": many.offered(request, {row.job.state for row in page.rows}),
        "lines": joblist.lines(page, shown, by=by),
        "fresh": fresh,
        "held": joblist.held(wanted, page),
        "fresh_cap": joblist.NEW_SHOWN,
        "columns": shown,
        "all_columns": [*columns.COLUMNS.values()],
        "shown_names": {one.name for one in shown},
        "members": [one.name for one in shown if one.path],
        "withheld": VIEW_ARGUMENTS
        if any(one.shows_arguments for one in shown) and not by.allows(VIEW_ARGUMENTS)
        else None,
        "asked_query": asked.query,
        "reveal": may_reveal and (wanted is not asked or any(one.shows_arguments for one in shown)),
        "waiting": WAITING,
        "cap": samples.FINISHED_CAP,
        "counted_at": seen.counted_at,
    }
    return live.answer(request, "jobs", context)
