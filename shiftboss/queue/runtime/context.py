"""What a handler gets that asks for it (`takes_context=True`)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shiftboss.queue.errors import ShiftbossError
from shiftboss.queue.runtime.ports import Clock, boot_clock


class Cause(StrEnum):
    """Why a run should end."""

    USER = "user"
    TIMEOUT = "timeout"
    SUPERSEDED = "superseded"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


class Cancelled(ShiftbossError):
    """Raised by `context.raise_if_cancelled()`; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(f"the run was asked to end: {cause}")
        self.cause = cause


@dataclass(slots=True)
class Token:
    """A cancellation token. The first cause wins; only the runtime sets it."""

    cause: Cause | None = None

    def set(self, cause: Cause) -> None:
        """Ask for the run's end, unless that has been done already."""
        if self.cause is None:
            self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A handler's view of its own run: bounded, and safe to use from any thread.

    `attempt` counts from 1: failures and losses before this run, plus one. `fence` is the number of the claim
    (0 in a local run without a queue).
    """

    job_id: int
    fence: int
    attempt: int
    token: Token = field(default_factory=Token)
    _expires_at: Callable[[], float] = field(default=lambda: float("inf"))
    _margin_seconds: float = 0.0
    _clock: Clock = boot_clock
    _task_result: Callable[[int], Any] | None = None

    @property
    def ends_at(self) -> float:
        """When the lease runs out unless it is renewed, in seconds of the boot-time clock."""
        return self._expires_at()

    @property
    def cancelled(self) -> Cause | None:
        """Why the run should end, or None while it may go on. Cheap: poll it as often as you like."""
        if self.token.cause is None and self._clock() >= self._expires_at() - self._margin_seconds:
            self.token.set(Cause.LEASE_LOST)
        return self.token.cause

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled where the run should end."""
        if (cause := self.cancelled) is not None:
            raise Cancelled(cause)

    @property
    def task_result(self) -> Any:
        """Django's TaskResult of this job, read anew; None in a local run."""
        return self._task_result(self.job_id) if self._task_result is not None else None
