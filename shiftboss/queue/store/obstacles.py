"""What may keep a waiting job from running, as the record knows it."""

from dataclasses import dataclass, replace
from datetime import datetime

from shiftboss.queue.authority import Authority, queues_of
from shiftboss.queue.jobs import JobDetail
from shiftboss.queue.store.statement import Statement, Verb

AHEAD_CAP = 1000
"""Jobs ahead are counted up to here, among the more urgent ones and among those as urgent."""


@dataclass(frozen=True, slots=True)
class Obstacles:
    """The standing of one waiting job's queue, and what goes before the job.

    `workers` live, take jobs and serve the queue; `knowing` of them know the task, `draining` ones take none.
    `versions_without`: code versions of live workers that serve the queue and do not know the task. `taken_by`:
    some of the jobs that have a slot of a limited queue. `ahead`: at least so many from `AHEAD_CAP` on.
    """

    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    concurrency: int | None
    sequential: bool
    workers: int
    draining: int
    knowing: int
    versions_without: list[str]
    slots: int
    in_use: int
    last_seen_at: datetime | None
    taken: int
    taken_by: list[int]
    ahead: int


_OBSTACLES = Statement("obstacles", Obstacles)


def of(job: JobDetail, *, authority: Authority) -> Verb[Obstacles]:
    """What stands in the way of this job, which the authority may see. For staff only.

    Which jobs have the slots is told to who sees its queue as a whole.
    """
    queues = queues_of(authority, "obstacles")
    rows: list[Obstacles] = yield _OBSTACLES.call(
        id=job.id, queue=job.queue, task=job.task, priority=job.priority, due_at=job.due_at, cap=AHEAD_CAP
    )
    return rows[0] if queues is None or job.queue in queues else replace(rows[0], taken_by=[])
