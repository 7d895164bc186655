"""Tasks as they are declared: Django's `Task` with the options of Shiftboss."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async

from shiftboss.compat import Task, TaskResult, TaskResultMismatch, task_backends
from shiftboss.queue import registry
from shiftboss.queue.authority import Authority, Scope, owner_of
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.retry import Backoff, check_backoff
from shiftboss.queue.store.enqueue import OnConflict, check_queue

ISOLATIONS = ("thread", "async", "process")

Key = str | Callable[..., str | None]


class Call(NamedTuple):
    """A task with its arguments, for `enqueue_many`."""

    task: "ShiftbossTask"
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftbossTask(Task):
    """Django's Task with the options of Shiftboss, on the decorator or through `using()`.

    `max_attempts`: failures after which the job is quarantined; None: the setting. `backoff`: seconds, seconds
    for each failure, or a function of exception and failure number; None: exponential. `authority`: in whose
    name jobs are enqueued and results are read; None: the backend's option.

    `key`: at most one live job has it, among those of the same authority or, with `key_scope` "global", among all;
    a text, or a function that makes one of the job's arguments (None: no key). `on_conflict`: where it is held,
    answer with the "existing" job, "replace" it while it waits, or "refuse" with KeyHeld. `follow_up`: where the
    holder runs, one job may wait for its end.

    `deadline`: an aware time; a job that still waits then is cancelled. `tags`, `tenant`: for finding jobs.
    `watchers`: ids of owners who may read and cancel the job. `isolation`: "thread", "async" or
    "process" (an executor to itself); None: by the kind of the function.
    """

    max_attempts: int | None = None
    backoff: Backoff | None = None
    authority: Authority | None = None
    key: Key | None = None
    key_scope: Scope = Scope.OWNER
    on_conflict: OnConflict = OnConflict.EXISTING
    follow_up: bool = False
    deadline: datetime | None = None
    tags: tuple[str, ...] = ()
    tenant: str | None = None
    watchers: tuple[str, ...] = ()
    isolation: str | None = None

    def __post_init__(self) -> None:
        # Words of the settings kind, also as plain strings and lists.
        object.__setattr__(self, "key_scope", _word(Scope, "key_scope", self.key_scope))
        object.__setattr__(self, "on_conflict", _word(OnConflict, "on_conflict", self.on_conflict))
        for name in ("tags", "watchers"):
            object.__setattr__(self, name, _words(name, getattr(self, name)))
        check_options(max_attempts=self.max_attempts, backoff=self.backoff, authority=self.authority)
        _check_isolation(self.isolation, self.func)
        check_queue(self.queue_name)
        # Zero-argument super() does not work in a slotted dataclass.
        Task.__post_init__(self)
        registry.add(self.module_path)

    def using(self, **changes: Any) -> "ShiftbossTask":
        """A copy with other values for `priority`, `queue_name`, `run_after`, `backend` or any option of
        Shiftboss; None leaves a value as it is."""
        allowed = {f.name for f in fields(self)} - {"func", "takes_context"}
        if unknown := set(changes) - allowed:
            raise TypeError(f"using() got unexpected keywords {sorted(unknown)}; known are {sorted(allowed)}")
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def with_arguments(self, *args: Any, **kwargs: Any) -> Call:
        """The task with its arguments, for `shiftboss.enqueue_many`."""
        return Call(self, args, kwargs)

    def key_of(self, args: Any, kwargs: Any) -> str | None:
        """The key of a job with these arguments. Raises InvalidJob where the function gives no text."""
        key = self.key(*args, **kwargs) if callable(self.key) else self.key
        if key is not None and not isinstance(key, str):
            raise InvalidJob(f"key must be a text, not a {type(key).__name__}")
        return key

    def get_result(self, result_id: str) -> TaskResult:
        """The result of one of this task's jobs; see Django's `Task.get_result`."""
        result_of = getattr(self.get_backend(), "result_of", None)
        if result_of is None:
            # Another backend has taken the place of ours, such as Django's own in a test.
            return Task.get_result(self, result_id)
        result: TaskResult = result_of(result_id, authority=self.authority)
        if result.task.func != self.func:
            raise TaskResultMismatch(f"Task does not match (received {result.task.module_path!r})")
        return result

    async def aget_result(self, result_id: str) -> TaskResult:
        """As `get_result`, from a coroutine."""
        result: TaskResult = await sync_to_async(self.get_result, thread_sensitive=True)(result_id)
        return result


def _word(kind: Any, name: str, value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise InvalidJob(f"{name} must be one of {', '.join(kind)}, not {value!r}") from None


def _words(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InvalidJob(f"{name} must be a list of texts, not {value!r}")
    return tuple(value)


def check_options(*, max_attempts: Any = None, backoff: Any = None, authority: Any = None, **_: Any) -> None:
    """Raise InvalidJob, TypeError or ValueError for an option that cannot be."""
    if max_attempts is not None and not _is_count(max_attempts):
        raise InvalidJob(f"max_attempts must be a whole number from 1 on, not {max_attempts!r}")
    if backoff is not None:
        check_backoff(backoff)
    if authority is not None:
        owner_of(authority)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _check_isolation(isolation: Any, function: Any) -> None:
    if isolation not in (None, *ISOLATIONS):
        raise InvalidJob(f"isolation must be one of {', '.join(ISOLATIONS)}, not {isolation!r}")
    if isolation == "async" and not inspect.iscoroutinefunction(function):
        raise InvalidJob("isolation 'async' is for coroutine functions; leave it out for a plain function")


def task(
    function: Callable[..., Any] | None = None,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = "default",
    takes_context: bool = False,
    **options: Any,
) -> Any:
    """Django's `@task` with the options of `ShiftbossTask`, on every supported Django.

    Where the backend named is another one (Django's Immediate or Dummy in a test), the options of Shiftboss are
    checked and then left out. Raises TypeError for an unknown option.
    """
    known = {f.name for f in fields(ShiftbossTask)} - {f.name for f in fields(Task)}
    if unknown := set(options) - known:
        known |= {"priority", "queue_name", "backend", "takes_context"}
        raise TypeError(f"@task got unexpected options {sorted(unknown)}; known are {sorted(known)}")
    check_options(**options)

    def declare(f: Callable[..., Any]) -> Task:
        kind = task_backends[backend].task_class
        extra = options if issubclass(kind, ShiftbossTask) else {}
        return kind(
            func=f, priority=priority, queue_name=queue_name, backend=backend, takes_context=takes_context, **extra
        )

    return declare(function) if function is not None else declare
