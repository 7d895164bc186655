"""Why a job is not running: every reason that the record knows, the decisive one first. Plain functions.

What the claim asks for is asked here in the same order: is the job due, may the queue be claimed from, is there a
worker that knows the task, a slot of the limit, a free slot of a worker, and who goes first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from shiftboss.console import words
from shiftboss.console.text import duration, number, visible
from shiftboss.queue.jobs import JobDetail
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store.obstacles import AHEAD_CAP, Obstacles
from shiftboss.queue.store.queues import Limit


@dataclass(frozen=True, slots=True)
class Reason:
    """A sentence; the jobs that it speaks of; whether a person has to do something before the job can run.

    `since`: from when on it holds, where that is known. `page`: where that is done, or can be seen, by the name of
    its address.
    """

    text: str
    jobs: tuple[int, ...] = ()
    needs_person: bool = False
    page: str = ""
    since: datetime | None = None


def reasons(job: JobDetail, obstacles: Obstacles | None, *, now: datetime) -> list[Reason]:
    """Why this job does not run now; none where it runs or has ended. `obstacles` of a job that waits."""
    if job.state is State.QUARANTINED:
        return [_held(job)]
    if job.state not in WAITING or obstacles is None:
        return []
    found = [*_of_the_job(job, now), *_of_the_queue(obstacles), *_of_the_workers(job, obstacles, now)]
    if job.state is State.AVAILABLE:
        found += _of_the_others(job, obstacles, busy=bool(found))
    return found


def limit_of(found: Obstacles | None) -> str | None:
    """The limit of the job's queue and how much of it is taken, in words; None where there is none."""
    if found is None or found.concurrency is None:
        return None
    limit = words.limit(Limit(found.concurrency, found.sequential).word)
    return _("%(limit)s, %(taken)s taken") % {"limit": limit, "taken": number(found.taken)}


def _held(job: JobDetail) -> Reason:
    text = _("It is held back because %(reason)s; it runs again when somebody reinstates it.")
    return Reason(text % {"reason": words.spoken(words.REASONS, job.quarantine_reason or "")}, needs_person=True)


def _of_the_job(job: JobDetail, now: datetime) -> Iterator[Reason]:
    if job.follow_up and job.key_holder is not None:
        yield Reason(_("It follows the job that holds its key, and waits for its end:"), (job.key_holder,))
        return
    if job.state is State.AVAILABLE:
        return
    due = {"due": duration((job.due_at - now).total_seconds())}
    if job.due_at <= now:
        yield Reason(
            _("It is due, and made available within a moment; else neither a maintainer nor a worker runs.")
        )
    elif job.state is State.RETRYABLE and job.failures:
        text = _(
            "It failed %(failures)s of %(limit)s times and waits before its next attempt, for another %(due)s."
        )
        yield Reason(text % {"failures": job.failures, "limit": job.failure_limit, **due})
    else:
        yield Reason(_("It is due later, in %(due)s.") % due)


def _of_the_queue(found: Obstacles) -> Iterator[Reason]:
    if found.paused_at is None:
        return
    facts = {
        "by": visible(found.paused_by or ""),
        "reason": visible(found.pause_reason or "").rstrip(".") or _("no reason was given"),
    }
    text = _("Its queue is paused by %(by)s: %(reason)s.")
    yield Reason(text % facts, needs_person=True, page="queues", since=found.paused_at)


def _of_the_workers(job: JobDetail, found: Obstacles, now: datetime) -> Iterator[Reason]:
    if not found.workers and found.draining:
        yield Reason(
            _("All workers that serve its queue are draining, and take no more jobs."),
            needs_person=True,
            page="workers",
        )
    elif not found.workers and found.last_seen_at is not None:
        text = _("No live worker serves its queue; the last one was heard of %(since)s ago.")
        yield Reason(
            text % {"since": duration((now - found.last_seen_at).total_seconds())},
            needs_person=True,
            page="workers",
        )
    elif not found.workers:
        yield Reason(
            _("No live worker serves its queue, and none did within the last day."),
            needs_person=True,
            page="workers",
        )
    elif not found.knowing and found.versions_without:
        text = _("No live worker of its queue knows its task; they run version %(versions)s.")
        versions = ", ".join(visible(version) for version in found.versions_without)
        yield Reason(text % {"versions": versions}, needs_person=True, page="workers")
    elif not found.knowing:
        yield Reason(_("No live worker of its queue knows its task."), needs_person=True, page="workers")


def _of_the_others(job: JobDetail, found: Obstacles, *, busy: bool) -> Iterator[Reason]:
    """What an available job waits for in an open queue; `busy`: something was said already."""
    full = found.concurrency is not None and found.taken >= found.concurrency
    if found.sequential and full:
        yield Reason(
            _("Its queue runs one job at a time in strict order; the line is held by:"), tuple(found.taken_by)
        )
    elif full:
        text = ngettext(
            "Its queue runs at most %(n)s job at once, and that one is taken by:",
            "Its queue runs at most %(n)s jobs at once, and all are taken, among others by:",
            found.concurrency or 0,
        )
        yield Reason(text % {"n": number(found.concurrency or 0)}, tuple(found.taken_by))
    elif found.workers and found.in_use >= found.slots:
        text = _("All %(slots)s slots of the workers that serve its queue are in use.")
        yield Reason(text % {"slots": number(found.slots)}, page="workers")
    if found.ahead:
        text = ngettext("%(n)s job goes before it.", "%(n)s jobs go before it.", found.ahead)
        more = "+" if found.ahead >= AHEAD_CAP else ""
        yield Reason(text % {"n": number(min(found.ahead, AHEAD_CAP)) + more})
    elif job.suspect:
        yield Reason(_("It is suspected of a process's death and waits for a process to itself."))
    elif not busy and not full and found.in_use < found.slots:
        yield Reason(_("Nothing stands in its way: a worker takes it within a second or two."))
