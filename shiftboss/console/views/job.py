"""One job with all that the record knows of it."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from shiftboss.console import audits, comparing, filters, live, offers, revealing, timeline, waiting
from shiftboss.console.narrowing import seen_by
from shiftboss.console.people import person_of
from shiftboss.console.record import bounded
from shiftboss.console.sight import Seen, seen
from shiftboss.permissions import VIEW_ARGUMENTS, VIEW_AUDIT, Person
from shiftboss.queue.errors import NoSuchJob
from shiftboss.queue.jobs import present_retry_kind, retry_kinds
from shiftboss.queue.payload import args_digest
from shiftboss.queue.states import WAITING
from shiftboss.queue.store import audit, obstacles, read
from shiftboss.queue.store.read import JobDetail
from shiftboss.queue.store.statement import run


def show(request: HttpRequest, job_id: int) -> HttpResponse:
    """One job: facts, arguments, result, attempts, events, acts. Raises NoSuchJob."""
    person, now = person_of(request), timezone.now()
    sees_acts = person.allows(VIEW_AUDIT)
    with bounded():
        job = read_job(job_id, by=person)
        attempts = run(read.attempts(authority=person.authority, job_id=job_id))
        events = run(read.events(authority=person.authority, job_id=job_id))
        acts_on_it = run(audit.entries(authority=person.authority, job_id=job_id))
        stands = seen_by(person)
        in_its_way = run(obstacles.of(job, authority=person.authority)) if job.state in WAITING else None
    shown, digest = seen(attempts, by=person), args_digest(job.args)
    context = {
        "whole": stands,
        "job": job,
        "attempts": list(zip(shown, retry_kinds(attempts), _beside(shown), strict=False)),
        "compared": comparing.compare(shown, request.GET, args_sha256=digest),
        "args": job.args if revealing.is_revealed(request, job_id) and person.allows(VIEW_ARGUMENTS) else None,
        "may_reveal": person.allows(VIEW_ARGUMENTS),
        "view_arguments": VIEW_ARGUMENTS,
        "args_sha256": digest,
        "retry": present_retry_kind(job, attempts),
        "waiting": WAITING,
        "events": events,
        "offers": offers.on_page(job, to=person),
        "queue_limit": waiting.limit_of(in_its_way),
        "reasons": waiting.reasons(job, in_its_way, now=now),
        "moments": timeline.moments(job, attempts, events, acts_on_it if sees_acts else [], now=now),
        "reruns": audits.reruns(acts_on_it),
        "acts": audits.lines(acts_on_it) if sees_acts else [],
    }
    return live.answer(request, "job", context)


def _beside(attempts: list[Seen]) -> list[int | None]:
    """Of each attempt the fence of the one after it, with which it may be compared."""
    return [*(one.row.fence for one in attempts[1:]), None]


def read_job(job_id: int, *, by: Person) -> JobDetail:
    """What the record says of a job to this person. Raises NoSuchJob."""
    job = run(read.job(authority=by.authority, job_id=filters.checked_id(job_id)))
    if job is None:
        raise NoSuchJob(f"there is no job {job_id}")
    return job
