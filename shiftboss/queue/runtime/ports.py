"""What the runtime asks of the world around it."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any, Protocol

from shiftboss.queue.contract import (
    Claimed,
    Heartbeat,
    Known,
    Lease,
    Mark,
    Note,
    Registration,
    Settlement,
    WorkerStatus,
)
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Quarantined, Released, Snoozed
from shiftboss.queue.redaction import Redactor
from shiftboss.queue.resources import Resource
from shiftboss.queue.revision import TaskConfig

CANCEL = "cancel"
"""The order to a worker to look at once whose end has been asked for."""

DRAIN = "drain"
"""The order to a worker to stop as on SIGTERM: its jobs may finish within `drain_seconds`."""

STOP = "stop"
"""The order to a worker to stop as on a second SIGTERM: its jobs are given back now."""


class QueueClient(Protocol):
    """A worker's way to the record. Every call raises StoreUnavailable while the record cannot be reached."""

    async def open(self) -> None:
        """Connect. Raises SchemaTooOld or UnsupportedDatabase where this version cannot work there."""

    async def close(self) -> None:
        """Let go of all connections."""

    async def register(self, registration: Registration, tasks: Sequence[str]) -> int:
        """Announce the worker; later calls are made in the name of the id that comes back."""

    async def worker_heartbeat(self, status: WorkerStatus) -> Known | None:
        """Say that the worker lives, and hear what is ordered of it; None where the record no longer knows it."""

    async def claim(self, queue: str, tasks: Sequence[str], limit: int, after: Mark | None) -> list[Claimed]:
        """Lease available jobs of a queue in the order in which they are to run."""

    async def heartbeat(self, leases: Sequence[Lease]) -> Heartbeat:
        """Prolong leases, and learn whose end has been asked for."""

    async def note(self, items: Sequence[tuple[Lease, Note]]) -> Settlement:
        """Keep what running handlers tell, in the order given; of a job's progress the last counts."""

    async def revisions(self, revisions: Sequence[int]) -> dict[int, str]:
        """The configurations (JSON texts of `TaskConfig`) behind these revisions, as far as they are known."""

    async def complete(self, items: Sequence[tuple[Lease, Done]]) -> Settlement:
        """Finish jobs."""

    async def fail(self, items: Sequence[tuple[Lease, Failed]]) -> Settlement:
        """Count failures."""

    async def release(self, items: Sequence[tuple[Lease, Released]]) -> Settlement:
        """Give jobs back unharmed; one whose end has been asked for ends with that."""

    async def snooze(self, items: Sequence[tuple[Lease, Snoozed]]) -> Settlement:
        """Put jobs off, as their handlers asked."""

    async def discard(self, items: Sequence[tuple[Lease, Discarded]]) -> Settlement:
        """Give jobs up for good, as their handlers asked."""

    async def quarantine(self, items: Sequence[tuple[Lease, Quarantined]]) -> Settlement:
        """Hold back jobs that cannot run at all."""

    async def reap_own(self, items: Sequence[tuple[Lease, Lost]]) -> Settlement:
        """Settle what a dead executor had in hand."""

    async def stage(self) -> int:
        """Cancel jobs that wait past their deadline and make due ones available; answers for how many."""

    async def reap(self) -> int:
        """Take jobs from expired leases."""

    async def waiting_tasks(self, tasks: Sequence[str]) -> list[str]:
        """Tasks that wait in the worker's queues and are not among `tasks`."""


class Wakeups(Protocol):
    """Hints that work, or an order to this worker, may be there.

    Losing one costs the time of a poll or of a heartbeat, never a job.
    """

    async def listen(
        self, worker_id: int, *, woken: Callable[[str | None, int], None], ordered: Callable[[str], None]
    ) -> None:
        """Hand on what is heard, reconnecting by itself, until cancelled.

        `woken(queue, priority)` for each hint; `woken(None, 0)` says that hints may have been missed: any queue
        may hold something new. `ordered(word)` for each order to this worker, such as `CANCEL`, and once where
        orders may have been missed; words may be unknown.
        """


class Handler(Protocol):
    """A task as an executor runs it, by the configuration `config`.

    Where `is_async`, `call` gives a coroutine, for the executor's event loop.
    """

    config: TaskConfig
    takes_context: bool
    is_async: bool
    call: Callable[..., Any]
    function: Callable[..., Any]  # the user's own, whose signature counts

    def arguments(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The stored arguments as the function wants them. Raises InvalidArguments."""

    def result(self, value: Any) -> Any:
        """What the function has returned, as it is to be stored. Raises InvalidResult."""


class Lane(Protocol):
    """Where coroutine jobs run, one at a time: what two of them must not share. Used on the loop's thread only."""

    def context(self) -> Context:
        """Fresh context variables for a job: what it sets is gone with it."""

    async def tidy(self) -> None:
        """Tidy up after a job; called in a `context()`."""

    def close(self) -> None:
        """Let go of what it holds: no job comes any more, and the process goes on."""


class Handlers(Protocol):
    """What the host application gives an executor: its tasks."""

    def known(self) -> dict[str, str]:
        """Names of the tasks that are loaded, each with the isolation that it has now."""

    def resolve(self, name: str, config: TaskConfig | None = None) -> Handler:
        """The task of this name, by this configuration or by its present one. Raises UnknownTask."""

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        """What a retry waits after this failure (counted from 1)."""

    def secret(self, name: str, *, job_id: int, task: str) -> object:
        """The value of a secret, for this job. Raises SecretUnavailable, and what the provider raises."""

    def redactor(self) -> Redactor:
        """What takes out of texts what nobody is to see."""

    def resource(self, name: str) -> Resource:
        """The resource of this name. Raises UnknownResource."""

    def encode_result(self, value: Any) -> str | None:
        """The JSON text of a result. Raises NotStorable."""

    def task_result(self, job_id: int) -> Any:
        """Django's TaskResult of a job, read anew."""

    def complete_in_transaction(
        self, lease: Lease, worker_id: int, *, done: Callable[[], Done], committed: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """A transaction on the record's database, for a body whose last statement completes the job.

        `done()` is asked after the body, `committed()` is called once the commit is certain. Raises LeaseLost
        where the job is no longer this worker's, InTransaction where another transaction is open around it.
        """

    def after_job(self) -> None:
        """Tidy up in the thread that ran a job: database connections and the like."""

    def after_thread(self) -> None:
        """Let go of what this thread holds: it has run jobs, and ends before its process does."""

    def lane(self) -> Lane:
        """A new lane for coroutine jobs."""


class Clock(Protocol):
    """Seconds that go on while the machine sleeps, alike in all processes of a host."""

    def __call__(self) -> float:
        """Now."""


def boot_clock() -> float:
    """The host's boot-time clock in seconds; the monotonic one where there is no boot-time clock."""
    return time.clock_gettime(_BOOT_CLOCK)


_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
