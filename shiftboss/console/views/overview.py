"""The overview: is all well, what waits where, how it went lately."""

from django.http import HttpRequest, HttpResponse

from shiftboss.console import charts, figures, filters, live, verdict
from shiftboss.console.charts import STRETCHES, USUAL
from shiftboss.console.filters import BadFilter
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.queue.store import queues, samples
from shiftboss.queue.store.statement import run


def show(request: HttpRequest) -> HttpResponse:
    """Alarms, queues, and charts of the stretch and the queue that the address names. Raises BadFilter."""
    stretch = STRETCHES.get(request.GET.get("span", USUAL))
    if stretch is None:
        raise BadFilter("there is no such span of time")
    queue = filters.queue_of(request.GET) if request.GET.get("queue") else ""
    person = person_of(request)
    with bounded():
        seen = seen_by(person)
        limits = run(queues.limits(authority=person.authority))
        drawn = charts.charts(stretch, authority=person.authority, queue=queue)
    lines = figures.seen_queues(seen, limits, minutes=samples.MINUTES)
    context = {
        "whole": seen,
        "findings": verdict.findings(seen),
        "queues": lines,
        "total": figures.total(seen.counts, seen.rates, minutes=samples.MINUTES),
        "drawn": drawn,
        "stretch": stretch,
        "stretches": STRETCHES.values(),
        "queue": queue,
        "cap": samples.FINISHED_CAP,
    }
    return live.answer(request, "overview", context)
