"""Tasks as they are declared: Django's `Task` with the options of Shiftboss."""

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async

from shiftboss import conf
from shiftboss.compat import Task, TaskResult, TaskResultMismatch, task_backends
from shiftboss.queue import payload, registry
from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.errors import InvalidJob, NotStorable, shown
from shiftboss.queue.jobs import check_key, check_tags, check_tenant, check_watchers
from shiftboss.queue.keys import Scope
from shiftboss.queue.retry import LONGEST_SECONDS, Backoff, check_backoff
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.store.enqueue import OnConflict, check_queue

ISOLATIONS = ("thread", "async", "process")
DURABLE = ("each",)
MAX_SECRETS = 20
MAX_NAME_LENGTH = 100
NO_OPTIONS = conf.QueueOptions()

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
    "process" (an executor to itself); None: by the kind of the function. `timeout`: seconds that one attempt may
    take. `unique`: the key is made of the task's name and the job's arguments. `retry_on`: a failure with another
    exception is not retried; `discard_on`: one with such an exception ends the job for good. `durable` "each":
    each outcome is written in a transaction of its own. `resource`: the name of what the handler is lent;
    `secrets`: names of those that it may ask for.
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
    timeout: float | None = None
    unique: bool = False
    retry_on: tuple[type[Exception], ...] | None = None
    discard_on: tuple[type[Exception], ...] = ()
    durable: str | None = None
    resource: str | None = None
    secrets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Words of the settings kind, also as plain strings and lists.
        object.__setattr__(self, "key_scope", _word(Scope, "key_scope", self.key_scope))
        object.__setattr__(self, "on_conflict", _word(OnConflict, "on_conflict", self.on_conflict))
        for name in ("tags", "watchers", "secrets"):
            object.__setattr__(self, name, _words(name, getattr(self, name)))
        for name in ("retry_on", "discard_on"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _types(name, getattr(self, name)))
        check_options(**{f.name: getattr(self, f.name) for f in fields(ShiftbossTask)})
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
        if self.unique:
            return self._key_of_arguments(args, kwargs)
        key = self.key(*args, **kwargs) if callable(self.key) else self.key
        if key is not None and not isinstance(key, str):
            raise InvalidJob(f"key must be a text, not a {type(key).__name__}")
        return key

    def _key_of_arguments(self, args: Any, kwargs: Any) -> str:
        """Alike for the same arguments, by place or by name, in whatever order; defaults are not filled in."""
        try:
            signature = inspect.signature(self.func)
            given = [None, *args] if self.takes_context else args
            args, kwargs = (), dict(signature.bind(*given, **kwargs).arguments)
            if self.takes_context:
                del kwargs[next(iter(signature.parameters))]
        except (TypeError, ValueError):
            pass  # they do not fit, which the worker tells
        text = payload.encode_arguments(args, kwargs, max_bytes=conf.get().max_args_bytes)
        try:
            sorted_text = json.dumps([self.module_path, json.loads(text)], sort_keys=True)
        except RecursionError:
            raise NotStorable("the arguments are nested too deeply for a key made of them") from None
        return f"{self.module_path[:MAX_NAME_LENGTH]} {hashlib.sha256(sorted_text.encode()).hexdigest()}"

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


def _types(name: str, value: Any) -> tuple[type[Exception], ...]:
    types = tuple(value) if isinstance(value, tuple | list) else (value,)
    for one in types:
        if not isinstance(one, type) or not issubclass(one, Exception):
            raise InvalidJob(f"{name} takes exception types, subclasses of Exception, not {shown(one)}")
    return types


def check_options(*, takes_context: bool, **options: Any) -> None:
    """Raise InvalidJob for an option that cannot be, whatever the function is; TypeError for no authority."""
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if (check := _CHECKS.get(name)) is not None:
            check(value)
    if given.get("unique") and "key" in given:
        raise InvalidJob("unique makes the key itself, of the arguments: leave out either unique or key")
    both = {*_types("retry_on", given.get("retry_on", ()))} & {*_types("discard_on", given.get("discard_on", ()))}
    if both:
        names = ", ".join(sorted(one.__qualname__ for one in both))
        raise InvalidJob(f"retry_on and discard_on both name {names}: a failure cannot be retried and given up")
    for name in ("resource", "secrets"):
        if given.get(name) and not takes_context:
            raise InvalidJob(
                f"{name} can be had of the context alone: add takes_context=True, and `context` as the function's "
                "first argument"
            )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _check_attempts(value: Any) -> None:
    if not _is_count(value):
        raise InvalidJob(f"max_attempts must be a whole number from 1 on, not {shown(value)}")


