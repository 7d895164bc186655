"""One order, from its arguments to its outcome. Whatever a handler does, an outcome comes out."""

import inspect
import json
import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, NoReturn
from weakref import ref

from shiftboss.queue.contract import Claimed, Lease
from shiftboss.queue.errors import InvalidArguments, InvalidResult, LeaseLost, NotStorable, UnknownTask
from shiftboss.queue.outcomes import Done
from shiftboss.queue.payload import args_digest, decode_arguments
from shiftboss.queue.redaction import Redactor, by_keys
from shiftboss.queue.revision import SOLO, TaskConfig
from shiftboss.queue.runtime import usage
from shiftboss.queue.runtime.board import ENDED, SlotBoard
from shiftboss.queue.runtime.context import Cancelled, Cause, Context, Discard, Snooze, Token
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.evidence import describe, storable
from shiftboss.queue.runtime.notes import Checkpoint, Teller, Telling
from shiftboss.queue.runtime.output import CURRENT, MAX_OUTPUT, Tail
from shiftboss.queue.runtime.ports import Handler, Handlers, boot_clock
from shiftboss.queue.runtime.resources import LENDING, Pools, ResourceFailed
from shiftboss.queue.runtime.said import milliseconds
from shiftboss.queue.runtime.secrets import Secrets
from shiftboss.queue.states import QuarantineReason

log = logging.getLogger("shiftboss.executor")

HOST = socket.gethostname()

LAST_RESORT_SECONDS = 60.0
"""The backoff of a failure whose own backoff could not be had."""


class Order(NamedTuple):
    """A job to be run. `args` and `checkpoint` are JSON texts; `ticket` is its place on the slot board;
    `worker_id` is whose lease it is.
    """

    ticket: int
    job_id: int
    fence: int
    task: str
    args: str
    failures: int
    losses: int
    worker_id: int = 0
    revision_id: int | None = None
    checkpoint: str | None = None

    @classmethod
    def of(cls, ticket: int, job: Claimed, *, worker_id: int = 0) -> "Order":
        """The order for a job that this worker has claimed."""
        own = job.failures, job.losses, worker_id, job.revision_id, job.checkpoint
        return cls(ticket, job.id, job.fence, job.task, job.args, *own)


def packed(jobs: Iterable[tuple[int, Claimed, int]]) -> list[list[Any]]:
    """Orders as they cross the socket, from tickets, jobs and worker ids: what neighbours share is said once."""
    groups: list[list[Any]] = []
    shared: tuple[Any, ...] | None = None
    for ticket, job, worker_id in jobs:
        if (own := (job.task, worker_id, job.revision_id)) != shared:
            shared = own
            groups.append([*shared, []])
        orders = groups[-1][-1]
        orders.append([ticket, job.id, job.fence, job.args, job.failures, job.losses, job.checkpoint])
    return groups


def unpacked(groups: Iterable[list[Any]]) -> Iterator[Order]:
    """The orders that `packed` has made a message of."""
    for task, worker_id, revision_id, own in groups:
        for ticket, job_id, fence, args, failures, losses, checkpoint in own:
            yield Order(ticket, job_id, fence, task, args, failures, losses, worker_id, revision_id, checkpoint)


class Run:
    """An order in the executor's hands."""

    started = False
    began = 0.0
    # Most runs never have any of these.
    _telling: Telling | None = None
    resource: Any = None
    secrets: Secrets | None = None
    settled = False
    refused: NotStorable | None = None
    cpu: float | None = None
    _output: Tail | None = None

    def __init__(self, order: Order, teller: Teller, redactor: Callable[[], Redactor]) -> None:
        self.order = order
        self._teller = teller
        self._redactor = redactor
        self.token = Token()

    @property
    def seconds(self) -> float:
        """Since the handler's start; 0 where it has not come to that."""
        return time.perf_counter() - self.began if self.started else 0.0

    def hidden(self, text: str) -> str:
        """The text as it may be seen, without the values of secrets that this run was given, and without what the
        project's rules hide: to be asked before a text is cut.
        """
        return self._redactor().text(text if self.secrets is None else self.secrets.hidden(text))

    def storable(self, text: str, longest: int) -> str:
        """The handler's text as it may be kept."""
        return storable(self.hidden(text), longest)

    def settle(self) -> None:
        """The handler's own transaction has completed the job: nothing that comes now can change that."""
        self.settled = True
        self.telling.settled()

    @property
    def telling(self) -> Telling:
        """What it tells; made when that is first asked for."""
        if self._telling is None:
            self._telling = self._teller.open(self.order.ticket)
        return self._telling

    def wrote(self, text: str) -> None:
        """Keep what the handler has written, as far as it is among its last words."""
        if self._output is None:
            self._output = Tail()
        self._output.add(text)

    def evidence(self, *, own: bool) -> str:
        """What is known of the attempt beside its error, as JSON. `own`: the process has no other run."""
        with suppress(Exception):
            sys.stdout.flush()
        told: dict[str, Any] = {
            "host": HOST,
            "pid": os.getpid(),
            "args_sha256": args_digest(self.order.args),
            **usage.told(self.cpu, own=own),
        }
        if self._output is not None:
            told["output"] = self.storable(str(self._output), MAX_OUTPUT)
        return json.dumps(told, ensure_ascii=False)

    def close(self) -> None:
        """It has ended, and tells nothing any more."""
        if self._telling is not None:
            self._telling.close()


