"""What the record says: status, jobs, queues, workers, backfills, audit."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema

from shiftboss.acts import LARGEST_ID
from shiftboss.conf import ConfigError, check_queue
from shiftboss.console import listing, revealing, roster, standing
from shiftboss.console.api import schemas
from shiftboss.console.api.door import caller
from shiftboss.console.filters import BadFilter
from shiftboss.console.narrowing import seen_by
from shiftboss.console.record import bounded
from shiftboss.console.stored import as_object
from shiftboss.permissions import VIEW, VIEW_AUDIT, Person, require
from shiftboss.queue.errors import InvalidJob, NoSuchBackfill, NoSuchJob, NoSuchWorker
from shiftboss.queue.states import State
from shiftboss.queue.store import audit, read
from shiftboss.queue.store import backfill as store
from shiftboss.queue.store.statement import run

RUNS = 200
"""Jobs that one worker is told with."""

router = Router()


def answers(shown: type[schemas.Shown], *more: int) -> dict[Any, Any]:
    """What an address may answer: this, or a problem."""
    return {200: shown, tuple(sorted({401, 403, 422, 503, *more})): schemas.Problem}


@router.get(
    "/status",
    response=answers(schemas.Status),
    summary="How the whole stands",
    tags=["status"],
    operation_id="status",
)
def status(request: HttpRequest) -> Any:
    """What `shiftboss status --format json` says, under the same names."""
    by = _may(request, VIEW)
    with bounded():
        return standing.report(seen_by(by), authority=by.authority)


@router.get(
    "/queues", response=answers(schemas.Queues), summary="The queues", tags=["queues"], operation_id="list_queues"
)
def queues(request: HttpRequest) -> Any:
    """Queues that have jobs or live workers, or are paused or limited."""
    by = _may(request, VIEW)
    with bounded():
        return standing.queues(seen_by(by), authority=by.authority)


@router.get(
    "/workers",
    response=answers(schemas.Workers),
    summary="The workers",
    tags=["workers"],
    operation_id="list_workers",
)
def workers(request: HttpRequest, wanted: Query[schemas.WhichWorkers]) -> Any:
    """Workers that live, or ended within the last hour, as `shiftboss workers list --format json` tells them."""
    by = _may(request, VIEW)
    _known(request, wanted)
    which = roster.read(wanted.model_dump())
    with bounded():
        rows = run(read.workers(authority=by.authority))
    return {"workers": [standing.worker(row) for row in rows if which.fits(row)]}


@router.get(
    "/workers/{worker_id}",
    response=answers(schemas.WorkerDetail, 404),
    summary="One worker",
    tags=["workers"],
    operation_id="show_worker",
)
def worker(request: HttpRequest, worker_id: str) -> Any:
    """A worker, for a day after it was last seen, and what runs in it."""
    by = _may(request, VIEW)
    number = worker_number(worker_id)
    with bounded():
        row = run(read.worker(number, authority=by.authority))
        if row is None:
            raise NoSuchWorker(f"there is no worker {number}")
        runs = run(read.running([number], authority=by.authority, per_worker=RUNS))
    return standing.worker(row) | {
        "runs": [as_object(one) for one in runs],
        "running": runs[0].jobs if runs else 0,
        "acts": roster.orders(row, to=by),
    }


@router.get(
    "/jobs",
    response=answers(schemas.Jobs),
    summary="Jobs, the newest first",
    tags=["jobs"],
    operation_id="list_jobs",
)
def jobs(request: HttpRequest, wanted: Query[schemas.WhichJobs]) -> Any:
    """A page of jobs, without their arguments and results. It begins at an id, so that no job is missed."""
    by = _may(request, VIEW)
    _known(request, wanted)
    limit, below, above = wanted.limit, _id("before", wanted.before), _id("after", wanted.after)
    if below is not None and above is not None:
        raise BadFilter("a page lies before an id or after one, not both")
    states, queue = _states(wanted.state), _queue(wanted.queue)
    if wanted.q is not None:
        revealing.search(wanted.q, by=by)
    with bounded():
        page = listing.jobs(
            states, text=wanted.q or "", queue=queue, before=below, after=above, limit=limit, by=by
        )
    return page.as_object()


@router.get(
    "/jobs/{job_id}",
    response=answers(schemas.JobDetail, 404),
    summary="One job",
    tags=["jobs"],
    operation_id="show_job",
)
def job(request: HttpRequest, job_id: str) -> Any:
    """All that the record knows of a job, with attempts, events and the acts that its state allows."""
    by = _may(request, VIEW)
    number = job_number(job_id)
    with bounded():
        found = run(read.job(authority=by.authority, job_id=number))
        if found is None:
            raise NoSuchJob(f"there is no job {number}")
        attempts = run(read.attempts(authority=by.authority, job_id=number))
        events = run(read.events(authority=by.authority, job_id=number))
    return listing.job(found, attempts, events, by=by)


@router.get(
    "/backfills",
    response=answers(schemas.Backfills),
    summary="Backfills, the newest first",
    tags=["backfills"],
    operation_id="list_backfills",
)
def backfills(request: HttpRequest, wanted: Query[schemas.WhichBackfills]) -> Any:
    """Backfills with how far they are."""
    by = _may(request, VIEW)
    _known(request, wanted)
    before, limit = _id("before", wanted.before), wanted.limit
    with bounded():
        rows = run(store.backfills(authority=by.authority, before_id=before, limit=limit + 1))
    page = rows[:limit]
    return {
        "backfills": [listing.backfill(row) for row in page],
        "older": page[-1].id if len(rows) > len(page) else None,
    }


@router.get(
    "/backfills/{backfill_id}",
    response=answers(schemas.Backfill, 404),
    summary="One backfill",
    tags=["backfills"],
    operation_id="show_backfill",
)
def backfill(request: HttpRequest, backfill_id: str) -> Any:
    """How far a backfill is."""
    by = _may(request, VIEW)
    number = backfill_number(backfill_id)
    with bounded():
        row = run(store.backfill(number, authority=by.authority))
    if row is None:
        raise NoSuchBackfill(f"there is no backfill {number}")
    return listing.backfill(row)


@router.get(
    "/audit",
    response=answers(schemas.Audit),
    summary="Who did what, and why",
    tags=["audit"],
    operation_id="list_audit",
)
def audit_entries(request: HttpRequest, wanted: Query[schemas.WhichEntries]) -> Any:
    """Acts of people, the newest first; `act`, `via` and `by` look at the newest 20,000 before the given one."""
    by = _may(request, VIEW_AUDIT)
    _known(request, wanted)
    with bounded():
        rows = run(
            audit.entries(
                authority=by.authority,
                reader=by.as_actor,
                job_id=_id("job_id", wanted.job_id),
                queue=_queue(wanted.queue),
                act=_storable("act", wanted.act),
                via=_storable("via", wanted.via),
                actor=_storable("by", wanted.by),
                before_id=_id("before", wanted.before),
                limit=wanted.limit + 1,
            )
        )
    page = rows[: wanted.limit]
    return {"entries": [as_object(row) for row in page], "older": page[-1].id if len(rows) > len(page) else None}


def _storable(name: str, text: str | None) -> str | None:
    """A word to look for. Raises BadFilter for one that no act can have."""
    if text is not None and not (len(text) <= 200 and text.isprintable()):
        raise BadFilter(f"{name} is at most 200 printable characters")
    return text or None


def job_number(text: str) -> int:
    """The id in an address. Raises NoSuchJob for one that no job can have."""
    number = _number(text)
    if number is None or number == 0:
        raise NoSuchJob(f"there is no job {text[:40]!r}")
    return number


def backfill_number(text: str) -> int:
    """The id in an address. Raises NoSuchBackfill for one that no backfill can have."""
    number = _number(text)
    if number is None or number == 0:
        raise NoSuchBackfill(f"there is no backfill {text[:40]!r}")
    return number


def worker_number(text: str) -> int:
    """The id in an address. Raises NoSuchWorker for one that no worker can have."""
    number = _number(text)
    if number is None or number == 0:
        raise NoSuchWorker(f"there is no worker {text[:40]!r}")
    return number


def chosen(texts: Iterable[str]) -> list[int]:
    """The ids in a body. Raises InvalidJob for one that no job can have."""
    numbers = {text: _number(text) for text in texts}
    for text, number in numbers.items():
        if not number:
            raise InvalidJob(f"a job is named by its id, not by {text[:40]!r}")
    return [number for number in numbers.values() if number]


def _may(request: HttpRequest, permission: str) -> Person:
    by = caller(request)
    require(permission, by=by)
    return by


def _known(request: HttpRequest, wanted: Schema) -> None:
    names = type(wanted).model_fields
    if unknown := sorted(set(request.GET) - set(names)):
        raise BadFilter(f"{unknown[0][:40]!r} is no filter; known are {', '.join(sorted(names))}")


def _number(text: str) -> int | None:
    # The length first: Python refuses to read thousands of digits, and a bigint has nineteen.
    if len(text) > 19 or not (text.isascii() and text.isdigit()) or int(text) > LARGEST_ID:
        return None
    return int(text)


def _id(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    number = _number(text)
    if number is None:
        raise BadFilter(f"{name} must be an id, not {text[:40]!r}")
    return number


def _states(text: str | None) -> list[State]:
    try:
        return list(State) if text is None else [State(word.strip()) for word in text.split(",")]
    except ValueError:
        raise BadFilter(f"the states are {', '.join(State)}") from None


def _queue(name: str | None) -> str | None:
    try:
        return None if name is None else check_queue(name)
    except ConfigError as problem:
        raise BadFilter(str(problem)) from None
