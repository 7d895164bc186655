"""The executor: a process that runs handlers in threads, for a keeper at the other end of a socket pair.

It never talks to the record about its jobs. Its main thread alone reads and writes the socket; the other
threads take jobs, run them and leave outcomes.
"""

import ctypes
import inspect
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

from shiftboss.queue.contract import Claimed
from shiftboss.queue.errors import NotStorable, UnknownTask
from shiftboss.queue.payload import decode_arguments
from shiftboss.queue.runtime.board import ENDED, STARTED, SlotBoard
from shiftboss.queue.runtime.context import Cancelled, Cause, Context, Token
from shiftboss.queue.runtime.evidence import describe, storable
from shiftboss.queue.runtime.frames import Unpacker, pack
from shiftboss.queue.runtime.ports import Handler, Handlers
from shiftboss.queue.states import QuarantineReason

MAX_OUTCOMES = 1000
_PR_SET_PDEATHSIG = 1


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


class Executor:
    """`threads` threads that run jobs until the keeper says stop or goes away."""

    def __init__(
        self, *, sock: socket.socket, board: SlotBoard, handlers: Handlers, threads: int, margin_seconds: float
    ) -> None:
        self._sock = sock
        self._board = board
        self._handlers = handlers
        self._margin_seconds = margin_seconds
        self._threads = threads
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._outcomes: deque[list[Any]] = deque()
        self._tokens: dict[int, Token] = {}
        self._known: dict[str, Handler] = {}
        self._draining = False
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._woken = False

    def serve(self) -> None:
        """Say hello, then work until the socket closes or a stop is ordered."""
        for number in range(self._threads):
            threading.Thread(target=self._work, name=f"slot-{number}", daemon=True).start()
        self._send({"hello": os.getpid(), "known": sorted(self._handlers.known())})
        unpacker = Unpacker()
        while True:
            ready, _, _ = select.select([self._sock.fileno(), self._wake_reader], [], [])
            if self._wake_reader in ready:
                os.read(self._wake_reader, 64)
                self._flush()
            if self._sock.fileno() in ready:
                data = self._sock.recv(1 << 20)
                if not data:
                    return
                for message in unpacker.feed(data):
                    if self._obey(message):
                        self._flush()
                        return

    def _obey(self, message: dict[str, Any]) -> bool:
        for order in message.get("run", ()):
            self._orders.put(Order(*order))
        for ticket, cause in message.get("cancel", ()):
            if (token := self._tokens.get(ticket)) is not None:
                token.set(Cause(cause))
        if message.get("drain"):
            self._drain()
        if names := message.get("resolve"):
            self._send({"known": [name for name in names if self._can_resolve(name)]})
        return bool(message.get("stop"))

    def _drain(self) -> None:
        # Running handlers get their token; what has not started goes back as the threads come to it.
        self._draining = True
        for token in list(self._tokens.values()):
            token.set(Cause.SHUTDOWN)

    def _can_resolve(self, name: str) -> bool:
        try:
            self._handlers.resolve(name)
        except UnknownTask:
            return False
        return True

    def _send(self, message: dict[str, Any]) -> None:
        self._sock.sendall(pack(message))

    def _flush(self) -> None:
        self._woken = False
        while self._outcomes:
            batch = [self._outcomes.popleft() for _ in range(min(len(self._outcomes), MAX_OUTCOMES))]
            self._send({"outcomes": batch})

    def _work(self) -> None:
        while True:
            order = self._orders.get()
            outcome = self._run(order)
            self._board.mark(order.ticket, ENDED)
            self._outcomes.append(outcome)
            if not self._woken:
                self._woken = True
                os.write(self._wake_writer, b"!")

    def _run(self, order: Order) -> list[Any]:
        if self._draining:
            return ["released", order.ticket, "shutdown"]
        try:
            handler = self._handler(order.task)
        except UnknownTask as error:
            return ["not_here", order.ticket, storable(str(error), 1000)]
        self._board.mark(order.ticket, STARTED)
        token = self._tokens[order.ticket] = Token()
        try:
            return self._outcome(handler, order, token)
        finally:
            del self._tokens[order.ticket]
            self._handlers.after_job()

    def _outcome(self, handler: Handler, order: Order, token: Token) -> list[Any]:
        began = time.perf_counter()
        try:
            value = self._call(handler, order, token)
        except InvalidArguments as error:
            return ["quarantined", order.ticket, QuarantineReason.INVALID_ARGUMENTS, storable(str(error), 1000)]
        except Cancelled as error:
            # The handler ended because it was asked to: interrupted, not failed.
            return ["released", order.ticket, str(error.cause)]
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
            # Raised by the call itself (no frame of the handler's own): do the arguments fit?
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                _check_arguments(handler.call, args, kwargs)
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


class InvalidArguments(Exception):
    """The stored arguments do not fit the task's signature."""


def _check_arguments(call: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
    try:
        inspect.signature(call).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidArguments(f"the arguments do not fit the task: {error}") from None
    except ValueError:
        pass  # no signature to be had


def die_with_parent(parent: int) -> None:
    """Ask the kernel (Linux) for SIGKILL when the parent ends; exit at once if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(orders: str, handlers: Callable[[], Handlers]) -> None:
    """An executor's life. `orders` is the JSON text that the keeper passes on the command line."""
    given = json.loads(orders)
    die_with_parent(given["keeper"])
    # Stop signals are the keeper's business. Python handlers, unlike SIG_IGN, are not passed on to children.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    sock = socket.socket(fileno=given["socket"])
    executor = Executor(
        sock=sock,
        board=SlotBoard(given["board"]),
        handlers=handlers(),
        threads=given["threads"],
        margin_seconds=given["margin_seconds"],
    )
    executor.serve()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that still run a handler must not hold up the end