class Runner:
    """Runs orders, in as many threads at once as its executor likes; coroutines on the executor's loop.

    `deliver` gets exactly one outcome for each run that was taken, a list: kind, ticket, facts. A run is begun or
    given back, never both: it is the lock that decides.
    """

    def __init__(
        self,
        *,
        handlers: Handlers,
        board: SlotBoard,
        margin_seconds: float,
        coroutines: Coroutines,
        teller: Teller,
        pools: Pools,
        deliver: Callable[[list[Any]], None],
        redactor: Callable[[], Redactor] = by_keys,
    ) -> None:
        self._handlers = handlers
        self._board = board
        self._margin_seconds = margin_seconds
        self._coroutines = coroutines
        self._teller = teller
        self._pools = pools
        self._deliver = deliver
        self._redactor = redactor
        self._known: dict[tuple[str, int | None], Handler] = {}
        self._revisions: dict[int, TaskConfig] = {}
        self._runs: dict[int, Run] = {}
        self._lock = threading.Lock()
        self._draining = False
        self.forked = False  # this is a copy, in a process that a handler has forked
        _when_forked(self)

    def revise(self, revisions: Mapping[str, str]) -> None:
        """Take in configurations (JSON texts by number): each comes once, before the first order that names it."""
        for number, text in revisions.items():
            self._revisions[int(number)] = TaskConfig.from_json(text)

    def take(self, order: Order) -> Run:
        """An order has come in: to be run."""
        run = self._runs[order.ticket] = Run(order, self._teller, self._redactor)
        if self._draining:
            self.cancel(order.ticket, Cause.SHUTDOWN)
        return run

    def cancel(self, ticket: int, cause: str) -> None:
        """Give an order back that has not begun; else set its token."""
        with self._lock:
            run = self._runs.get(ticket)
            if run is None:
                return
            if not run.started:
                del self._runs[ticket]
        if run.settled and cause == Cause.LEASE_LOST:
            return  # it has given it up itself
        if run.started:
            run.token.set(Cause(cause))
        else:
            self._deliver(["released", ticket, storable(cause, 100)])

    def drain(self) -> None:
        """Running handlers get their token; orders that have not begun, now or later, are given back."""
        self._draining = True
        for ticket in list(self._runs):
            self.cancel(ticket, Cause.SHUTDOWN)

    def give_back(self) -> None:
        """Orders that have not begun are given back; what runs goes on undisturbed."""
        with self._lock:
            tickets = [ticket for ticket, run in self._runs.items() if not run.started]
            for ticket in tickets:
                del self._runs[ticket]
        for ticket in tickets:
            self._deliver(["released", ticket, "not_started"])

    def run(self, run: Run) -> None:
        """Run one order, to its end or until it is given back. Never raises."""
        try:
            handler = self._handler(run.order)
            if handler.is_async:
                self._coroutines.run(partial(self._in_loop, run, handler))
                # Somebody has cancelled the task before its first step.
                self._end(run, ["released", run.order.ticket, "not_started"])
            else:
                self._in_thread(run, handler)
        except UnknownTask as error:
            self._end(run, ["not_here", run.order.ticket, run.storable(str(error), 1000)])
        except BaseException as error:
            self._end(run, _executor_error(run, error))

    def _in_thread(self, run: Run, handler: Handler) -> None:
        if not self._begin(run):
            return
        run.cpu = usage.begin_alone() if handler.config.isolation == SOLO else usage.thread_seconds(run.began)
        try:
            try:
                # Context variables that a handler sets are gone with it.
                if handler.config.resource is None:
                    value = copy_context().run(self._call, handler, run)
                else:
                    with self._lent(handler.config.resource, run) as run.resource:
                        value = copy_context().run(self._call, handler, run)
            except BaseException as error:
                outcome = self._raised(run, error)
            else:
                outcome = self._returned(run, handler, value)
        except BaseException as error:
            outcome = _executor_error(run, error)
        self._tidy()
        self._end(run, outcome)

    async def _in_loop(self, run: Run, handler: Handler) -> None:
        if not self._begin(run):
            return
        try:
            try:
                if handler.config.resource is None:
                    value = await self._call(handler, run)
                else:
                    async with self._lent(handler.config.resource, run) as run.resource:
                        value = await self._call(handler, run)
            except BaseException as error:
                outcome = self._raised(run, error)
            else:
                outcome = self._returned(run, handler, value)
        except BaseException as error:
            outcome = _executor_error(run, error)
        self._end(run, outcome)

    def _begin(self, run: Run) -> bool:
        """The real start; False where the run has been given back."""
        with self._lock:
            if self._runs.get(run.order.ticket) is not run:
                return False
            self._board.begin(run.order.ticket, boot_clock())
            run.began = time.perf_counter()
            run.started = True
        return True

    def _end(self, run: Run, outcome: list[Any]) -> None:
        with self._lock:
            if self._runs.get(run.order.ticket) is not run:
                return
            del self._runs[run.order.ticket]
        if run.started:
            self._board.mark(run.order.ticket, ENDED)
        run.close()
        self._deliver(outcome)

    def _tidy(self) -> None:
        try:
            self._handlers.after_job()
        except BaseException:
            return  # the next job's own use of the connection will tell

    def _handler(self, order: Order) -> Handler:
        config = None if order.revision_id is None else self._revisions.get(order.revision_id)
        wanted = order.task, None if config is None else order.revision_id
        if (handler := self._known.get(wanted)) is None:
            handler = self._known[wanted] = self._handlers.resolve(order.task, config)
        return handler

    def _call(self, handler: Handler, run: Run) -> Any:
        CURRENT.set(run)
        args, kwargs = handler.arguments(*decode_arguments(run.order.args))
        if handler.takes_context:
            args = [self._context(run), *args]
        try:
            return handler.call(*args, **kwargs)
        except TypeError as error:
            if not _entered(handler.function, error):
                _check_arguments(handler.function, args, kwargs)
            raise

    def _context(self, run: Run) -> Context:
        order = run.order
        return Context(
            job_id=order.job_id,
            fence=order.fence,
            attempt=order.failures + order.losses + 1,
            token=run.token,
            _expires_at=lambda: self._board.expiry(order.ticket),
            _margin_seconds=2 * self._margin_seconds,
            _task_result=self._handlers.task_result,
            _telling=run.telling,
            _secrets=self._secrets(run),
            _redactor=self._redactor,
            _resource=lambda: run.resource,
            _checkpoint=Checkpoint(order.checkpoint, run.telling, partial(self._is_lost, run)),
            _complete=partial(self._complete, run),
        )

    @contextmanager
    def _complete(self, run: Run, result: Any) -> Iterator[None]:
        lease = Lease(run.order.job_id, run.order.fence)
        if run.settled:
            raise LeaseLost(f"this run has completed job {lease.job_id} already")
        try:
            text = self._handlers.encode_result(result)
        except NotStorable as error:
            run.refused = error
            raise
        # What was told before goes first: the record takes nothing for a job that is completed.
        run.telling.settle(partial(self._is_lost, run))
        with self._handlers.complete_in_transaction(
            lease,
            run.order.worker_id,
            done=lambda: Done(_hidden(run, text), milliseconds(run.seconds)),
            committed=run.settle,
        ):
            yield

    def _secrets(self, run: Run) -> Secrets:
        if run.secrets is None:
            order = run.order
            run.secrets = Secrets(
                self._handler(order).config.secrets,
                provide=lambda name: self._handlers.secret(name, job_id=order.job_id, task=order.task),
                is_over=lambda: run.telling.closed,
            )
        return run.secrets

    def _lent(self, name: str, run: Run) -> Any:
        """The resource that the handler is to have; a run whose end is asked for leaves the line."""
        context = self._context(run)
        return self._pools.lend(name, lambda: context.cancelled)

    def _is_lost(self, run: Run) -> bool:
        return run.token.cause is Cause.LEASE_LOST or boot_clock() >= self._board.expiry(run.order.ticket)

    def _returned(self, run: Run, handler: Handler, value: Any) -> list[Any]:
        if self.forked:
            _end_forked(None, run)
        seconds = run.seconds
        if run.settled:
            return ["settled", run.order.ticket, seconds]
        try:
            text = self._handlers.encode_result(handler.result(value))
            return ["done", run.order.ticket, _hidden(run, text), seconds]
        except InvalidResult as error:
            return self._failure(run, error, seconds, code="invalid_result")
        except NotStorable as error:
            return self._failure(run, error, seconds, code="result_not_storable")

    def _raised(self, run: Run, error: BaseException) -> list[Any]:
        if self.forked:
            _end_forked(error, run)
        seconds, ticket = run.seconds, run.order.ticket
        if run.settled:
            _tell_of(run, error)
            return ["settled", ticket, seconds]
        match _alone(error):
            case InvalidArguments() as invalid:
                return [
                    "quarantined",
                    ticket,
                    QuarantineReason.INVALID_ARGUMENTS,
                    run.storable(str(invalid), 1000),
                    self._evidence(run),
                ]
            case Cancelled(cause=Cause.TIMEOUT):
                return self._failure(run, error, seconds, code="timeout")
            case ResourceFailed() as failed:
                return self._failure(run, failed.__cause__ or failed, seconds, code="resource_failed")
            case Cancelled(cause=cause):
                # The handler ended because it was asked to: interrupted, not failed.
                return ["released", ticket, run.storable(str(cause), 100), self._evidence(run)]
            case Snooze(seconds=wait):
                return ["snoozed", ticket, wait, seconds, self._evidence(run)]
            case Discard(reason=reason):
                return ["discarded", ticket, run.storable(reason, 1000), seconds, self._evidence(run)]
        # SystemExit and KeyboardInterrupt too: a handler must not be able to end the executor.
        code = "handler_raised" if error is not run.refused else "result_not_storable"
        if code == "handler_raised" and named(error, self._handler(run.order).config.discard_on):
            evidence = describe(error, hidden=run.hidden)
            reason = storable(f"{evidence.type}: {evidence.message}", 1000)
            return ["discarded", ticket, reason, seconds, self._evidence(run)]
        return self._failure(run, error, seconds, code=code)

    def _failure(
        self, run: Run, error: BaseException, seconds: float, *, code: str = "handler_raised"
    ) -> list[Any]:
        order = run.order
        evidence = describe(error, skip_frames=_own_frames(error), hidden=run.hidden)
        config = self._handler(order).config
        wait = None
        if code != "handler_raised" or config.retry_on is None or named(error, config.retry_on):
            wait = self._handlers.backoff_seconds(config, error, order.failures + 1)
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
            self._evidence(run),
        ]

    def _evidence(self, run: Run) -> str:
        return run.evidence(own=self._handler(run.order).config.isolation == SOLO)


