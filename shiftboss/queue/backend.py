"""A `django.tasks` backend: jobs are declared and enqueued with Django's own Tasks API.

    TASKS = {
        "default": {
            "BACKEND": "shiftboss.queue.backend.ShiftbossBackend",
            "OPTIONS": {"authority": System()},
        }
    }

Enqueueing runs on Django's own connection, so that a rollback takes the job with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from asgiref.sync import sync_to_async
from django.core import checks
from django.db import utils as db
from psycopg import errors as pg

from shiftboss import conf
from shiftboss.compat import (
    BaseTaskBackend,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from shiftboss.queue import payload, registry
from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.errors import InvalidJob, NotAllowed, SchemaTooOld, UnknownTask, UnsupportedDatabase
from shiftboss.queue.retry import Backoff, check_backoff
from shiftboss.queue.states import State
from shiftboss.queue.store import read
from shiftboss.queue.store.enqueue import NewJob, check_queue, enqueue
from shiftboss.queue.store.statement import Verb, run

_STATUS = {
    State.SCHEDULED: TaskResultStatus.READY,
    State.AVAILABLE: TaskResultStatus.READY,
    State.RETRYABLE: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.QUARANTINED: TaskResultStatus.FAILED,
    State.DISCARDED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftbossTask(Task):
    """Django's Task with the options of Shiftboss.

    `max_attempts`: failures after which the job is quarantined; None: the setting. `backoff`: seconds, seconds
    for each failure, or a function of exception and failure number; None: exponential. `authority`: in whose
    name jobs are enqueued and results are read; None: the backend's option.
    """

    max_attempts: int | None = None
    backoff: Backoff | None = None
    authority: Authority | None = None

    def __post_init__(self) -> None:
        _check_options(max_attempts=self.max_attempts, backoff=self.backoff, authority=self.authority)
        check_queue(self.queue_name)
        # Zero-argument super() does not work in a slotted dataclass.
        Task.__post_init__(self)
        registry.add(self.module_path)

    def using(self, **changes: Any) -> "ShiftbossTask":
        """A copy with other values for `priority`, `queue_name`, `run_after`, `backend`, `authority`,
        `max_attempts` or `backoff`; None leaves a value as it is."""
        allowed = {f.name for f in fields(self)} - {"func", "takes_context"}
        if unknown := set(changes) - allowed:
            raise TypeError(f"using() got unexpected keywords {sorted(unknown)}; known are {sorted(allowed)}")
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def get_result(self, result_id: str) -> TaskResult:
        """The result of one of this task's jobs; see Django's `Task.get_result`."""
        backend = self.get_backend()
        if not isinstance(backend, ShiftbossBackend):
            # Another backend has taken the place of ours, such as Django's own in a test.
            return Task.get_result(self, result_id)
        result = backend.result_of(result_id, authority=self.authority)
        if result.task.func != self.func:
            raise TaskResultMismatch(f"Task does not match (received {result.task.module_path!r})")
        return result

    async def aget_result(self, result_id: str) -> TaskResult:
        """As `get_result`, from a coroutine."""
        result: TaskResult = await sync_to_async(self.get_result, thread_sensitive=True)(result_id)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftbossResult(TaskResult):  # type: ignore[misc]
    """Django's TaskResult, read again in the name in which it was read first."""

    def refresh(self) -> None:
        """Read the job again. Raises TaskResultDoesNotExist where it is gone."""
        fresh = self.task.get_result(self.id)
        for f in fields(self):
            if f.name != "task":
                object.__setattr__(self, f.name, getattr(fresh, f.name))

    async def arefresh(self) -> None:
        """As `refresh`, from a coroutine."""
        await sync_to_async(self.refresh, thread_sensitive=True)()


def _check_options(*, max_attempts: Any = None, backoff: Any = None, authority: Any = None) -> None:
    if max_attempts is not None and not _is_count(max_attempts):
        raise InvalidJob(f"max_attempts must be a whole number from 1 on, not {max_attempts!r}")
    if backoff is not None:
        check_backoff(backoff)
    if authority is not None:
        owner_of(authority)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


