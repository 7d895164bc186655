"""The Django project as an executor sees it: its tasks, loaded and callable."""

import inspect
from collections.abc import Callable
from typing import Any

from django.db import connections
from django.utils.module_loading import autodiscover_modules

from shiftboss import conf
from shiftboss.compat import Task
from shiftboss.queue import payload, registry
from shiftboss.queue.authority import System
from shiftboss.queue.backend import backend_of_the_record
from shiftboss.queue.retry import backoff_seconds
from shiftboss.queue.runtime.ports import Handler


class TaskHandler:
    """One task of the project, ready to be called in a thread."""

    __slots__ = ("call", "function", "takes_context")

    def __init__(self, task: Task) -> None:
        self.takes_context: bool = task.takes_context
        # A coroutine function goes through Django's own bridge; a plain one is called without detour.
        self.function: Callable[..., Any] = task.func
        self.call: Callable[..., Any] = task.call if inspect.iscoroutinefunction(task.func) else task.func


class DjangoHandlers:
    """`Handlers` over the installed apps. Tasks in an app's `tasks` module are found at start."""

    def __init__(self) -> None:
        autodiscover_modules("tasks")
        self._config = conf.get()

    def known(self) -> frozenset[str]:
        """Names of the tasks that are loaded."""
        return registry.known()

    def resolve(self, name: str) -> Handler:
        """The task of this name, imported where need be. Raises UnknownTask."""
        return TaskHandler(registry.resolve(name))

    def backoff_seconds(self, name: str, error: BaseException, failures: int) -> float:
        """By the task's own `backoff`, else exponential by the settings."""
        return backoff_seconds(
            getattr(registry.resolve(name), "backoff", None),
            error,
            failures,
            base_seconds=self._config.backoff_seconds,
            cap_seconds=self._config.backoff_cap_seconds,
        )

    def encode_result(self, value: Any) -> str | None:
        """The JSON text of a result, within MAX_RESULT_BYTES. Raises NotStorable."""
        return payload.encode_result(value, max_bytes=self._config.max_result_bytes)

    def task_result(self, job_id: int) -> Any:
        """Django's TaskResult of a job that this project's own backend holds."""
        return backend_of_the_record().result_of(str(job_id), authority=System())

    def after_job(self) -> None:
        """Close connections of this thread that are broken, too old, or left outside autocommit."""
        for connection in connections.all(initialized_only=True):
            connection.close_if_unusable_or_obsolete()
