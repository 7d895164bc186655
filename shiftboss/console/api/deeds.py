"""What people do: each act under its own address, and all of them through `acts`."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Header, Router

from shiftboss import acts
from shiftboss.console.api import schemas
from shiftboss.console.api.door import caller
from shiftboss.console.api.reads import answers, backfill_number, chosen, job_number, worker_number
from shiftboss.console.api.rolls import number_of
from shiftboss.console.record import bounded
from shiftboss.console.stored import Stored
from shiftboss.permissions import NEED_REASON, PERMISSIONS, Act
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run

router = Router()

View = Callable[..., Any]

Key = Annotated[
    str | None,
    Header(
        None,
        alias="Idempotency-Key",
        description="of 1 to 100 characters; a repeat with the same one is done once",
    ),
]
"""A request with a key that this caller has used before answers as it did then; nothing is done again."""

NOTHING_SAID = schemas.Reasoned.model_validate({})
PLAIN_RERUN = schemas.Rerun.model_validate({})
"""The bodies of who sends none."""

ANSWERS = answers(schemas.Acted, 400, 404, 409, 411, 413, 415)
OF_MANY = answers(schemas.ActedOnMany, 400, 409, 411, 413, 415)


def _on_many(act: Act, summary: str, description: str) -> None:
    """An act on chosen jobs. Its address stands before those of one job, of which none has the id `many`."""

    def view(request: HttpRequest, payload: schemas.OnMany, key: Key = None) -> Any:
        by, ids = caller(request), chosen(payload.jobs)
        return _told(acts.on_many(act, ids, by=by, reason=payload.reason, request_id=key))

    view.__name__ = f"{act}_many"
    _route(act, f"/jobs/many/{act}", "jobs", summary, description, many=True)(view)


def _told(done: acts.Many) -> dict[str, Any]:
    return {
        "act": done.act,
        "operation": done.operation,
        "changed": done.changed,
        "left": [
            {"job_id": one.id, "why": one.why, "state": one.state, "holder": one.holder} for one in done.left
        ],
        "before": done.before,
        "after": done.after,
        "new_jobs": {str(old): new for old, new in done.new_jobs.items()},
        "repeated": done.repeated,
    }


def _plain(act: Act, do: Callable[..., acts.Acted], summary: str, description: str) -> None:
    """An act on a job that takes nothing but a reason."""

    def view(request: HttpRequest, job_id: str, payload: schemas.Reasoned = NOTHING_SAID, key: Key = None) -> Any:
        return do(job_number(job_id), by=caller(request), reason=payload.reason, request_id=key)

    view.__name__ = act.value
    _route(act, f"/jobs/{{job_id}}/{act}", "jobs", summary, description)(view)


def _route(
    act: Act, path: str, tag: str, summary: str, description: str, *, many: bool = False
) -> Callable[[View], View]:
    needs = f" Needs the permission `{PERMISSIONS[act]}`"
    needs += " and a reason." if act in NEED_REASON else "."
    route: Callable[[View], View] = router.post(
        path,
        response=OF_MANY if many else ANSWERS,
        summary=summary,
        description=description + needs,
        tags=[tag],
        operation_id=f"{act}_many" if many else act.value,
    )
    return route


for _act, _summary, _description in (
    (Act.REINSTATE, "Reinstate jobs", "Lets quarantined jobs run again."),
    (Act.RERUN, "Rerun jobs", "Runs finished jobs once more, as new jobs: `new_jobs`."),
    (Act.EXPEDITE, "Expedite jobs", "Makes waiting jobs available before they are due."),
    (Act.DISCARD, "Discard jobs", "Gives quarantined jobs up for good."),
    (Act.CANCEL, "Cancel jobs", "Ends waiting and quarantined jobs at once; running ones are asked to end."),
    (Act.QUARANTINE, "Quarantine jobs", "Holds waiting jobs back until they are reinstated."),
):
    _on_many(_act, _summary, f"{_description} What cannot be changed so is left, and told.")

_plain(
    Act.CANCEL,
    acts.cancel,
    "Cancel a job",
    "Ends a waiting or quarantined job at once; the handler of a running one is asked to end.",
)
_plain(Act.EXPEDITE, acts.expedite, "Expedite a job", "Makes a waiting job available before it is due.")
_plain(
    Act.REINSTATE,
    acts.reinstate,
    "Reinstate a job",
    "Lets a quarantined job run again, with as many more attempts as its task has.",
)
_plain(Act.DISCARD, acts.discard, "Discard a job", "Gives a quarantined job up for good.")
_plain(Act.QUARANTINE, acts.quarantine, "Quarantine a job", "Holds a waiting job back until it is reinstated.")


@_route(
    Act.RERUN,
    "/jobs/{job_id}/rerun",
    "jobs",
    "Rerun a job",
    "Runs a finished job once more, as a new job: `new_job_id`.",
)
def rerun(request: HttpRequest, job_id: str, payload: schemas.Rerun = PLAIN_RERUN, key: Key = None) -> Any:
    """A new job of the same."""
    return acts.rerun(
        job_number(job_id), by=caller(request), revision=payload.revision, reason=payload.reason, request_id=key
    )


@_route(
    Act.EDIT,
    "/jobs/{job_id}/edit",
    "jobs",
    "Edit and rerun a job",
    "Runs a finished or quarantined job with other arguments, as a new job: `new_job_id`. The job itself stays as "
    "it is.",
)
def edit(request: HttpRequest, job_id: str, payload: schemas.Edit, key: Key = None) -> Any:
    """A new job with other arguments."""
    text = json.dumps(payload.arguments.model_dump(), ensure_ascii=False)
    return acts.edit(job_number(job_id), by=caller(request), args=text, reason=payload.reason, request_id=key)


@router.post(
    f"/jobs/{{job_id}}/{Act.REVEAL}",
    response=answers(schemas.Revealed, 400, 404, 409, 411, 413, 415),
    summary="Reveal the arguments of a job",
    description="Tells them, and keeps in the audit that the caller was told. "
    f"Needs the permission `{PERMISSIONS[Act.REVEAL]}`.",
    tags=["jobs"],
    operation_id=Act.REVEAL.value,
)
def reveal(request: HttpRequest, job_id: str, payload: schemas.Reasoned = NOTHING_SAID, key: Key = None) -> Any:
    """The arguments."""
    number = job_number(job_id)
    by = caller(request)
    acted = acts.reveal(number, by=by, reason=payload.reason, request_id=key)
    with bounded():
        found = run(read.job(authority=by.authority, job_id=number))
    return {**asdict(acted), "args": None if found is None else Stored(found.args)}


@_route(
    Act.REPRIORITISE,
    "/jobs/{job_id}/reprioritise",
    "jobs",
    "Reprioritise a job",
    "Gives a waiting job another priority.",
)
def reprioritise(request: HttpRequest, job_id: str, payload: schemas.Reprioritise, key: Key = None) -> Any:
    """Another priority."""
    return acts.reprioritise(
        job_number(job_id),
        by=caller(request),
        priority=payload.priority,
        reason=payload.reason,
        request_id=key,
    )


@_route(Act.RESCHEDULE, "/jobs/{job_id}/reschedule", "jobs", "Reschedule a job", "Sets when a waiting job is due.")
def reschedule(request: HttpRequest, job_id: str, payload: schemas.Reschedule, key: Key = None) -> Any:
    """Another time."""
    return acts.reschedule(
        job_number(job_id), by=caller(request), due_at=payload.due_at, reason=payload.reason, request_id=key
    )


@_route(
    Act.PAUSE,
    "/queues/pause",
    "queues",
    "Pause a queue",
    "No claim that starts afterwards takes its jobs; those that run go on.",
)
def pause(request: HttpRequest, payload: schemas.OnQueue, key: Key = None) -> Any:
    """A pause."""
    return acts.pause(payload.queue, by=caller(request), reason=payload.reason, request_id=key)


@_route(Act.RESUME, "/queues/resume", "queues", "Resume a queue", "Lets a queue be claimed again.")
def resume(request: HttpRequest, payload: schemas.OnQueue, key: Key = None) -> Any:
    """The end of a pause."""
    return acts.resume(payload.queue, by=caller(request), reason=payload.reason, request_id=key)


@_route(
    Act.LIMIT,
    "/queues/limit",
    "queues",
    "Limit a queue",
    "Says how many of its jobs run at once over all workers; those that run go on, and count. Stands against the "
    "settings.",
)
def limit(request: HttpRequest, payload: schemas.OnLimit, key: Key = None) -> Any:
    """A limit."""
    return acts.limit(
        payload.queue, by=caller(request), limit=payload.limit, reason=payload.reason, request_id=key
    )


def _on_backfill(act: Act, do: Callable[..., acts.Acted], word: str, summary: str, description: str) -> None:
    """An act on a backfill, under the verb's own word."""

    def view(
        request: HttpRequest, backfill_id: str, payload: schemas.Reasoned = NOTHING_SAID, key: Key = None
    ) -> Any:
        return do(backfill_number(backfill_id), by=caller(request), reason=payload.reason, request_id=key)

    view.__name__ = act.value
    _route(act, f"/backfills/{{backfill_id}}/{word}", "backfills", summary, description)(view)


