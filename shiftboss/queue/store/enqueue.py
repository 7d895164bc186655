"""What clients do: put jobs into queues."""

from dataclasses import dataclass
from datetime import datetime

from shiftboss import conf
from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.states import State
from shiftboss.queue.store.statement import Statement, Verb

MAX_TASK_LENGTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be: `args` and `meta` are JSON texts, `due_at` is aware or None for at once.

    Raises InvalidJob where the record could not hold it.
    """

    queue: str
    task: str
    args: str
    failure_limit: int
    loss_limit: int
    priority: int = 0
    due_at: datetime | None = None
    meta: str = "{}"

    def __post_init__(self) -> None:
        check_queue(self.queue)
        if not 1 <= len(self.task) <= MAX_TASK_LENGTH:
            raise InvalidJob(f"a task name has 1 to {MAX_TASK_LENGTH} characters, not {len(self.task)}")
        if not -100 <= self.priority <= 100:
            raise InvalidJob(f"priority is a whole number from -100 to 100, not {self.priority}")
        for name, limit in (("max_attempts", self.failure_limit), ("max_losses", self.loss_limit)):
            if not 1 <= limit < 2**31:
                raise InvalidJob(f"{name} is a whole number from 1 on, not {limit}")
        if self.due_at is not None and self.due_at.utcoffset() is None:
            raise InvalidJob("run_after must be an aware datetime: add a time zone")


def check_queue(name: str) -> None:
    """Raise InvalidJob where no queue can have this name."""
    try:
        conf.check_queue(name)
    except conf.ConfigError as error:
        raise InvalidJob(str(error)) from None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A job that the record now holds (once the transaction commits)."""

    id: int
    state: State
    enqueued_at: datetime


_ENQUEUE = Statement("enqueue", lambda id, state, at, _: Enqueued(id, State(state), at))


def enqueue(job: NewJob, *, authority: Authority) -> Verb[Enqueued]:
    """Put one job into its queue; `Owner` becomes the job's owner."""
    [row] = yield _ENQUEUE.call(
        owner=owner_of(authority),
        queue=job.queue,
        task=job.task,
        args=job.args,
        priority=job.priority,
        due_at=job.due_at,
        meta=job.meta,
        failure_limit=job.failure_limit,
        loss_limit=job.loss_limit,
    )
    enqueued: Enqueued = row
    return enqueued
