"""One life of an in-process worker, from its start to the end of its last run.

A thread with an event loop claims, heartbeats and reports; the slots' threads run handlers, as an executor's do.
It ends by itself once it is stopping and nothing is in hand any more.
"""

import asyncio
import logging
import math
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from shiftboss.queue.contract import Note, NoteKind, Registration, WorkerStatus
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Outcome, Released
from shiftboss.queue.runtime import usage
from shiftboss.queue.runtime.board import NOT_STARTED, STARTED, TICKETS, SlotBoard
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.loop import Loop, wait_for_event
from shiftboss.queue.runtime.notebook import Notebook
from shiftboss.queue.runtime.notes import SETTLE, SETTLED, Teller
from shiftboss.queue.runtime.ports import CANCEL, DRAIN, STOP, Handlers, QueueClient, Wakeups, boot_clock
from shiftboss.queue.runtime.reporter import Reporter
from shiftboss.queue.runtime.resources import Pools
from shiftboss.queue.runtime.revisions import Revisions
from shiftboss.queue.runtime.running import Order, Run, Runner
from shiftboss.queue.runtime.said import outcome_of

log = logging.getLogger("shiftboss.worker")

ELSEWHERE = ("process", "sandbox")
"""Isolations that a worker within a process cannot give: such tasks are left to others."""

AWAY_SECONDS = 15.0
GOODBYE_SECONDS = 5.0
TIMEOUT_SECONDS = 0.1
"""How often it is looked whether a run has taken too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a worker works. Durations in seconds."""

    queues: tuple[str, ...]
    threads: int
    prefetch: int
    lease_seconds: float
    heartbeat_seconds: float
    poll_seconds: float

    def registration(self) -> Registration:
        """The worker as it announces itself."""
        return Registration(
            pool="in-process",
            host=socket.gethostname(),
            pid=os.getpid(),
            code_version=None,
            queues=self.queues,
            processes=1,
            threads=self.threads,
            lease_seconds=self.lease_seconds,
            heartbeat_seconds=self.heartbeat_seconds,
        )


