"""What a test looks at: which jobs were enqueued."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.compat import Task, TaskResultStatus, task_backends
from shiftboss.queue import payload
from shiftboss.queue.backend import ShiftbossBackend
from shiftboss.queue.states import WAITING
from shiftboss.testing.records import record_of

SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedJob:
    """A job that waits to be run. `args` and `kwargs` are as its handler gets them; `owner` None: the system's."""

    id: str
    task: str
    queue: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    priority: int
    due_at: datetime | None
    owner: str | None

    def __str__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.task}({', '.join(given)}) in queue {self.queue!r}"


def enqueued(task: Task | None = None, *, queue: str | None = None, store: Any = None) -> list[EnqueuedJob]:
    """Jobs that wait to be run, the oldest first: of all tasks or of one, of all queues or of one.

    In the database, as the test's connection sees it; in a `MemoryStore` where `store` is one; and in
    `shiftboss.testing.DummyBackend` where that is in `TASKS`.
    """
    backends = [task_backends[alias] for alias in task_backends] if store is None else []
    found: list[EnqueuedJob] = []
    if store is not None or any(isinstance(backend, ShiftbossBackend) for backend in backends):
        found += _of_the_record(store)
    for backend in backends:
        found += _of_the_dummy(backend)
    name = None if task is None else task.module_path
    return [job for job in found if name in (None, job.task) and queue in (None, job.queue)]


def _of_the_record(store: Any) -> Iterator[EnqueuedJob]:
    record = record_of(store)
    for row in sorted((row for state in WAITING for row in record.waiting(state)), key=lambda row: row.id):
        job = record.job(row.id)
        assert job is not None
        args, kwargs = payload.decode_arguments(job.args)
        yield EnqueuedJob(
            id=str(job.id),
            task=job.task,
            queue=job.queue,
            args=tuple(args),
            kwargs=kwargs,
            priority=job.priority,
            due_at=job.due_at,
            owner=job.owner,
        )


def _of_the_dummy(backend: Any) -> Iterator[EnqueuedJob]:
    for result in getattr(backend, "results", ()):
        if result.status == TaskResultStatus.READY:
            authority = getattr(result.task, "authority", None)
            yield EnqueuedJob(
                id=result.id,
                task=result.task.module_path,
                queue=result.task.queue_name,
                args=tuple(result.args),
                kwargs=result.kwargs,
                priority=result.task.priority,
                due_at=result.task.run_after,
                owner=getattr(authority, "id", None),
            )


def assert_enqueued(
    task: Task,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    count: int | None = None,
    store: Any = None,
) -> list[EnqueuedJob]:
    """Assert that jobs of the task wait, with these arguments and in this queue where they are given.

    `count`: exactly so many; else at least one. Answers with them. Raises AssertionError, which tells what waits.
    """
    found = _matching(task, args, kwargs, queue, store)
    if not found if count is None else len(found) != count:
        wanted = "no job" if count is None else f"{len(found)} jobs and not {count}"
        raise AssertionError(_text(wanted, task, args, kwargs, queue, store))
    return found


def assert_not_enqueued(
    task: Task,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    store: Any = None,
) -> None:
    """Assert that no such job waits. Raises AssertionError, which tells what does."""
    if found := _matching(task, args, kwargs, queue, store):
        raise AssertionError(_text(f"{len(found)} jobs", task, args, kwargs, queue, store))


def _matching(
    task: Task,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    queue: str | None,
    store: Any,
) -> list[EnqueuedJob]:
    return [
        job
        for job in enqueued(task, queue=queue, store=store)
        if (args is None or job.args == tuple(args)) and (kwargs is None or job.kwargs == dict(kwargs))
    ]


def _text(
    found: str,
    task: Task,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    queue: str | None,
    store: Any,
) -> str:
    named = (("args", args), ("kwargs", kwargs), ("queue", queue))
    asked = " and ".join(f"{name} {value!r}" for name, value in named if value is not None)
    waiting = enqueued(store=store)
    lines = [f"  {job}" for job in waiting[:SHOWN]]
    if len(waiting) > SHOWN:
        lines.append(f"  … and {len(waiting) - SHOWN} more")
    told = "\n".join(["What waits:", *lines] if lines else ["Nothing waits."])
    return f"{found} of {task.module_path} waits{f' with {asked}' if asked else ''}. {told}"