_on_backfill(
    Act.PAUSE_BACKFILL,
    acts.pause_backfill,
    "pause",
    "Pause a backfill",
    "No more of its items are enqueued; jobs that it has go on.",
)
_on_backfill(Act.RESUME_BACKFILL, acts.resume_backfill, "resume", "Resume a backfill", "Lets a backfill go on.")
_on_backfill(
    Act.RETRY_BACKFILL,
    acts.retry_backfill,
    "retry",
    "Retry a backfill",
    "Runs again what failed of it and nothing else: quarantined jobs are reinstated, cancelled and discarded "
    "items get new jobs.",
)
_on_backfill(
    Act.CANCEL_BACKFILL,
    acts.cancel_backfill,
    "cancel",
    "Cancel a backfill",
    "No more of its items are enqueued, and its jobs are cancelled; running ones are asked to end.",
)


def _on_worker(act: Act, do: Callable[..., acts.Acted], word: str, summary: str, description: str) -> None:
    """An order to a worker, under its own word."""

    def view(
        request: HttpRequest, worker_id: str, payload: schemas.Reasoned = NOTHING_SAID, key: Key = None
    ) -> Any:
        return do(worker_number(worker_id), by=caller(request), reason=payload.reason, request_id=key)

    view.__name__ = act.value
    _route(act, f"/workers/{{worker_id}}/{word}", "workers", summary, description)(view)


