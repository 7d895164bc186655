"""The audit: who did what, when and why."""

from django.http import HttpRequest, HttpResponse

from shiftboss.console import audits, filters, live
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.queue.authority import System
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run


def index(request: HttpRequest) -> HttpResponse:
    """Acts, the newest first, a page at a time; of one job where the address names it."""
    job_id, before_id = filters.id_of(request.GET, "job"), filters.id_of(request.GET, "before")
    with bounded():
        rows = run(audit.entries(authority=System(), job_id=job_id, before_id=before_id, limit=audit.PAGE + 1))
    shown = rows[: audit.PAGE]
    context = {
        "lines": audits.lines(shown, by=person_of(request)),
        "job_id": job_id,
        "before_id": before_id,
        "older_than": shown[-1].id if len(rows) > audit.PAGE else None,
    }
    return live.answer(request, "audit", context)
