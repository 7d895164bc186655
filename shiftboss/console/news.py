"""What an act has done, said once on the next page.

It waits in the session, which the login needs anyway: the address stays one that can be shared and loaded again,
and nobody can make a page say what did not happen. Ids and words of the record are kept; the sentence is made when
it is shown.
"""

from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from shiftboss.acts import Acted
from shiftboss.console import addresses, text, words
from shiftboss.permissions import Act

_KEY = "shiftboss_news"


def keep(request: HttpRequest, acted: Acted, *, facts: dict[str, str]) -> None:
    """Keep for the next page what was done; `facts` are what the form said beside it."""
    request.session[_KEY] = {
        "act": str(acted.act),
        "job": acted.job_id,
        "new_job": acted.new_job_id,
        "queue": acted.queue,
        "worker": acted.worker_id,
        "items": acted.items,
        "command": acted.command_id,
        "roll": acted.roll_id,
        "before": acted.before,
        "after": acted.after,
        "facts": facts,
    }


def waits(request: HttpRequest) -> bool:
    """Whether somebody has just done something, and is to see what came of it."""
    return _KEY in request.session


def take(request: HttpRequest) -> SafeString | None:
    """The sentence that was kept, once."""
    kept = request.session.pop(_KEY, None)
    return _sentence(request, kept) if kept else None


def _sentence(request: HttpRequest, kept: dict[str, Any]) -> SafeString:
    if kept["act"] == Act.REVEAL and kept["job"] is None:
        return format_html("{}", _("Arguments are shown to you in lists for a while; the audit says so."))
    return format_html(
        _template(Act(kept["act"]), kept["before"], kept["after"]),
        job=_link(request, kept["job"]),
        new_job=_link(request, kept["new_job"]),
        queue=format_html("<bdi>{}</bdi>", text.visible(kept["queue"] or "")),
        worker=_worker(request, kept.get("worker")),
        items=text.number(kept["items"] or 0),
        command=_command(request, kept.get("command")),
        roll=_roll(request, kept.get("roll")),
        limit=words.limit(kept["after"] or ""),
        **kept["facts"],
    )


def _link(request: HttpRequest, job_id: int | None) -> SafeString | str:
    if job_id is None:
        return ""
    return format_html('<a href="{}">{}</a>', addresses.of(request, "job", job_id=job_id), str(job_id))


def _worker(request: HttpRequest, worker_id: int | None) -> SafeString | str:
    if worker_id is None:
        return ""
    return format_html('<a href="{}">{}</a>', addresses.of(request, "worker", worker_id=worker_id), str(worker_id))


def _command(request: HttpRequest, command_id: int | None) -> SafeString | str:
    if command_id is None:
        return ""
    address = addresses.of(request, "command", command_id=command_id)
    return format_html('<a href="{}">{}</a>', address, _("What becomes of it"))


def _roll(request: HttpRequest, roll_id: int | None) -> SafeString | str:
    if roll_id is None:
        return ""
    return format_html('<a href="{}">{}</a>', addresses.of(request, "roll", roll_id=roll_id), str(roll_id))


def _template(act: Act, before: str | None, after: str | None) -> str:
    match act, before, after:
        case Act.CANCEL, _before, "running":
            return _("Job {job} runs; its end has been requested.")
        case Act.CANCEL, _before, _after:
            return _("Job {job} was cancelled.")
        case Act.EXPEDITE, _before, _after:
            return _("Job {job} was expedited: it is available now.")
        case Act.RERUN, _before, _after:
            return _("Job {new_job} is the rerun of job {job}.")
        case Act.EDIT, _before, _after:
            return _("Job {new_job} runs job {job} with other arguments.")
        case Act.REVEAL, _before, _after:
            return _("The arguments of job {job} are shown to you for a while; the audit says so.")
        case Act.REINSTATE, _before, _after:
            return _("Job {job} was reinstated: it is available again.")
        case Act.DISCARD, _before, _after:
            return _("Job {job} was discarded.")
        case Act.QUARANTINE, _before, _after:
            return _("Job {job} is held back until somebody reinstates it.")
        case Act.REPRIORITISE, _before, _after:
            return _("Job {job} has priority {priority} now.")
        case Act.RESCHEDULE, _before, _after:
            return _("Job {job} is due at {due_at} now.")
        case Act.PAUSE, "paused", _after:
            return _("Queue {queue} was paused already; the first reason stays.")
        case Act.PAUSE, _before, _after:
            return _("Queue {queue} is paused: no job of it is claimed. Jobs that run go on.")
        case Act.PAUSE_BACKFILL, "paused", _after:
            return _("It was paused already.")
        case Act.PAUSE_BACKFILL, _before, _after:
            return _("It is paused: no more of its items are enqueued. Jobs that it has go on.")
        case Act.RESUME_BACKFILL, _before, _after:
            return _("It goes on.")
        case Act.RETRY_BACKFILL, _before, _after:
            return _("{items} items are to run again, as there is room.")
        case Act.CANCEL_BACKFILL, _before, _after:
            return _("{items} items were cancelled, or their jobs are asked to end.")
        case (Act.DRAIN_WORKER, "draining", _after) | (Act.STOP_WORKER, "stopping", _after):
            return _("Worker {worker} was ordered so already; the first order stays.")
        case Act.DRAIN_WORKER, _before, _after:
            return _("Worker {worker} is told to drain: it claims no more, and ends once its runs have.")
        case Act.STOP_WORKER, _before, _after:
            return _("Worker {worker} is told to stop: what it runs is given back.")
        case Act.START_PROGRAM, _before, _after:
            return _("{host} is asked to start {thing}. {command}")
        case Act.DRAIN_PROGRAM, _before, _after:
            return _("{host} is asked to drain {thing}. {command}")
        case Act.STOP_PROGRAM, _before, _after:
            return _("{host} is asked to stop {thing}. {command}")
        case Act.KILL_PROGRAM, _before, _after:
            return _("{host} is asked to kill {thing}. {command}")
        case Act.RESTART_PROGRAM, _before, _after:
            return _("{host} is asked to restart {thing}. {command}")
        case Act.RELEASE_PROGRAM, _before, _after:
            return _("{thing} is held back no more: the agent of {host} starts it.")
        case Act.SCALE_POOL, _before, _after:
            return _("{host} is asked to run {count} workers of {thing}. {command}")
        case Act.ROLL_POOL, _before, _after:
            return _("Rolling restart {roll} has begun: {items} workers, one after the other.")
        case Act.CANCEL_ROLL, _before, _after:
            return _("Rolling restart {roll} is cancelled: no further worker is touched.")
        case Act.RESUME, "running", _after:
            return _("Queue {queue} was not paused.")
        case Act.LIMIT, _before, _after:
            return _("Queue {queue} from now on: {limit}. Jobs that run already go on.")
        case _:
            return _("Queue {queue} is claimed again.")
