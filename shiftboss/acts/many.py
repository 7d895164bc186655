"""Acts on all jobs that match: batches, each a transaction with its entry of the audit, under one operation.

Such an act can be stopped and gone on with between any two batches: `Swept` is how far it is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from shiftboss.acts import attempts
from shiftboss.acts.named import tally, verb_of
from shiftboss.acts.performing import at_once, keep, permit
from shiftboss.permissions import Act, Person
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.states import State
from shiftboss.queue.store import many, operate
from shiftboss.queue.store.enqueue import check_queue
from shiftboss.queue.store.many import Held
from shiftboss.queue.store.operate import Answer, Matching, Why
from shiftboss.queue.store.statement import run

BULK_BATCH = 2000
STORED_BATCH = 1000
"""A batch of acts that store events, which hold a lock a job: PostgreSQL has room for some thousands of locks."""

BULK_PASSES = 5
"""How often a bulk act comes back to jobs that somebody else had in hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How far a bulk act is: jobs changed, running jobs whose end was asked for, and jobs left as they were.

    It goes on behind `cursor`; `busy` jobs are come back to, for the `passes`th time by now.
    """

    operation: UUID = field(default_factory=uuid4)
    ended: int = 0
    requested: int = 0
    left: int = 0
    cursor: int | None = None
    walked: bool = False
    busy: tuple[int, ...] = ()
    again: tuple[int, ...] = ()
    passes: int = 0
    done: bool = False

    @property
    def changed(self) -> int:
        """All that was changed."""
        return self.ended + self.requested


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A bulk act of a person: `batch` tells the jobs that follow a cursor and the next cursor, `do` changes them.

    `asked` and `queue` are what the audit keeps beside.
    """

    act: Act
    by: Person
    reason: str
    batch: Callable[[int | None], tuple[list[int], int | None]]
    do: Callable[[list[int]], Answer]
    asked: Mapping[str, Any]
    queue: str | None = None

    def go_on(self, so_far: Swept) -> Swept:
        """One batch more, each a transaction with its entry of the audit."""
        if so_far.done:
            return so_far
        if not so_far.walked:
            ids, cursor = self.batch(so_far.cursor)
            if ids:
                return self._swept(ids, replace(so_far, cursor=cursor))
            so_far = replace(so_far, walked=True, again=so_far.busy, busy=())
        if not so_far.again:
            if not so_far.busy or so_far.passes >= BULK_PASSES - 1:
                return replace(so_far, left=so_far.left + len(so_far.busy), busy=(), done=True)
            so_far = replace(so_far, again=so_far.busy, busy=(), passes=so_far.passes + 1)
        size = min(BULK_BATCH, STORED_BATCH)
        ids = list(so_far.again[:size])
        return self._swept(ids, replace(so_far, again=so_far.again[size:]))

    def steps(self, so_far: Swept | None = None) -> Iterator[Swept]:
        """How far it is after each batch, to the end; who stops asking stops the act."""
        so_far = so_far or Swept()
        while not so_far.done:
            so_far = self.go_on(so_far)
            yield so_far

    def _swept(self, ids: list[int], so_far: Swept) -> Swept:
        with at_once():
            answer = self.do(ids)
            requested = sum(1 for job in answer.changed if job.after is State.RUNNING)
            if answer.changed:
                keep(
                    self.act,
                    self.by,
                    self.reason,
                    operation=so_far.operation,
                    queue=self.queue,
                    jobs=len(answer.changed),
                    asked=self.asked,
                    before=tally(job.before for job in answer.changed),
                    after={
                        **tally(job.after for job in answer.changed),
                        "ids": [job.id for job in answer.changed],
                    },
                )
        busy = tuple(job.id for job in answer.unchanged if job.why is Why.BUSY)
        return replace(
            so_far,
            ended=so_far.ended + len(answer.changed) - requested,
            requested=so_far.requested + requested,
            left=so_far.left + len(answer.unchanged) - len(busy),
            busy=so_far.busy + busy,
        )


def cancel_matching(which: Matching, *, by: Person, reason: str) -> Iterator[Swept]:
    """Cancel all jobs that match now, in batches, each a transaction with its entry of the audit.

    Refuses at once what is not permitted. Yields how far it is after each batch; who stops asking stops the act.
    From the newest down, away from where workers claim; jobs that somebody else has in hand are come back to. A
    job that has been claimed since it matched is asked to end, as by `cancel`.
    """
    return cancellation(which, by=by, reason=reason).steps()


def cancellation(which: Matching, *, by: Person, reason: str) -> Sweep:
    """The act of `cancel_matching`, batch by batch. Raises NotAllowed, ReasonNeeded, InvalidJob."""
    reason = permit(Act.CANCEL, by, reason)
    if which.queue is not None:
        check_queue(which.queue)
    _check_task(which.task)

    def batch(cursor: int | None) -> tuple[list[int], int | None]:
        ids = run(operate.matching(which, authority=by.authority, before_id=cursor, limit=BULK_BATCH))
        return ids, ids[-1] if ids else cursor

    return Sweep(
        act=Act.CANCEL,
        by=by,
        reason=reason,
        batch=batch,
        do=lambda ids: run(operate.cancel(ids, authority=by.authority)),
        asked={"task": which.task, "states": sorted(map(str, which.states))},
        queue=which.queue,
    )


def reinstate_matching(which: Held, *, by: Person, reason: str = "") -> Iterator[Swept]:
    """Let all quarantined jobs that match now run again, as `cancel_matching` cancels."""
    return sweep(Act.REINSTATE, which, by=by, reason=reason).steps()


def discard_matching(which: Held, *, by: Person, reason: str) -> Iterator[Swept]:
    """Give all quarantined jobs that match now up for good, as `cancel_matching` cancels."""
    return sweep(Act.DISCARD, which, by=by, reason=reason).steps()


def sweep(act: Act, which: Held, *, by: Person, reason: str) -> Sweep:
    """Reinstate or discard quarantined jobs in bulk. Raises NotAllowed, ReasonNeeded, InvalidJob."""
    if act not in (Act.REINSTATE, Act.DISCARD):
        raise InvalidJob(f"{act} is not done to quarantined jobs in bulk")
    reason = permit(act, by, reason)
    _check_task(which.task)

    limit = BULK_BATCH if act is Act.DISCARD else min(BULK_BATCH, STORED_BATCH)

    def batch(cursor: int | None) -> tuple[list[int], int | None]:
        ids = run(many.held_matching(which, authority=by.authority, before_id=cursor, limit=limit))
        return ids, ids[-1] if ids else cursor

    def do(ids: list[int]) -> Answer:
        # Within the transaction, but a task that is not imported yet is imported once, for the first batch.
        again = attempts.groups(run(many.named(ids, authority=by.authority))) if act is Act.REINSTATE else []
        return verb_of(act, by=by, again=again)(ids)

    asked = {"reason": str(which.reason), "task": which.task, "fingerprint": which.fingerprint}
    return Sweep(
        act=act,
        by=by,
        reason=reason,
        batch=batch,
        do=do,
        asked={name: value for name, value in asked.items() if value is not None},
    )


def _check_task(name: str | None) -> None:
    if name is not None and not name.isprintable():
        raise InvalidJob("a task's name is made of printable characters")
