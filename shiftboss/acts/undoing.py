"""Undoing an operation, as far as it can be: reinstated jobs are held back again, held ones reinstated.

The undo is an act of its own, with its own permission and entry of the audit, which names the operation.
"""

import json
from uuid import UUID

from shiftboss.acts import attempts
from shiftboss.acts.many import Sweep
from shiftboss.acts.performing import permit
from shiftboss.permissions import Act, Person
from shiftboss.queue.errors import CannotUndo, NoSuchOperation
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import many, operate
from shiftboss.queue.store.many import Operation
from shiftboss.queue.store.operate import Answer
from shiftboss.queue.store.statement import run

UNDO_SECONDS = 600.0
"""So long after its last batch an operation can be undone."""

UNDOES = {Act.REINSTATE: Act.QUARANTINE, Act.QUARANTINE: Act.REINSTATE}
"""The acts that can be undone, each with the act that does it."""


def undone_by(act: str, age_seconds: float, *, by: Person) -> Act | None:
    """The act by which this person may still undo one that is so old, or None."""
    undoing = UNDOES.get(Act(act)) if act in tuple(Act) else None
    return undoing if undoing and age_seconds <= UNDO_SECONDS and by.may(undoing) else None


def undo(operation: UUID, *, by: Person, reason: str) -> Sweep:
    """The bulk act that undoes an operation: of its jobs those that are as it left them.

    After a reinstatement these are the jobs that nobody has claimed since, which get back under their old reason
    where the operation was on one reason. Raises NoSuchOperation, CannotUndo, NotAllowed and ReasonNeeded.
    """
    found = run(many.operation(operation, authority=by.authority, reader=by.as_actor))
    if found is None:
        raise NoSuchOperation(f"there is no operation {operation}")
    undoing = UNDOES.get(Act(found.act))
    if undoing is None:
        raise CannotUndo(f"{found.act} cannot be undone")
    reason = permit(undoing, by, reason)
    if found.age_seconds > UNDO_SECONDS:
        raise CannotUndo(f"only within {UNDO_SECONDS / 60:.0f} minutes can {found.act} be undone")
    held_for = _held_for(found)

    def batch(cursor: int | None) -> tuple[list[int], int | None]:
        row = run(many.operation_jobs(operation, authority=by.authority, after_id=cursor))
        return ([], cursor) if row is None else (row[1], row[0])

    def hold_again(ids: list[int]) -> Answer:
        verb = operate.hold_again(ids, authority=by.authority, by=by.name, since=found.at, reason=held_for)
        return run(verb)

    def reinstate(ids: list[int]) -> Answer:
        answers = [
            run(
                operate.reinstate(
                    [one.id for one in jobs], authority=by.authority, by=by.name, limits=limits, held_for=held_for
                )
            )
            for jobs, limits in attempts.groups(run(many.named(ids, authority=by.authority)))
        ]
        return Answer(
            tuple(job for answer in answers for job in answer.changed),
            tuple(job for answer in answers for job in answer.unchanged),
        )

    return Sweep(
        act=undoing,
        by=by,
        reason=reason,
        batch=batch,
        do=hold_again if undoing is Act.QUARANTINE else reinstate,
        asked={"undoes": str(operation), "reason": str(held_for)},
        queue=found.queue,
    )


def _held_for(found: Operation) -> QuarantineReason:
    return QuarantineReason(json.loads(found.asked).get("reason", QuarantineReason.OPERATOR))
