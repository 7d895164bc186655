"""Plain functions as tasks, for a worker in a program without Django."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any

from shiftboss.queue import payload
from shiftboss.queue.contract import Lease
from shiftboss.queue.errors import InTransaction, SecretUnavailable, UnknownResource, UnknownTask
from shiftboss.queue.jobs import NewJob
from shiftboss.queue.outcomes import Done
from shiftboss.queue.redaction import Redactor, by_keys
from shiftboss.queue.retry import Backoff, backoff_seconds, check_backoff
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.ports import Handler, Lane
from shiftboss.queue.typed import Typed

MAX_BYTES = 256 * 1024
"""Of a job's arguments, and of its result, as JSON."""


class Function:
    """One function as a worker runs it: a coroutine function on an event loop, any other in a thread."""

    __slots__ = ("backoff", "call", "config", "function", "is_async", "takes_context", "typed")

    def __init__(
        self, function: Callable[..., Any], config: TaskConfig, *, takes_context: bool, backoff: Backoff | None
    ) -> None:
        self.config = config
        self.takes_context = takes_context
        self.is_async = inspect.iscoroutinefunction(function)
        self.call: Callable[..., Any] = function
        self.function: Callable[..., Any] = function
        self.backoff = backoff
        self.typed = Typed(function, takes_context=takes_context)

    def arguments(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The stored arguments as the type hints want them. Raises InvalidArguments."""
        return self.typed.arguments(args, kwargs)

    def result(self, value: Any) -> Any:
        """The result as the type hint wants it. Raises InvalidResult."""
        return self.typed.result(value)


class PlainLane:
    """A lane with nothing to tidy."""

    def context(self) -> Context:
        """Empty."""
        return Context()

    async def tidy(self) -> None:
        """Nothing is left behind."""

    def close(self) -> None:
        """Nothing is held."""


class Functions:
    """Functions by name: what a `Worker` without Django runs, and the jobs that call them.

    `backoff_seconds` doubles with each failure of a job, up to the cap. The methods but `add` and `job` are the
    worker's.
    """

    def __init__(self, *, backoff_seconds: float = 5.0, backoff_cap_seconds: float = 3600.0) -> None:
        self._functions: dict[str, Function] = {}
        self._base_seconds = backoff_seconds
        self._cap_seconds = backoff_cap_seconds

    def add(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        takes_context: bool = False,
        timeout_seconds: float | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Let jobs of this name call the function; without `name`, that of its module and its own."""
        if backoff is not None:
            check_backoff(backoff)
        name = name or f"{function.__module__}.{function.__qualname__}"
        isolation = "async" if inspect.iscoroutinefunction(function) else "thread"
        config = TaskConfig(task=name, isolation=isolation, timeout_seconds=timeout_seconds)
        self._functions[name] = Function(function, config, takes_context=takes_context, backoff=backoff)

    def job(
        self,
        task: str,
        *args: Any,
        kwargs: Mapping[str, Any] | None = None,
        queue: str = "default",
        failure_limit: int = 5,
        loss_limit: int = 3,
        **options: Any,
    ) -> NewJob:
        """A job that calls the function of this name, to be enqueued; `options` are those of `NewJob`.

        Raises UnknownTask, NotStorable, InvalidJob.
        """
        return NewJob(
            queue=queue,
            task=task,
            args=payload.encode_arguments(args, kwargs or {}, max_bytes=MAX_BYTES),
            failure_limit=failure_limit,
            loss_limit=loss_limit,
            revision=self._function(task).config,
            **options,
        )

    def known(self) -> dict[str, str]:
        """All names."""
        return {name: function.config.isolation for name, function in self._functions.items()}

    def resolve(self, name: str, config: TaskConfig | None = None) -> Handler:
        """The function of this name."""
        return self._function(name)

    def _function(self, name: str) -> Function:
        try:
            return self._functions[name]
        except KeyError:
            raise UnknownTask(f"no function was added as {name!r}") from None

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        """By the function's own `backoff`, else exponential."""
        return backoff_seconds(
            self._function(config.task).backoff,
            error,
            failures,
            base_seconds=self._base_seconds,
            cap_seconds=self._cap_seconds,
        )

    def secret(self, name: str, *, job_id: int, task: str) -> object:
        """There are none."""
        raise SecretUnavailable(f"plain functions have no secrets, and so none of the name {name!r}")

    def redactor(self) -> Redactor:
        """By the patterns that always hold."""
        return by_keys()

    def resource(self, name: str) -> Any:
        """There are none."""
        raise UnknownResource(f"plain functions have no resources, and so none of the name {name!r}")

    def encode_result(self, value: Any) -> str | None:
        """The JSON text of a result. Raises NotStorable."""
        return payload.encode_result(value, max_bytes=MAX_BYTES)

    def task_result(self, job_id: int) -> Any:
        """None: there is no Tasks API."""

    def complete_in_transaction(
        self, lease: Lease, worker_id: int, *, done: Callable[[], Done], committed: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """There is no database."""
        raise InTransaction("plain functions have no database in whose transaction a job could be completed")

    def after_job(self) -> None:
        """Nothing is left behind."""

    def after_thread(self) -> None:
        """Nothing is held."""

    def lane(self) -> Lane:
        """A new lane."""
        return PlainLane()