class ShiftbossBackend(BaseTaskBackend):
    """Jobs in PostgreSQL. Option `authority`: in whose name, where `using(authority=…)` does not say it."""

    task_class = ShiftbossTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """E003: an unknown option, or an `authority` that is neither Owner nor System."""
        found = list(super().check(**kwargs))
        problems = [f"unknown option {name!r}; there is 'authority'" for name in set(self.options) - {"authority"}]
        try:
            if (given := self.options.get("authority")) is not None:
                owner_of(given)
        except TypeError as problem:
            problems.append(str(problem))
        hint = "Write OPTIONS = {'authority': shiftboss.System()} or give it with using(authority=…)."
        for text in sorted(problems):
            found.append(checks.Error(f"TASKS[{self.alias!r}]: {text}", hint=hint, id="shiftboss.E003"))
        return found

    def authority(self, given: Authority | None) -> Authority:
        """The authority of a call: the one given, else the backend's. Raises NotAllowed where there is none."""
        authority = given if given is not None else self.options.get("authority")
        if authority is None:
            raise NotAllowed(
                f"no authority: call task.using(authority=Owner('…')) or set TASKS[{self.alias!r}]"
                "['OPTIONS']['authority']"
            )
        owner_of(authority)
        return authority

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Put a job into the record, in the transaction that is open on Django's connection.

        Raises InvalidJob (or its child NotStorable) and Django's own InvalidTask for bad input, NotAllowed
        without authority, SchemaTooOld where migrations are missing.
        """
        self.validate_task(task)
        config = conf.get()
        authority = self.authority(getattr(task, "authority", None))
        text = payload.encode_arguments(args, kwargs, max_bytes=config.max_args_bytes)
        job = NewJob(
            queue=task.queue_name,
            task=task.module_path,
            args=text,
            priority=int(task.priority),
            due_at=task.run_after,
            failure_limit=getattr(task, "max_attempts", None) or config.max_attempts,
            loss_limit=config.max_losses,
        )
        enqueued = _on_record(enqueue(job, authority=authority))
        plain_args, plain_kwargs = payload.decode_arguments(text, typed=False)
        result = ShiftbossResult(
            task=task,
            id=str(enqueued.id),
            status=TaskResultStatus.READY,
            enqueued_at=enqueued.enqueued_at,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=plain_args,
            kwargs=plain_kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """A job as Django's TaskResult, whichever table holds it. Raises TaskResultDoesNotExist."""
        return self.result_of(result_id, authority=None)

    def result_of(self, result_id: str, *, authority: Authority | None) -> TaskResult:
        """As `get_result`, in the name of `authority` (None: the backend's option)."""
        seen_by = self.authority(authority)
        job = None
        if result_id.isascii() and result_id.isdigit() and len(result_id) < 19:
            job = _on_record(read.job(authority=seen_by, job_id=int(result_id)))
        if job is None:
            raise TaskResultDoesNotExist(result_id)
        attempts = _on_record(read.attempts(authority=seen_by, job_id=job.id))
        return self._result(job, attempts, authority)

    def _result(
        self, job: read.JobDetail, attempts: list[read.AttemptRow], authority: Authority | None
    ) -> TaskResult:
        try:
            task = registry.resolve(job.task)
        except UnknownTask as error:
            raise TaskResultMismatch(str(error)) from error
        args, kwargs = payload.decode_arguments(job.args, typed=False)
        workers = [str(attempt.worker_id) for attempt in attempts if attempt.worker_id is not None]
        if job.worker_id is not None:
            workers.append(str(job.worker_id))
        changes: dict[str, Any] = {"priority": job.priority, "queue_name": job.queue, "backend": self.alias}
        if authority is not None:
            # So that the result is also read again in this name.
            changes["authority"] = authority
        result = ShiftbossResult(
            task=replace(task, **changes),
            id=str(job.id),
            status=_STATUS[job.state],
            enqueued_at=job.enqueued_at,
            started_at=min((a.started_at for a in attempts if a.started_at), default=job.started_at),
            finished_at=job.finished_at or job.quarantined_at,
            last_attempted_at=job.started_at,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[_error(attempt) for attempt in attempts if attempt.outcome in {"failed", "lost"}],
            worker_ids=workers,
        )
        if job.result is not None:
            object.__setattr__(result, "_return_value", payload.decode(job.result, typed=False))
        return result


def _error(attempt: read.AttemptRow) -> TaskError:
    kind = attempt.error_type or "shiftboss.queue.errors.LeaseLost"
    return TaskError(
        exception_class_path=kind if "." in kind else f"builtins.{kind}",
        traceback=attempt.traceback or attempt.error_message or attempt.error_code or "",
    )


def backend_of_the_record() -> "ShiftbossBackend":
    """The first backend of `TASKS` that is Shiftboss's. Raises LookupError where there is none."""
    for alias in task_backends:
        if isinstance(backend := task_backends[alias], ShiftbossBackend):
            return backend
    raise LookupError("no backend of settings.TASKS is shiftboss.queue.backend.ShiftbossBackend")


def _on_record(verb: Verb[Any]) -> Any:
    """Run a verb on Django's connection, with the two usual mistakes of a setup told by name."""
    from django.db import connections

    alias = conf.get().database
    vendor = connections[alias].vendor
    if vendor != "postgresql":
        raise UnsupportedDatabase(
            f"DATABASES[{alias!r}] is {vendor}; Shiftboss needs PostgreSQL 15 or newer: set SHIFTBOSS['DATABASE'] "
            "to the alias of one"
        )
    try:
        return run(verb)
    except db.ProgrammingError as error:
        if isinstance(error.__cause__, pg.UndefinedTable | pg.UndefinedColumn):
            raise SchemaTooOld("Shiftboss's tables are missing: run `manage.py migrate`") from error
        raise


def task(
    function: Callable[..., Any] | None = None,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = "default",
    takes_context: bool = False,
    **options: Any,
) -> Any:
    """Django's `@task` with `max_attempts`, `backoff` and `authority`, on every supported Django.

    Where the backend named is another one (Django's Immediate or Dummy in a test), the options of Shiftboss are
    checked and then left out. Raises TypeError for an unknown option.
    """
    known = {f.name for f in fields(ShiftbossTask)} - {f.name for f in fields(Task)}
    if unknown := set(options) - known:
        known |= {"priority", "queue_name", "backend", "takes_context"}
        raise TypeError(f"@task got unexpected options {sorted(unknown)}; known are {sorted(known)}")
    _check_options(**options)

    def declare(f: Callable[..., Any]) -> Task:
        kind = task_backends[backend].task_class
        extra = options if issubclass(kind, ShiftbossTask) else {}
        return kind(
            func=f, priority=priority, queue_name=queue_name, backend=backend, takes_context=takes_context, **extra
        )

    return declare(function) if function is not None else declare
