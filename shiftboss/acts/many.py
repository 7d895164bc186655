"""Acts on many jobs: batches, each a transaction with its entry of the audit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from shiftboss.acts.performing import SYSTEM, at_once, keep, permit
from shiftboss.permissions import Act, Person
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.states import State
from shiftboss.queue.store import operate
from shiftboss.queue.store.enqueue import check_queue
from shiftboss.queue.store.operate import Matching, Why
from shiftboss.queue.store.statement import run

BULK_BATCH = 2000
BULK_PASSES = 5
"""How often a bulk act comes back to jobs that somebody else had in hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How far a bulk act is: jobs ended, running jobs whose end was asked for, and jobs left as they were."""

    operation: UUID
    ended: int = 0
    requested: int = 0
    left: int = 0


def cancel_matching(which: Matching, *, by: Person, reason: str) -> Iterator[Swept]:
    """Cancel all jobs that match now, in batches, each a transaction with its entry of the audit.

    Refuses at once what is not permitted. Yields how far it is after each batch; who stops asking stops the act.
    From the newest down, away from where workers claim; jobs that somebody else has in hand are come back to. A
    job that has been claimed since it matched is asked to end, as by `cancel`.
    """
    reason = permit(Act.CANCEL, by, reason)
    if which.queue is not None:
        check_queue(which.queue)
    if which.task is not None and not which.task.isprintable():
        raise InvalidJob("a task's name is made of printable characters")
    return _sweeps(which, by, reason)


def _sweeps(which: Matching, by: Person, reason: str) -> Iterator[Swept]:
    so_far = Swept(operation=uuid4())
    before_id: int | None = None
    busy: list[int] = []
    while ids := run(operate.matching(which, authority=SYSTEM, before_id=before_id, limit=BULK_BATCH)):
        before_id = ids[-1]
        so_far, again = _sweep(ids, which, by, reason, so_far)
        busy += again
        yield so_far
    for _ in range(BULK_PASSES):
        ids, busy = busy, []
        for start in range(0, len(ids), BULK_BATCH):
            so_far, again = _sweep(ids[start : start + BULK_BATCH], which, by, reason, so_far)
            busy += again
            yield so_far
    yield replace(so_far, left=so_far.left + len(busy))


def _sweep(ids: list[int], which: Matching, by: Person, reason: str, so_far: Swept) -> tuple[Swept, list[int]]:
    """One batch; how far the act is then, and the jobs to come back to."""
    with at_once():
        answer = run(operate.cancel(ids, authority=SYSTEM))
        requested = sum(1 for job in answer.changed if job.after is State.RUNNING)
        if answer.changed:
            keep(
                Act.CANCEL,
                by,
                reason,
                operation=so_far.operation,
                queue=which.queue,
                jobs=len(answer.changed),
                asked={"task": which.task, "states": sorted(map(str, which.states))},
                before=_tally(job.before for job in answer.changed),
                after=_tally(job.after for job in answer.changed),
            )
    busy = [job.id for job in answer.unchanged if job.why is Why.BUSY]
    swept = Swept(
        operation=so_far.operation,
        ended=so_far.ended + len(answer.changed) - requested,
        requested=so_far.requested + requested,
        left=so_far.left + len(answer.unchanged) - len(busy),
    )
    return swept, busy


def _tally(states: Iterator[State]) -> dict[str, int]:
    tally: dict[str, int] = {}
    for state in states:
        tally[str(state)] = tally.get(str(state), 0) + 1
    return tally
