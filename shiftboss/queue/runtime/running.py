"""One order, from its arguments to its outcome. Whatever a handler does, an outcome comes out."""

import inspect
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from shiftboss.queue.contract import Claimed
from shiftboss.queue.errors import NotStorable, UnknownTask
from shiftboss.queue.payload import decode_arguments
from shiftboss.queue.runtime.board import STARTED, SlotBoard
from shiftboss.queue.runtime.context import Cancelled, Cause, Context, Token
from shiftboss.queue.runtime.evidence import describe, storable
from shiftboss.queue.runtime.ports import Handler, Handlers
from shiftboss.queue.states import QuarantineReason

LAST_RESORT_SECONDS = 60.0
"""The backoff of a failure whose own backoff could not be had."""


class Order(NamedTuple):
    """A job as it crosses the socket. `args` is JSON text; `ticket` is its place on the slot board."""

    ticket: int
    job_id: int
    fence: int
    task: str
    args: str
    failures: int
    losses: int

    @classmethod
    def of(cls, ticket: int, job: Claimed) -> "Order":
        """The order for a claimed job."""
        return cls(ticket, job.id, job.fence, job.task, job.args, job.failures, job.losses)


class InvalidArguments(Exception):
    """The stored arguments do not fit the task's signature."""


class Runner:
    """Runs orders, in as many threads at once as its executor likes. An outcome is a list: kind, ticket, facts."""

    def __init__(self, *, handlers: Handlers, board: SlotBoard, margin_seconds: float) -> None:
        self._handlers = handlers
        self._board = board
        self._margin_seconds = margin_seconds
        self._known: dict[str, Handler] = {}
        self._tokens: dict[int, Token] = {}
        self._draining = False

    def cancel(self, ticket: int, cause: Cause) -> None:
        """Set the token of a running order."""
        if (token := self._tokens.get(ticket)) is not None:
            token.set(cause)

    def drain(self) -> None:
        """Running handlers get their token; from now on orders are given back instead of started."""
        self._draining = True
        for token in list(self._tokens.values()):
            token.set(Cause.SHUTDOWN)

    def run(self, order: Order) -> list[Any]:
        """Run one order; its outcome. Never raises."""
        if self._draining:
            return ["released", order.ticket, "shutdown"]
        began = time.perf_counter()
        try:
            return self._run(order)
        except BaseException as error:
            # The user's code again, where nobody expects it: in an exception's text, in a result being encoded.
            kind = type(error).__name__
            return [
                "failed",
                order.ticket,
                "executor_error",
                kind,
                f"the run ended in a {kind} outside of its handler",
                f"executor_error:{kind}"[:100],
                "",
                LAST_RESORT_SECONDS,
                time.perf_counter() - began,
            ]
        finally:
            self._tokens.pop(order.ticket, None)
            self._tidy()

    def _tidy(self) -> None:
        try:
            self._handlers.after_job()
        except BaseException:
            return  # the next job's own use of the connection will tell

    def _run(self, order: Order) -> list[Any]:
        try:
            handler = self._handler(order.task)
        except UnknownTask as error:
            return ["not_here", order.ticket, storable(str(error), 1000)]
        self._board.mark(order.ticket, STARTED)
        token = self._tokens[order.ticket] = Token()
        if self._draining:
            token.set(Cause.SHUTDOWN)
        began = time.perf_counter()
        try:
            value = self._call(handler, order, token)
        except InvalidArguments as error:
            return ["quarantined", order.ticket, QuarantineReason.INVALID_ARGUMENTS, storable(str(error), 1000)]
        except Cancelled as error:
            # The handler ended because it was asked to: interrupted, not failed.
            return ["released", order.ticket, storable(str(error.cause), 100)]
        except BaseException as error:
            # SystemExit and KeyboardInterrupt too: a handler must not be able to end the executor.
            return self._failure(order, error, time.perf_counter() - began)
        seconds = time.perf_counter() - began
        try:
            return ["done", order.ticket, self._handlers.encode_result(value), seconds]
        except NotStorable as error:
            return self._failure(order, error, seconds, code="result_not_storable")

    def _handler(self, name: str) -> Handler:
        if (handler := self._known.get(name)) is None:
            handler = self._known[name] = self._handlers.resolve(name)
        return handler

    def _call(self, handler: Handler, order: Order, token: Token) -> Any:
        args, kwargs = decode_arguments(order.args)
        if handler.takes_context:
            args = [self._context(order, token), *args]
        try:
            return handler.call(*args, **kwargs)
        except TypeError as error:
            if not _entered(handler.function, error):
                _check_arguments(handler.function, args, kwargs)
            raise

    def _context(self, order: Order, token: Token) -> Context:
        return Context(
            job_id=order.job_id,
            fence=order.fence,
            attempt=order.failures + order.losses + 1,
            token=token,
            _expires_at=lambda: self._board.expiry(order.ticket),
            _margin_seconds=2 * self._margin_seconds,
            _task_result=self._handlers.task_result,
        )

    def _failure(
        self, order: Order, error: BaseException, seconds: float, *, code: str = "handler_raised"
    ) -> list[Any]:
        evidence = describe(error, skip_frames=2)
        wait = self._handlers.backoff_seconds(order.task, error, order.failures + 1)
        return [
            "failed",
            order.ticket,
            code,
            evidence.type,
            evidence.message,
            evidence.fingerprint,
            evidence.traceback,
            wait,
            seconds,
        ]


def _entered(function: Callable[..., Any], error: BaseException) -> bool:
    """Whether the error came from within the function, and not from the attempt to call it."""
    if not isinstance(function, FunctionType):
        return True
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is function.__code__:
            return True
        trace = trace.tb_next
    return False


def _check_arguments(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidArguments(f"the arguments do not fit the task: {error}") from None
    except ValueError:
        pass  # no signature to be had
