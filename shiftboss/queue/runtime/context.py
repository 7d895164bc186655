"""What a handler gets that asks for it (`takes_context=True`)."""

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from threading import Lock
from typing import Any, NoReturn

from shiftboss.queue.errors import ShiftbossError
from shiftboss.queue.redaction import Redactor, by_keys
from shiftboss.queue.runtime.notes import MAX_NAME_CHARACTERS, Checkpoint, Telling, event_text, progress_text
from shiftboss.queue.runtime.ports import Clock, boot_clock
from shiftboss.queue.runtime.secrets import Secrets

LONGEST_SNOOZE_SECONDS = 10 * 365 * 24 * 3600.0
"""No job is put off for longer, whatever a handler asks for: PostgreSQL's make_interval overflows silently."""


class Cause(StrEnum):
    """Why a run should end. A cause of another version reads as the user's wish."""

    USER = "user"
    TIMEOUT = "timeout"
    SUPERSEDED = "superseded"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"

    @classmethod
    def _missing_(cls, value: object) -> "Cause":
        return cls.USER


class Cancelled(ShiftbossError):
    """Raised by `context.raise_if_cancelled()`; `cause` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(f"the run was asked to end: {cause}")
        self.cause = cause


class Ending(BaseException):
    """How a handler ends its own run without a result: `Snooze` or `Discard`.

    Not an `Exception`, so that a broad `except Exception` in the handler lets it pass. A cancellation that is
    swallowed comes again with the next `raise_if_cancelled()`; a decision of the handler's own would be lost.
    """


class Snooze(Ending):
    """Raised by `context.snooze()`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the handler asked to run again in {seconds:g} seconds")
        self.seconds = seconds


class Discard(Ending):
    """Raised by `context.discard()`."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the handler gave the job up: {reason}")
        self.reason = reason


_first = Lock()


class Token:
    """A cancellation token. The first cause wins, whichever thread it comes from; only the runtime sets it."""

    __slots__ = ("cause",)

    def __init__(self) -> None:
        self.cause: Cause | None = None

    def set(self, cause: Cause) -> None:
        """Ask for the run's end, unless that has been done already."""
        with _first:
            if self.cause is None:
                self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A handler's view of its own run: bounded, and safe to use from any thread and any coroutine.

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
    _telling: Telling | None = None
    _checkpoint: Checkpoint = field(default_factory=Checkpoint)
    _secrets: Secrets = field(default_factory=Secrets)
    _redactor: Callable[[], Redactor] = by_keys
    _resource: Callable[[], Any] = field(default=lambda: None)
    _complete: Callable[[Any], AbstractContextManager[None]] | None = None

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

    def progress(self, value: Any, total: float | None = None, message: str | None = None) -> None:
        """Say how far the run is: `progress(3, total=10, message="pages")`, or a dict with whatever tells it.

        The one way to write a job's progress: each call replaces the last as a whole. At most 4 kB as JSON, of
        numbers from 0 on and texts, or of a dict of what arguments of tasks may hold. It returns at once, and at
        most one word a second goes to the record, and the last. Raises TypeError, ValueError, NotStorable.
        """
        text = progress_text(value, total, message)
        if self._telling is not None:
            self._telling.progress(self._visible(text))

    def event(self, name: str, /, **data: Any) -> None:
        """Tell of something that happened: `event("page_imported", number=7)`. It returns at once.

        Events are kept with the job, numbered in their order. A name of at most 100 characters, data of at most
        4 kB as JSON; 200 events of a run are kept, those after them are counted, and the count is told in one
        last event `events_dropped`. Raises TypeError, ValueError, NotStorable.
        """
        text = event_text(name, data)
        if self._telling is not None:
            name = self._redactor().text(self._secrets.hidden(name))
            self._telling.event(name[:MAX_NAME_CHARACTERS], self._visible(text))

    def _visible(self, text: str) -> str:
        return self._redactor().json_text(self._secrets.hidden_in_json(text))

    @property
    def checkpoint(self) -> Checkpoint:
        """Where an earlier attempt left off (`checkpoint.data`), and where the next one is to go on
        (`checkpoint.save(…)`)."""
        return self._checkpoint

    @property
    def secrets(self) -> Secrets:
        """The secrets that the task lists: `secrets["name"].reveal()`, in a coroutine
        `(await secrets.aget("name")).reveal()`."""
        return self._secrets

    @property
    def resource(self) -> Any:
        """What the job is lent, where its task has the option `resource`: see `shiftboss.Resource`; else None."""
        return self._resource()

    def snooze(self, seconds: float | timedelta) -> NoReturn:
        """End this run, and let the job run again so much later; nothing is counted.

        It does not return: it raises `Snooze`, which `except Exception` lets pass, so that open transactions are
        rolled back and `finally` blocks run. At most ten years (a longer time is cut to that). Raises TypeError
        where `seconds` is no number or timedelta, ValueError where it is negative or not finite.
        """
        raise Snooze(_snooze_seconds(seconds))

    def discard(self, reason: str) -> NoReturn:
        """End this run and the job with it, for good: state `discarded`, no retry. `reason` is for people.

        It does not return: it raises `Discard`, as `snooze` does. Raises TypeError where the reason is no text,
        ValueError where it is empty.
        """
        if not isinstance(reason, str):
            raise TypeError(f"discard() takes the reason as text, not {type(reason).__name__}")
        if not reason.strip():
            raise ValueError("discard() needs a reason: it is all that is left to say why the job was not done")
        raise Discard(reason)

    def complete_in_transaction(self, result: Any = None) -> AbstractContextManager[None]:
        """Complete the job together with what the block writes: all of it is committed, once, or nothing.

            with context.complete_in_transaction({"sent": 3}):
                Receipt.objects.create(order_id=order_id)

        The block is an `atomic()` on the record's database; its last statement completes the job under its lease.
        Whoever has lost the lease gets LeaseLost there, and like any exception of the block it rolls all back; the
        run has failed then. After the block the job is completed with `result`: what the handler returns is
        ignored, what it raises is logged and undoes nothing. In a local run there is no job to complete, and no
        transaction.

        Raises InTransaction inside another transaction, NotStorable for a result that cannot be stored, LeaseLost
        in a run that has completed its job already, and RuntimeError in a coroutine: there call a function with
        the block by `sync_to_async`.
        """
        if _in_a_coroutine():
            raise RuntimeError(
                "complete_in_transaction() writes by Django's synchronous connection: put the block into a "
                "function and call that with `await sync_to_async(function)()`"
            )
        return self._complete(result) if self._complete is not None else nullcontext()

    @property
    def task_result(self) -> Any:
        """Django's TaskResult of this job, read anew; None in a local run. It reads by the ORM: in a coroutine
        use `await sync_to_async(lambda: context.task_result)()`."""
        return self._task_result(self.job_id) if self._task_result is not None else None


def _in_a_coroutine() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _snooze_seconds(given: Any) -> float:
    if isinstance(given, timedelta):
        given = given.total_seconds()
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"snooze() takes seconds or a timedelta, not {type(given).__name__}")
    if not given >= 0 or given == math.inf:
        raise ValueError(f"snooze() takes a finite number of seconds from 0 on, not {given!r}")
    return float(min(given, LONGEST_SNOOZE_SECONDS))
