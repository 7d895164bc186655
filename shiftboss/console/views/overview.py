"""The overview: is all well, what waits where, who works."""

from django.http import HttpRequest, HttpResponse

from shiftboss.console import figures, live, verdict
from shiftboss.console.record import bounded
from shiftboss.queue.authority import System
from shiftboss.queue.store import queues, read
from shiftboss.queue.store.statement import run

MINUTES = 30
"""How far back the throughput is drawn."""


def show(request: HttpRequest) -> HttpResponse:
    """Queues and their states, throughput, workers, and a verdict on top."""
    with bounded():
        counts = run(read.counts(authority=System()))
        rates = run(read.throughput(authority=System(), minutes=MINUTES))
        workers = run(read.workers(authority=System()))
        pauses = run(queues.pauses(authority=System()))
        limits = run(queues.limits(authority=System()))
    context = {
        "findings": verdict.findings(counts, workers, pauses),
        "queues": figures.queues(counts, rates, workers, pauses, limits, minutes=MINUTES),
        "total": figures.total(counts, rates, minutes=MINUTES),
        "workers": workers,
        "capacity": figures.capacity(workers),
        "cap": read.FINISHED_CAP,
    }
    return live.answer(request, "overview", context)
