"""The Django project as an executor sees it: its tasks, loaded and callable."""

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import connections, transaction
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.utils.module_loading import autodiscover_modules, import_string

from shiftboss import conf
from shiftboss.compat import Task
from shiftboss.queue import payload, registry
from shiftboss.queue.authority import System
from shiftboss.queue.backend import backend_of_the_record
from shiftboss.queue.contract import Lease
from shiftboss.queue.errors import InTransaction, SecretUnavailable, UnknownTask
from shiftboss.queue.outcomes import Done
from shiftboss.queue.redaction import Redactor
from shiftboss.queue.resources import Resource, resource
from shiftboss.queue.retry import backoff_seconds
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.ports import Handler, Lane
from shiftboss.queue.store.lease import complete_here
from shiftboss.queue.store.statement import run
from shiftboss.queue.tasks import config_of
from shiftboss.queue.typed import Typed


class TaskHandler:
    """One task of the project, ready to be called: a plain function in a thread, a coroutine function on the loop.

    A coroutine function with isolation `thread` or `process` goes through Django's own bridge, with an event loop
    to itself.
    """

    __slots__ = ("_typed", "call", "config", "function", "is_async", "takes_context")

    def __init__(self, task: Task, config: TaskConfig) -> None:
        coroutine = inspect.iscoroutinefunction(task.func)
        self.config = config
        self.takes_context: bool = task.takes_context
        self.is_async: bool = coroutine and config.isolation not in ("thread", "process")
        self.function: Callable[..., Any] = task.func
        self.call: Callable[..., Any] = task.call if coroutine and not self.is_async else task.func
        self._typed: Typed | None = None

    @property
    def typed(self) -> Typed:
        """The type hints of the function, read at its first run."""
        if self._typed is None:
            self._typed = Typed(self.function, takes_context=self.takes_context)
        return self._typed

    def arguments(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The stored arguments as the type hints want them. Raises InvalidArguments."""
        return self.typed.arguments(args, kwargs)

    def result(self, value: Any) -> Any:
        """The result as the type hint wants it. Raises InvalidResult."""
        return self.typed.result(value)


class DjangoLane:
    """A lane with a thread of its own for `sync_to_async`, and so with database connections of its own.

    Without it all coroutines of a process share one thread, and with that the transaction that one of them has
    left open. The thread, like its connections, is kept for the lane's next job.
    """

    def __init__(self, after_job: Callable[[], None]) -> None:
        self._after_job = after_job
        self._key = ThreadSensitiveContext()
        self._variables = Context()
        self._variables.run(SyncToAsync.thread_sensitive_context.set, self._key)

    def context(self) -> Context:
        """Only the lane's own variable is set."""
        return self._variables.copy()

    async def tidy(self) -> None:
        """As after a job in a thread, where the job has used the lane's."""
        if self._key in SyncToAsync.context_to_thread_executor:
            await sync_to_async(self._after_job)()

    def close(self) -> None:
        """End the lane's thread, and close its connections."""
        executor = SyncToAsync.context_to_thread_executor.pop(self._key, None)
        if executor is not None:
            executor.submit(connections.close_all)
            executor.shutdown(wait=False)


def secret_of(provider: str | None, name: str, *, job_id: int, task: str) -> object:
    """What the project's function says. Raises SecretUnavailable where there is none, and whatever it raises."""
    if provider is None:
        raise SecretUnavailable(
            f"there is nobody to give the secret {name!r}: set SHIFTBOSS['SECRET_PROVIDER'] to the dotted path of "
            "a function"
        )
    value: object = import_string(provider)(name, job_id=job_id, task=task)
    return value


def redactor_of(config: conf.Config) -> Redactor:
    """By SHIFTBOSS["REDACT_KEYS"] and ["REDACTOR"]. One that cannot be imported counts as one that raises."""
    path = config.redactor
    return Redactor(config.redact_keys, None if path is None else lambda text: import_string(path)(text))


_here = threading.local()
_inherited: list[Any] = []
"""What a forked process has from its parent: never let go of, for that would end it for the parent too."""


def forget_connections() -> None:
    """In a process that a handler has forked: leave its parent's database connections alone, and open own ones."""
    for connection in connections.all(initialized_only=True):
        pools = getattr(connection, "_connection_pools", {})
        _inherited.extend([connection, *pools.values()])
        pools.clear()
        del connections[connection.alias]


@receiver(connection_created)
def _connected(**_: Any) -> None:
    _here.never_connected = False


class DjangoHandlers:
    """`Handlers` over the installed apps. Tasks in an app's `tasks` module are found at start."""

    def __init__(self) -> None:
        autodiscover_modules("tasks")
        self._config = conf.get()
        self._redactor: Redactor | None = None

    def known(self) -> dict[str, str]:
        """Names of the tasks that are loaded; those whose name leads nowhere are left out."""
        found = {}
        for name in registry.known():
            with suppress(UnknownTask):
                found[name] = self.resolve(name).config.isolation
        return found

    def resolve(self, name: str, config: TaskConfig | None = None) -> Handler:
        """The task of this name, imported where need be. Raises UnknownTask."""
        task = registry.resolve(name)
        return TaskHandler(task, config or config_of(task, task.queue_name))

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        """By the task's `backoff`, else exponential by the settings. A function is the one that it has now."""
        own: Any = config.backoff
        if own == "function":
            own = getattr(registry.resolve(config.task), "backoff", None)
        return backoff_seconds(
            own,
            error,
            failures,
            base_seconds=self._config.backoff_seconds,
            cap_seconds=self._config.backoff_cap_seconds,
        )

    def secret(self, name: str, *, job_id: int, task: str) -> object:
        """What SHIFTBOSS["SECRET_PROVIDER"] says. Raises SecretUnavailable where it is not set."""
        return secret_of(self._config.secret_provider, name, job_id=job_id, task=task)

    def redactor(self) -> Redactor:
        """Made when something is to be hidden for the first time."""
        if self._redactor is None:
            self._redactor = redactor_of(self._config)
        return self._redactor

    def resource(self, name: str) -> Resource:
        """The resource that a module of this project has declared. Raises UnknownResource."""
        return resource(name)

    def encode_result(self, value: Any) -> str | None:
        """The JSON text of a result, within MAX_RESULT_BYTES. Raises NotStorable."""
        return payload.encode_result(value, max_bytes=self._config.max_result_bytes)

    def task_result(self, job_id: int) -> Any:
        """Django's TaskResult of a job that this project's own backend holds."""
        return backend_of_the_record().result_of(str(job_id), authority=System())

    @contextmanager
    def complete_in_transaction(
        self, lease: Lease, worker_id: int, *, done: Callable[[], Done], committed: Callable[[], None]
    ) -> Iterator[None]:
        """An `atomic()` on SHIFTBOSS["DATABASE"] that completes the job as its last statement."""
        alias = self._config.database
        connection = connections[alias]
        if connection.in_atomic_block or not connection.get_autocommit():
            raise InTransaction(
                "complete_in_transaction() has to commit by itself, and a transaction is open around it: leave "
                "the outer atomic() out; one inside of it is a savepoint"
            )
        with transaction.atomic(using=alias):
            # The first of its hooks: it runs when PostgreSQL has committed, whatever the user's own hooks do then.
            transaction.on_commit(committed, using=alias)
            yield
            run(complete_here(lease, done(), authority=System(), worker_id=worker_id), using=alias)

    def after_job(self) -> None:
        """Close connections of this thread that are broken, too old, or left outside autocommit or in a block."""
        if getattr(_here, "never_connected", False):
            return
        _here.never_connected = True
        for connection in connections.all(initialized_only=True):
            _here.never_connected = False
            if connection.in_atomic_block:
                connection.close()
                del connections[connection.alias]  # it would stay in its block
            else:
                connection.close_if_unusable_or_obsolete()
                # Looked at before the next job's first query, whatever CONN_HEALTH_CHECKS says: one the server
                # has ended meanwhile would be that job's failure, and after a restart one of every thread's.
                # (Django has the attribute, its type stubs have not.)
                connection.health_check_enabled = True  # type: ignore[attr-defined]

    def after_thread(self) -> None:
        """Close all connections of this thread."""
        connections.close_all()

    def lane(self) -> Lane:
        """A lane for coroutines: a thread for their synchronous calls."""
        return DjangoLane(self.after_job)
