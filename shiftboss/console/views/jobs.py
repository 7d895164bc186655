"""The list of jobs."""

from django.http import HttpRequest, HttpResponse

from shiftboss.console import figures, filters, live, offers
from shiftboss.console.paging import page_of
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.queue.authority import System
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store import queues, read
from shiftboss.queue.store.statement import run

# Which of a job's times a list of its state shows.
_WHEN = {
    State.SCHEDULED: "due",
    State.AVAILABLE: "due",
    State.RETRYABLE: "due",
    State.RUNNING: "started",
    State.QUARANTINED: "started",
    State.COMPLETED: "finished",
    State.CANCELLED: "finished",
    State.DISCARDED: "finished",
}


def index(request: HttpRequest) -> HttpResponse:
    """Jobs of one state, newest first, a page at a time."""
    wanted = filters.read(request.GET)
    with bounded():
        counts = run(read.counts(authority=System()))
        pauses = run(queues.pauses(authority=System()))
        rows = run(
            read.jobs(
                authority=System(),
                state=wanted.state,
                queue=wanted.queue,
                before_id=wanted.before,
                after_id=wanted.after,
                limit=read.PAGE + 1,
            )
        )
    context = {
        "filter": wanted,
        "tabs": figures.tabs(counts, wanted),
        "queues": sorted({count.queue for count in counts} | ({wanted.queue} if wanted.queue else set())),
        "paused": {pause.queue: pause for pause in pauses} if wanted.state in WAITING else {},
        "page": page_of(rows, wanted, size=read.PAGE),
        "offers": offers.in_list(wanted.state, to=person_of(request)),
        "when": _WHEN[wanted.state],
        "cap": read.FINISHED_CAP,
    }
    return live.answer(request, "jobs", context)
