"""Many jobs at once: where chosen ones stand, what the quarantine holds, and what an operation has changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from shiftboss.queue import states
from shiftboss.queue.authority import Authority, System, queues_of, reach_of, require_staff
from shiftboss.queue.authorizers import guards_queues, require_queue
from shiftboss.queue.jobs import Limits
from shiftboss.queue.states import QuarantineReason, State
from shiftboss.queue.store.audit import NOBODY, Actor, seen_by
from shiftboss.queue.store.statement import Statement, Verb

LOOKED = 1000
"""Quarantined jobs of each reason that are looked at for groups: the newest ones."""

BUDGET = 2000
"""As many where they are narrowed to a scope, of which others may hold most."""

GROUPS = 8
"""Groups of each reason that are shown: those with the most jobs."""

COUNTED = 2000
"""Quarantined jobs of a reason that are counted before a bulk act."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands; all but the id is None where there is none. `holder`: another live job with its key."""

    id: int
    queue: str | None
    task: str | None
    state: State | None
    follow_up: bool
    holder: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """Quarantined jobs of one reason, task and error, among the newest `LOOKED` of the reason; and these in all.

    `error_type` … `runs` are those of the `newest` of them. `of_jobs`, `of_first`, `of_last` and `of_groups` are
    the same of the whole reason.
    """

    reason: str
    task: str
    fingerprint: str | None
    jobs: int
    first: datetime
    last: datetime
    newest: int
    queue: str
    error_type: str | None
    error_message: str | None
    runs: int
    of_jobs: int
    of_first: datetime
    of_last: datetime
    of_groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Quarantined jobs that a bulk act means: of one reason, of a task and an error or of all.

    `fingerprint`: of the error; empty for jobs whose error has none.
    """

    reason: QuarantineReason
    task: str | None = None
    fingerprint: str | None = None

    def params(self) -> dict[str, Any]:
        """The parameters of the statements that use them."""
        return {"reason": str(self.reason), "task": self.task, "fingerprint": self.fingerprint}


@dataclass(frozen=True, slots=True)
class HeldCount:
    """How many jobs a bulk act means, by task, among the newest `looked_at` of their reason, at most `cap`."""

    tasks: tuple[tuple[str, int], ...]
    looked_at: int
    cap: int

    @property
    def jobs(self) -> int:
        """All together."""
        return sum(jobs for _, jobs in self.tasks)

    @property
    def capped(self) -> bool:
        """Whether others of the reason were not looked at, so that there are at least this many."""
        return self.looked_at >= self.cap


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a person as a whole. `at`: its first entry; `age_seconds`: how old its last one is."""

    act: str
    by: str
    reason: str
    queue: str | None
    asked: str
    jobs: int
    at: datetime
    age_seconds: float


_NAMED = Statement(
    "named",
    lambda id, queue, task, state, follow_up, holder: Standing(
        id, queue, task, None if state is None else State(state), follow_up, holder
    ),
)
_RERUN_MANY = Statement("rerun_many", lambda old, new, state, _: (int(old), int(new), State(state)))
_HELD_GROUPS = Statement("held_groups", Group)
_HELD_MATCHING = Statement("held_matching", lambda id: int(id))
_HELD_COUNT = Statement("held_count", lambda task, jobs, looked: (str(task), int(jobs), int(looked)))
_OPERATION = Statement("operation", Operation)
_OPERATION_JOBS = Statement("operation_jobs", lambda id, jobs: (int(id), list(jobs)))


def named(job_ids: Sequence[int], *, authority: Authority) -> Verb[list[Standing]]:
    """Where each of these jobs stands, in the order of their ids. For staff only."""
    require_staff(authority, "named")
    rows: list[Standing] = yield _NAMED.call(ids=sorted(set(job_ids)), **reach_of(authority))
    return rows


def rerun(
    standings: Sequence[Standing], *, authority: Authority, limits: Limits
) -> Verb[list[tuple[int, int, State]]]:
    """Run finished jobs once more, as new jobs; of each that was, its id, the new job's, and the state it is in.

    Raises NotAllowed where the project's authorizer refuses one of them; then none is to be kept.
    """
    require_staff(authority, states.Verb.RERUN)
    if guards_queues():
        for queue, task in sorted({(one.queue, one.task) for one in standings if one.queue and one.task}):
            require_queue(authority=authority, queue=queue, task=task)
    ids = [one.id for one in standings]
    rows: list[tuple[int, int, State]] = yield _RERUN_MANY.call(ids=ids, **limits.params(), **reach_of(authority))
    return rows


def held_groups(*, authority: Authority) -> Verb[list[Group]]:
    """The newest quarantined jobs of each reason by task and error, the largest group first. For staff only.

    Within a scope: those of the newest `BUDGET` of each reason that are within it.
    """
    require_staff(authority, "held_groups")
    rows: list[Group] = yield _HELD_GROUPS.call(
        reasons=list(map(str, QuarantineReason)),
        looked=LOOKED if authority == System() else BUDGET,
        shown=GROUPS,
        **reach_of(authority),
    )
    return rows


def held_matching(which: Held, *, authority: Authority, before_id: int | None, limit: int) -> Verb[list[int]]:
    """Ids of these jobs, the newest first, below `before_id`."""
    require_staff(authority, "matching")
    rows: list[int] = yield _HELD_MATCHING.call(
        before_id=before_id, limit=limit, **which.params(), **reach_of(authority)
    )
    return rows


def held_count(which: Held, *, authority: Authority, cap: int = COUNTED) -> Verb[HeldCount]:
    """How many these are now, by task: exactly, or among the newest `cap` of their reason."""
    require_staff(authority, "matching")
    rows: list[tuple[str, int, int]] = yield _HELD_COUNT.call(cap=cap, **which.params(), **reach_of(authority))
    return HeldCount(tuple((task, jobs) for task, jobs, _ in rows), rows[0][2] if rows else 0, cap)


def operation(operation: UUID, *, authority: Authority, reader: Actor = NOBODY) -> Verb[Operation | None]:
    """An operation that the audit keeps and the reader may see, as in `audit.entries`; or None."""
    within = seen_by(queues_of(authority, "audit"), reader)
    rows: list[Operation] = yield _OPERATION.call(operation=operation, **within)
    return rows[0] if rows else None


def operation_jobs(
    operation: UUID, *, authority: Authority, after_id: int | None
) -> Verb[tuple[int, list[int]] | None]:
    """The next entry of an operation behind `after_id`, and the jobs that it has changed. For staff only."""
    require_staff(authority, "audit")
    rows: list[tuple[int, list[int]]] = yield _OPERATION_JOBS.call(operation=operation, after_id=after_id)
    return rows[0] if rows else None