class Shift:
    """`start()` once; the other methods may be called from any thread, and come too late without harm."""

    def __init__(self, *, client: QueueClient, wakeups: Wakeups | None, handlers: Handlers, plan: Plan) -> None:
        self.paused = False
        self.opened: Future[int] = Future()
        self._client = client
        self._wakeups = wakeups
        self._handlers = handlers
        self._plan = plan
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._live, name="shiftboss-worker", daemon=True)
        self._orders: SimpleQueue[Run | None] = SimpleQueue()
        self._outcomes: deque[list[Any]] = deque()
        self._tickets: dict[int, Held] = {}
        self._away: dict[str, float] = {}
        self._drainers: list[Future[bool]] = []
        self._board = SlotBoard()
        self._coroutines = Coroutines(handlers.lane)
        self._teller = Teller(wake=self._woken)
        self._pools = Pools(find=handlers.resource, threads=plan.threads, coroutines=self._coroutines)
        self._runner = Runner(
            handlers=handlers,
            board=self._board,
            margin_seconds=min(3.0, plan.lease_seconds / 10),
            coroutines=self._coroutines,
            teller=self._teller,
            pools=self._pools,
            deliver=self._deliver,
            redactor=handlers.redactor,
        )
        self._holdings = Holdings(plan.lease_seconds)
        self._reporter = Reporter(client, self._holdings, settled=lambda held, outcome: self._stir.set())
        self._notebook = Notebook(client, self._holdings, report=self._hand_on)
        self._revisions = Revisions(client)
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self._stir = asyncio.Event()
        self._look = asyncio.Event()
        self._worker_id = 0
        self._failing = False
        self._idle = False
        self._cpu_ms_before = usage.of_processes([os.getpid()]).cpu_ms or 0

    # -- from any thread -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; `opened` tells when it works, or why it cannot."""
        self._thread.start()

    @property
    def count(self) -> int:
        """Leases that are held."""
        return len(self._holdings)

    @property
    def active(self) -> int:
        """Handlers that run."""
        return sum(self._board.state(ticket) == STARTED for ticket in list(self._tickets))

    @property
    def stopping(self) -> bool:
        """Whether it claims no more: it was stopped, or a person has ordered it to drain or to stop."""
        return self._stopping.is_set()

    @property
    def over(self) -> bool:
        """Whether its threads have ended."""
        return not self._thread.is_alive()

    def wait(self, seconds: float | None) -> bool:
        """Wait for its end; False where it has not come in time."""
        self._thread.join(seconds)
        return self.over

    def stop(self) -> None:
        """Claim no more, give back what has not begun, give the others their tokens; end once they have ended."""
        self._call(self._begin_to_stop)

    def set_paused(self, paused: bool) -> None:
        """Claim no more for now, or go on."""
        self.paused = paused
        self._call(self._stir.set)

    def clear(self) -> None:
        """Give back what has not begun."""
        self._call(self._runner.give_back)

    def drained(self) -> "Future[bool]":
        """True once the queues are empty and nothing is in hand, False where it ends before."""
        answer: Future[bool] = Future()
        if not self._call(lambda: self._drain(answer)):
            answer.set_result(False)
        return answer

    def _call(self, function: Callable[[], None]) -> bool:
        loop = self._loop
        with suppress(RuntimeError):  # the loop is closed
            if loop is not None:
                loop.call_soon_threadsafe(function)
                return True
        return False

    # -- its life ------------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            log.exception("worker.failed")
            if not self.opened.done():
                self.opened.set_exception(error)
        finally:
            self._board.close()
            for answer in self._drainers:
                answer.set_result(False)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._client.open()
            await self._register()
        except Exception as error:
            await self._client.close()
            self._coroutines.close()
            self.opened.set_exception(error)
            return
        self._coroutines.start()
        slots = [
            threading.Thread(target=self._work, name=f"shiftboss-slot-{number}", daemon=True)
            for number in range(self._plan.threads)
        ]
        for slot in slots:
            slot.start()
        self.opened.set_result(self._worker_id)
        fetching = asyncio.create_task(Loop("fetch", self._fetch, every_seconds=0.05).run(self._stopping))
        tasks = [fetching, *map(asyncio.create_task, self._other_loops())]
        try:
            await self._stopping.wait()
            await asyncio.wait({fetching})
            while self._has_something():
                await asyncio.sleep(0.01)
        finally:
            self._ended.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._say_goodbye()
            for _ in slots:
                self._orders.put(None)
            await asyncio.to_thread(self._close, slots)

    def _other_loops(self) -> list[Any]:
        loops = [
            Loop("notes", self._notebook.run_once, every_seconds=0.2).run(self._ended),
            Loop("report", self._reporter.run_once, every_seconds=0.2).run(self._ended),
            Loop("heartbeat", self._beat, every_seconds=0.0).run(self._ended),
            Loop("timeouts", self._see_to_timeouts, every_seconds=TIMEOUT_SECONDS).run(self._ended),
            Loop("stage", self._stage, every_seconds=self._plan.poll_seconds).run(self._stopping),
            Loop("reap", self._reap, every_seconds=self._plan.heartbeat_seconds).run(self._stopping),
        ]
        if self._wakeups is not None:
            listening = self._wakeups.listen(self._worker_id, woken=self._wake, ordered=self._ordered)
            return [*loops, listening]
        return loops

    def _close(self, slots: list[threading.Thread]) -> None:
        for slot in slots:
            slot.join()
        self._pools.close()
        self._coroutines.close()

    def _has_something(self) -> bool:
        """Whether a run or its outcome is in hand; outcomes whose leases have all expired are given up."""
        if self._tickets:
            return True
        settled = not self._reporter.pending and not self._notebook.pending
        expired = all(held.expires_at < boot_clock() for held in self._holdings.stale(math.inf))
        return not settled and not expired

    async def _register(self) -> None:
        self._worker_id = await self._client.register(self._plan.registration(), self._tasks())

    def _tasks(self) -> list[str]:
        now = boot_clock()
        return sorted(
            task
            for task, isolation in self._handlers.known().items()
            if isolation not in ELSEWHERE and self._away.get(task, 0.0) <= now
        )

    def _status(self, state: str, lag_ms: int = 0) -> WorkerStatus:
        used = usage.of_processes([os.getpid()])  # the program's own: its threads share its memory
        return WorkerStatus(
            state=state,
            in_use=self.active,
            idle=self._idle,
            tasks=tuple(self._tasks()),
            lag_ms=lag_ms,
            losses=0,
            memory_kb=used.memory_kb,
            cpu_ms=None if used.cpu_ms is None else used.cpu_ms - self._cpu_ms_before,
        )

    async def _say_goodbye(self) -> None:
        self._idle = False
        try:
            await asyncio.wait_for(self._client.worker_heartbeat(self._status("stopped")), GOODBYE_SECONDS)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("worker.goodbye_failed", extra={"error": str(error)})
        await self._client.close()

    def _begin_to_stop(self) -> None:
        self._stopping.set()
        self._stir.set()
        self._runner.drain()

    # -- claims --------------------------------------------------------------------------------------------

    async def _fetch(self) -> bool:
        self._stir.clear()
        want = self._plan.threads + self._plan.prefetch - len(self._holdings)
        tasks = self._tasks()
        if self.paused or want <= 0 or not tasks or self._holds_back():
            await wait_for_event(self._stir, self._plan.poll_seconds)
            return True
        claimed = 0
        for queue in self._plan.queues:
            if claimed < want and not self._stopping.is_set():
                claimed += await self._claim(queue, tasks, want - claimed)
        await asyncio.sleep(0)  # a client that never waits must not keep the others from their turns
        if claimed:
            self._idle = False
            return True
        if self._drainers and not len(self._holdings):
            if await self._client.stage():
                return True
            self._drained()
        if not self._idle:
            # Declare, then claim once more, then wait: what was enqueued in between is found by that claim.
            self._idle = True
            await self._client.worker_heartbeat(self._status("running"))
            return True
        await wait_for_event(self._stir, self._plan.poll_seconds)
        return True

    def _holds_back(self) -> bool:
        return self._failing or self._reporter.trouble or self._notebook.trouble

    async def _claim(self, queue: str, tasks: list[str], want: int) -> int:
        began = boot_clock()
        jobs = await self._client.claim(queue, tasks, want, None)
        held = self._holdings.claimed(jobs, began, worker_id=self._worker_id)
        try:
            await self._revisions.read(job.revision_id for job in jobs)
        except StoreUnavailable:
            pass  # then by the task's present options
        for one in held:
            self._begin(one)
        return len(held)

    def _begin(self, held: Held) -> None:
        """Hand a job to the slots, or give it back."""
        held.config = config = self._revisions.get(held.job.revision_id)
        if self._stopping.is_set() or held.expires_at - boot_clock() < self._plan.lease_seconds / 2:
            self._notebook.end(held, Released("shutdown" if self._stopping.is_set() else "not_started"))
            return
        if config is not None:
            if config.isolation in ELSEWHERE:
                self._leave(held, f"it asks for isolation {config.isolation!r}")
                return
            self._runner.revise({str(held.job.revision_id): config.to_json()})
        held.ticket = next(ticket for ticket in range(TICKETS) if ticket not in self._tickets)
        self._tickets[held.ticket] = held
        self._board.mark(held.ticket, NOT_STARTED)
        self._board.set_expiry(held.ticket, held.expires_at)
        self._orders.put(self._runner.take(Order.of(held.ticket, held.job, worker_id=self._worker_id)))

    def _leave(self, held: Held, why: str) -> None:
        """Others may run it; this worker looks again later."""
        self._away[held.job.task] = boot_clock() + AWAY_SECONDS
        log.warning("task.not_here", extra={"task": held.job.task, "error": why})
        self._notebook.end(held, Released("task_not_here"))

    def _wake(self, queue: str | None, priority: int) -> None:
        self._stir.set()

    def _drain(self, answer: "Future[bool]") -> None:
        self._drainers.append(answer)
        self._stir.set()

    def _drained(self) -> None:
        drainers, self._drainers = self._drainers, []
        for answer in drainers:
            answer.set_result(True)

    async def _stage(self) -> None:
        if await self._client.stage():
            self._stir.set()

    async def _reap(self) -> None:
        await self._client.reap()

    # -- runs ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (run := self._orders.get()) is not None:
            self._runner.run(run)
        self._handlers.after_thread()

    def _deliver(self, outcome: list[Any]) -> None:
        self._outcomes.append(outcome)
        self._woken()

    def _woken(self) -> None:
        self._call(self._flush)

    def _flush(self) -> None:
        # What a run has told goes before its outcome.
        outcomes = len(self._outcomes)
        while notes := self._teller.take():
            for note in notes:
                self._on_note(*note)
        for _ in range(outcomes):
            kind, ticket, *facts = self._outcomes.popleft()
            held = self._tickets.pop(ticket)
            held.ticket = -1  # it goes to another run now
            self._on_outcome(held, kind, facts)
        if (pause := self._teller.pause()) is not None and self._loop is not None:
            self._loop.call_later(max(pause, 0.01), self._flush)
        self._stir.set()

    def _on_note(self, ticket: int, number: int, kind: str, name: str, data: str) -> None:
        def answer(word: str) -> None:
            if number:
                self._teller.noted(number, word)

        if (held := self._tickets.get(ticket)) is None:
            answer("lost")
        elif kind == SETTLE:
            self._notebook.after(held, answer)
        elif kind == SETTLED:
            held.settle()
            self._board.set_expiry(ticket, held.expires_at)
            self._holdings.drop([held.lease])
        else:
            self._notebook.add(held, Note(NoteKind(kind), data, name), answer)

    def _on_outcome(self, held: Held, kind: str, facts: list[Any]) -> None:
        if kind == "settled":
            # Its handler has completed it, in its own transaction: there is nothing left to write.
            self._notebook.forget(held)
            self._holdings.drop([held.lease])
        elif kind == "not_here":
            self._leave(held, facts[0])
        else:
            self._notebook.end(held, outcome_of(kind, facts))

    def _hand_on(self, held: Held, outcome: Outcome) -> None:
        if held.lost:
            self._holdings.drop([held.lease])  # nothing is submitted after the lease is lost
        else:
            self._reporter.add(held, outcome)
        self._stir.set()

    async def _see_to_timeouts(self) -> None:
        now = boot_clock()
        for ticket, held in list(self._tickets.items()):
            seconds = held.timeout_seconds
            if seconds is None or self._board.state(ticket) != STARTED:
                continue
            if now >= self._board.began_at(ticket) + seconds:
                self._runner.cancel(ticket, Cause.TIMEOUT)

    # -- heartbeat -----------------------------------------------------------------------------------------

    async def _beat(self) -> bool:
        """Prolong all leases, and hear whose end has been asked for; at once where somebody says so."""
        planned = boot_clock() + (self._plan.heartbeat_seconds if not self._failing else 0.2)
        await wait_for_event(self._look, planned - boot_clock())
        lag_ms = max(0, round((boot_clock() - planned) * 1000))
        self._look.clear()
        self._failing = True
        sent_at = boot_clock()
        leases = [held.lease for held in self._holdings.stale(math.inf)]
        answer = await self._client.heartbeat(leases)
        self._holdings.renewed(answer.renewed, sent_at)
        for ticket, held in list(self._tickets.items()):
            self._board.set_expiry(ticket, held.expires_at)
        for lease, cause in answer.cancelled.items():
            if (one := self._holdings.get(lease)) is not None:
                self._cancel(one, cause)
        for lease in answer.lost:
            if (one := self._holdings.get(lease)) is not None:
                one.lost = True
                log.warning("job.lease_lost", extra={"job": lease.job_id, "fence": lease.fence})
                self._cancel(one, Cause.LEASE_LOST)
        state = "draining" if self._stopping.is_set() else "running"
        known = await self._client.worker_heartbeat(self._status(state, lag_ms))
        if known is None:
            await self._register()
        elif known.order is not None:
            self._ordered(known.order)
        self._failing = False
        return True

    def _cancel(self, held: Held, cause: str) -> None:
        """Set its token, unless its run has ended and only its outcome is in hand."""
        if self._tickets.get(held.ticket) is held:
            self._runner.cancel(held.ticket, cause)

    def _ordered(self, word: str) -> None:
        if word == CANCEL:
            self._look.set()
        elif word in (DRAIN, STOP) and not self.stopping:
            # A thread cannot be ended: both mean that it stops.
            log.info("worker.ordered", extra={"order": word})
            self._begin_to_stop()
