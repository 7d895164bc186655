"""The list of jobs, and one job with all that the record knows of it."""

from django.http import HttpRequest, HttpResponse

from shiftboss.console import figures, filters, live
from shiftboss.console.paging import page_of
from shiftboss.console.record import bounded
from shiftboss.queue.authority import System
from shiftboss.queue.errors import NoSuchJob
from shiftboss.queue.states import State
from shiftboss.queue.store import read
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
        "page": page_of(rows, wanted, size=read.PAGE),
        "when": _WHEN[wanted.state],
        "cap": read.FINISHED_CAP,
    }
    return live.answer(request, "jobs", context)


def show(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job: facts, arguments, result, attempts, events. Raises NoSuchJob."""
    if job_id > filters.LARGEST_ID:
        raise NoSuchJob(f"there is no job {job_id}")
    with bounded():
        job = run(read.job(authority=System(), job_id=job_id))
        if job is None:
            raise NoSuchJob(f"there is no job {job_id}")
        attempts = run(read.attempts(authority=System(), job_id=job_id))
        events = run(read.events(authority=System(), job_id=job_id))
    context = {"job": job, "attempts": attempts, "events": events}
    return live.answer(request, "job", context)
