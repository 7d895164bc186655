"""Pools of what jobs are lent while they run, in one executor.

How a job borrows is written once, as a generator: it yields a `Use` (a function of the user's, with its arguments)
or a future to wait for, and is sent what comes of it. A thread and a coroutine drive it, each in its own way.
"""

import asyncio
import inspect
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from shiftboss.queue.errors import ShiftbossError
from shiftboss.queue.resources import Resource
from shiftboss.queue.runtime.context import Cancelled, Cause

log = logging.getLogger("shiftboss.resources")

LENDING = __file__
"""Frames of this file are none of the user's."""

LOOK_SECONDS = 0.1
"""How often a job that waits in line looks whether it should still run."""

TELL_SECONDS = 0.5
"""The keeper is told of changes no more often."""


class ResourceFailed(ShiftbossError):
    """A resource could not be made or was not declared; the error behind it is the cause."""


class Use(NamedTuple):
    """A function of the user's, plain or a coroutine function, to be called."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()


Plan = Generator[Use | Future[Any], Any, Any]
Stop = Callable[[], Cause | None]


@dataclass(frozen=True, slots=True)
class Figures:
    """How many there are, are lent out (or just being made) and are waited for."""

    made: int
    lent: int
    waiting: int


class _Chance:
    """Handed on instead of a resource: the right to make one."""


CHANCE = _Chance()


class Pool:
    """The resources of one name. Those who wait get theirs in the order in which they came."""

    def __init__(self, resource: Resource, *, threads: int, changed: Callable[[], None]) -> None:
        self._resource = resource
        self._maximum = min(resource.maximum or threads, threads)
        self._changed = changed
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._made = 0
        self._line: deque[Future[Any]] = deque()

    @property
    def figures(self) -> Figures:
        """As of now."""
        with self._lock:
            return Figures(self._made, self._made - len(self._idle), len(self._line))

    def borrow(self) -> Plan:
        """Get one: an idle one that is found good, or a new one. Raises ResourceFailed, and Cancelled by whoever
        drives it where the job need not wait any longer."""
        given = yield from self._turn()
        try:
            if given is not CHANCE:
                if (yield from self._is_good(given)):
                    return given
                yield from self.destroy(given)
            return (yield Use(self._resource.create))
        except BaseException as error:
            self._pass_on(CHANCE)
            raise ResourceFailed(f"the resource {self._resource.name!r} could not be made") from error

    def _turn(self) -> Plan:
        with self._lock:
            given: Any = None
            if self._idle:
                given = self._idle.pop()
            elif self._made < self._maximum:
                self._made += 1
                given = CHANCE
            else:
                waiter: Future[Any] = Future()
                waiter.set_running_or_notify_cancel()  # nobody can cancel it but by leaving the line
                self._line.append(waiter)
        self._changed()
        if given is not None:
            return given
        try:
            return (yield waiter)
        except BaseException:
            self._leave(waiter)
            raise

    def _leave(self, waiter: "Future[Any]") -> None:
        with self._lock:
            in_line = waiter in self._line
            if in_line:
                self._line.remove(waiter)
        if not in_line:  # its turn came at the same moment
            self._pass_on(waiter.result())
        self._changed()

    def give_back(self, lent: Any) -> None:
        """The job has ended, in whatever way."""
        self._pass_on(lent)

    def _pass_on(self, given: Any) -> None:
        """To the first in line; else what is there stays idle, and a chance to make one is kept for later."""
        with self._lock:
            if self._line:
                self._line.popleft().set_result(given)
            elif given is CHANCE:
                self._made -= 1
            else:
                self._idle.append(given)
        self._changed()

    def _is_good(self, lent: Any) -> Plan:
        if self._resource.validate is None:
            return True
        try:
            answer = yield Use(self._resource.validate, (lent,))
        except Exception as error:
            self._warn("resource.invalid", error)
            return False
        return answer is None or bool(answer)

    def destroy(self, lent: Any) -> Plan:
        """Be done with one. Never raises for what the user's function does."""
        if self._resource.destroy is not None:
            try:
                yield Use(self._resource.destroy, (lent,))
            except Exception as error:
                self._warn("resource.not_destroyed", error)

    def _warn(self, event: str, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}"[:500]
        log.warning(event, extra={"resource": self._resource.name, "error": said})

    def close(self) -> Plan:
        """Be done with all that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._made -= len(idle)
        for one in idle:
            yield from self.destroy(one)


class Waits(Protocol):
    """Waits, in a thread, for what is to run on an event loop."""

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """What comes of it."""


class Pools:
    """All pools of an executor; one comes into being when a job first names it."""

    def __init__(
        self,
        *,
        find: Callable[[str], Resource],
        threads: int,
        coroutines: Waits,
        wake: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._threads = threads
        self._coroutines = coroutines
        self._wake = wake
        self._clock = clock
        self._has_changed = False
        self._tell_at = -math.inf
        self._lock = threading.Lock()
        self._pools: dict[str, Pool] = {}

    def lend(self, name: str, stop: Stop) -> "Loan":
        """What a job is to be lent, for a `with` or an `async with` around it."""
        return Loan(self, name, stop)

    def pool(self, name: str) -> Pool:
        """The pool of a name. Raises ResourceFailed where no such resource is declared."""
        with self._lock:
            if (pool := self._pools.get(name)) is None:
                try:
                    resource = self._find(name)
                except ShiftbossError as error:
                    raise ResourceFailed(str(error)) from error
                pool = self._pools[name] = Pool(resource, threads=self._threads, changed=self._changed)
            return pool

    def _changed(self) -> None:
        if not self._has_changed:
            self._has_changed = True
            self._wake()

    def pause(self) -> float | None:
        """Seconds until the keeper may be told of what has changed; None where nothing has."""
        return max(0.0, self._tell_at - self._clock()) if self._has_changed else None

    def news(self) -> dict[str, dict[str, int]] | None:
        """What the keeper is to be told now, if anything."""
        if not self._has_changed or (now := self._clock()) < self._tell_at:
            return None
        self._has_changed, self._tell_at = False, now + TELL_SECONDS
        return self.figures()

    def figures(self) -> dict[str, dict[str, int]]:
        """Of each pool, for the keeper."""
        with self._lock:
            pools = list(self._pools.items())
        found = ((name, pool.figures) for name, pool in pools)
        return {name: {"made": f.made, "lent": f.lent, "waiting": f.waiting} for name, f in found}

    def drive(self, plan: Plan, stop: Stop) -> Any:
        """Carry out a plan in this thread."""
        step = _first(plan)
        while not isinstance(step, _End):
            try:
                answer = self._waited(step, stop) if isinstance(step, Future) else self._used(step)
            except BaseException as error:
                step = _next(plan, error=error)
            else:
                step = _next(plan, answer)
        return step.answer

    def _used(self, use: Use) -> Any:
        answer = use.function(*use.args)
        return self._coroutines.wait(answer) if inspect.isawaitable(answer) else answer

    def _waited(self, future: "Future[Any]", stop: Stop) -> Any:
        while True:
            try:
                return future.result(LOOK_SECONDS)
            except TimeoutError:
                if (cause := stop()) is not None:
                    raise Cancelled(cause) from None

    async def adrive(self, plan: Plan, stop: Stop) -> Any:
        """Carry out a plan on the event loop."""
        step = _first(plan)
        while not isinstance(step, _End):
            try:
                answer = await (_awaited(step, stop) if isinstance(step, Future) else _aused(step))
            except BaseException as error:
                step = _next(plan, error=error)
            else:
                step = _next(plan, answer)
        return step.answer

    def close(self) -> None:
        """Destroy all that is idle."""
        with self._lock:
            pools = list(self._pools.values())
        for pool in pools:
            self.drive(pool.close(), lambda: None)


async def _aused(use: Use) -> Any:
    if inspect.iscoroutinefunction(use.function):
        return await use.function(*use.args)
    answer = await asyncio.to_thread(use.function, *use.args)
    return await answer if inspect.isawaitable(answer) else answer


async def _awaited(future: "Future[Any]", stop: Stop) -> Any:
    waiting = asyncio.wrap_future(future)
    while not (await asyncio.wait({waiting}, timeout=LOOK_SECONDS))[0]:
        if (cause := stop()) is not None:
            raise Cancelled(cause)
    return waiting.result()


class _End(NamedTuple):
    answer: Any


def _first(plan: Plan) -> "Use | Future[Any] | _End":
    return _next(plan)


def _next(plan: Plan, answer: Any = None, *, error: BaseException | None = None) -> "Use | Future[Any] | _End":
    try:
        return plan.send(answer) if error is None else plan.throw(error)
    except StopIteration as end:
        return _End(end.value)


class Loan:
    """Around a handler: `with` in a thread, `async with` on the event loop. The resource is what it gives."""

    def __init__(self, pools: Pools, name: str, stop: Stop) -> None:
        self._pools = pools
        self._name = name
        self._stop = stop
        self._lent: Any = None

    def __enter__(self) -> Any:
        self._lent = self._pools.drive(self._pools.pool(self._name).borrow(), self._stop)
        return self._lent

    def __exit__(self, *_: object) -> None:
        self._pools.pool(self._name).give_back(self._lent)

    async def __aenter__(self) -> Any:
        self._lent = await self._pools.adrive(self._pools.pool(self._name).borrow(), self._stop)
        return self._lent

    async def __aexit__(self, *_: object) -> None:
        self._pools.pool(self._name).give_back(self._lent)