_on_worker(
    Act.DRAIN_WORKER,
    acts.drain_worker,
    "drain",
    "Drain a worker",
    "It claims no more and ends once its runs have, within its `DRAIN_SECONDS`. It is told at once, and again "
    "with its next heartbeat.",
)
_on_worker(
    Act.STOP_WORKER,
    acts.stop_worker,
    "stop",
    "Stop a worker",
    "It ends now: what it runs is cut off and given back, with no attempt lost. Also where it drains already.",
)


def _on_program(act: Act, do: Callable[..., acts.Acted], word: str, summary: str, description: str) -> None:
    """An act on a program of a host, under its own word."""

    def view(
        request: HttpRequest, host: str, program: str, payload: schemas.Reasoned = NOTHING_SAID, key: Key = None
    ) -> Any:
        return do(host, program, by=caller(request), reason=payload.reason, request_id=key)

    view.__name__ = act.value
    path = f"/hosts/{{name:host}}/programs/{{name:program}}/{word}"
    _route(act, path, "hosts", summary, f"{description} `command_id` tells what becomes of it.")(view)


_on_program(Act.START_PROGRAM, acts.start_program, "start", "Start a program", "Its host's agent starts it.")
_on_program(
    Act.DRAIN_PROGRAM,
    acts.drain_program,
    "drain",
    "Drain a program",
    "It is stopped in order and stays down; a worker finishes what it runs.",
)
_on_program(
    Act.STOP_PROGRAM,
    acts.stop_program,
    "stop",
    "Stop a program",
    "It is stopped now and stays down; a worker gives back what it runs.",
)
_on_program(
    Act.KILL_PROGRAM,
    acts.kill_program,
    "kill",
    "Kill a program",
    "Only one that was asked to stop and has not ended. What a worker ran comes back once its leases are over.",
)
_on_program(
    Act.RESTART_PROGRAM,
    acts.restart_program,
    "restart",
    "Restart a program",
    "It is drained and started again.",
)
_on_program(
    Act.RELEASE_PROGRAM,
    acts.release_program,
    "release",
    "Release a program",
    "It is held back no more for having crashed in a loop: its host's agent starts it. No command is made of it.",
)
_on_program(
    Act.TAIL_PROGRAM,
    acts.tail_program,
    "tail",
    "Show the log of a program",
    "Its last lines, as its host's agent reads them: `lines` of the result.",
)


@_route(
    Act.SCALE_POOL,
    "/hosts/{name:host}/pools/{name:pool}/scale",
    "hosts",
    "Scale a pool",
    "So many workers of it run on the host; those that go finish what they run. `command_id` tells what becomes "
    "of it.",
)
def scale(request: HttpRequest, host: str, pool: str, payload: schemas.Scale, key: Key = None) -> Any:
    """Another count."""
    return acts.scale_pool(host, pool, payload.count, by=caller(request), reason=payload.reason, request_id=key)


@_route(
    Act.ROLL_POOL,
    "/rolls/begin",
    "rolls",
    "Restart workers one after the other",
    "The workers of a pool, or of all, over all hosts; it stops where one does not come up. One runs at a time. "
    "`roll_id` tells how far it is.",
)
def roll(request: HttpRequest, payload: schemas.RollPool, key: Key = None) -> Any:
    """A rolling restart."""
    return acts.roll_pool(
        payload.pool,
        by=caller(request),
        reason=payload.reason,
        code_wanted=payload.code_wanted,
        request_id=key,
    )


@_route(
    Act.CANCEL_ROLL,
    "/rolls/{roll_id}/cancel",
    "rolls",
    "Cancel a rolling restart",
    "No further worker is touched; the one in hand comes back.",
)
def cancel_roll(
    request: HttpRequest, roll_id: str, payload: schemas.Reasoned = NOTHING_SAID, key: Key = None
) -> Any:
    """Its end."""
    return acts.cancel_roll(number_of(roll_id), by=caller(request), reason=payload.reason, request_id=key)