def _check_timeout(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST_SECONDS:
        raise InvalidJob(
            f"timeout must be the seconds of one attempt, above 0 and at most {LONGEST_SECONDS:.0f}, not "
            f"{shown(value)}"
        )


def _check_deadline(value: Any) -> None:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidJob(f"deadline must be an aware datetime, not {shown(value)}: add a time zone")


def _check_unique(value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidJob(f"unique must be True or False, not {shown(value)}; a text of your own is a `key`")


def _check_follow_up(value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidJob(f"follow_up must be True or False, not {shown(value)}")


def _check_key(value: Any) -> None:
    if not callable(value):
        check_key(value)


def _check_durable(value: Any) -> None:
    if value not in DURABLE:
        raise InvalidJob(f"durable must be {' or '.join(map(repr, DURABLE))}, or left out, not {shown(value)}")


def _check_secrets(value: Any) -> None:
    names = _words("secrets", value)
    if len(names) > MAX_SECRETS:
        raise InvalidJob(f"secrets: at most {MAX_SECRETS} names, not {len(names)}")
    for name in names:
        _check_name("secrets", name)


def _check_name(option: str, value: Any) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME_LENGTH or not value.isprintable():
        raise InvalidJob(f"{option}: a name is 1 to {MAX_NAME_LENGTH} printable characters, not {shown(value)}")


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "max_attempts": _check_attempts,
    "backoff": check_backoff,
    "authority": owner_of,
    "key": _check_key,
    "follow_up": _check_follow_up,
    "tags": lambda value: check_tags(_words("tags", value)),
    "tenant": check_tenant,
    "watchers": lambda value: check_watchers(_words("watchers", value)),
    "timeout": _check_timeout,
    "deadline": _check_deadline,
    "unique": _check_unique,
    "durable": _check_durable,
    "resource": lambda value: _check_name("resource", value),
    "secrets": _check_secrets,
}


def _check_isolation(isolation: Any, function: Any) -> None:
    if isolation not in (None, *ISOLATIONS):
        raise InvalidJob(f"isolation must be one of {', '.join(ISOLATIONS)}, not {isolation!r}")
    if isolation == "async" and not inspect.iscoroutinefunction(function):
        raise InvalidJob("isolation 'async' is for coroutine functions; leave it out for a plain function")


def config_of(task: Task, queue: str) -> TaskConfig:
    """What decides how jobs of this task run in this queue; the queue's settings go before the task's options."""
    own = conf.get().queues.get(queue, NO_OPTIONS)
    isolation = getattr(task, "isolation", None)
    timeout = getattr(task, "timeout", None) if own.timeout_seconds is None else own.timeout_seconds
    backoff = getattr(task, "backoff", None) if own.backoff_seconds is None else own.backoff_seconds
    retry_on = getattr(task, "retry_on", None)
    return TaskConfig(
        task=task.module_path,
        isolation=isolation or ("async" if inspect.iscoroutinefunction(task.func) else "thread"),
        timeout_seconds=None if timeout is None else min(float(timeout), LONGEST_SECONDS),
        backoff=_stored_backoff(backoff),
        durable=getattr(task, "durable", None),
        resource=getattr(task, "resource", None),
        retry_on=None if retry_on is None else _names(retry_on),
        discard_on=_names(getattr(task, "discard_on", ())),
        secrets=getattr(task, "secrets", ()),
    )


def _stored_backoff(backoff: Backoff | None) -> float | tuple[float, ...] | str | None:
    if callable(backoff):
        return "function"
    if isinstance(backoff, int | float):
        return min(float(backoff), LONGEST_SECONDS)
    return None if backoff is None else tuple(map(float, backoff))


def _names(types: tuple[type[Exception], ...]) -> tuple[str, ...]:
    return tuple(f"{one.__module__}.{one.__qualname__}" for one in types)


def attempts_of(task: Task, queue: str) -> int:
    """Failures after which a job of this task in this queue is quarantined."""
    config = conf.get()
    own = config.queues.get(queue, NO_OPTIONS)
    return own.max_attempts or getattr(task, "max_attempts", None) or config.max_attempts


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
    check_options(takes_context=takes_context, **options)

    def declare(f: Callable[..., Any]) -> Task:
        kind = task_backends[backend].task_class
        extra = options if issubclass(kind, ShiftbossTask) else {}
        return kind(
            func=f, priority=priority, queue_name=queue_name, backend=backend, takes_context=takes_context, **extra
        )

    return declare(function) if function is not None else declare