def _when_forked(runner: Runner) -> None:
    found = ref(runner)

    def forked() -> None:
        if (runner := found()) is not None:
            runner.forked = True

    os.register_at_fork(after_in_child=forked)


def _end_forked(error: BaseException | None, run: Run) -> NoReturn:
    """End a process that a handler has forked and that has come to its end: the run is its parent's."""
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        sys.stderr.write(run.hidden("".join(traceback.format_exception(error))))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _hidden(run: Run, result: str | None) -> str | None:
    """A result is the user's own: nothing but the values of secrets is taken out."""
    return result if result is None or run.secrets is None else run.secrets.hidden_in_json(result)


def _tell_of(run: Run, error: BaseException) -> None:
    """Log what a handler raised after its job was completed."""
    evidence = describe(error, hidden=run.hidden)
    text = f"{evidence.type}: {evidence.message}"[:200]
    log.warning("job.raised_after_completion", extra={"job": run.order.job_id, "error": text})


def _executor_error(run: Run, error: BaseException) -> list[Any]:
    # The user's code again, where nobody expects it: in an exception's text, in a result being encoded.
    kind = type(error).__name__
    return [
        "failed",
        run.order.ticket,
        "executor_error",
        kind,
        f"the run ended in a {kind} outside of its handler",
        f"executor_error:{kind}"[:100],
        "",
        LAST_RESORT_SECONDS,
        run.seconds,
        run.evidence(own=False),
    ]


def _alone(error: BaseException) -> BaseException:
    """What a handler's `TaskGroup` has wrapped, where one of its tasks alone ended the run."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def named(error: BaseException, names: Iterable[str]) -> bool:
    """Whether the exception is of one of these types, given by module and class, or of a child of one.

    A group is where all that it holds are.
    """
    if isinstance(error, BaseExceptionGroup) and error.exceptions:
        return all(named(one, names) for one in error.exceptions)
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    return not kinds.isdisjoint(names)


def _own_frames(error: BaseException) -> int:
    """How many of the outermost frames are of the runner, and not of the user's code."""
    number, trace = 0, error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, LENDING):
        number, trace = number + 1, trace.tb_next
    return number


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
