"""The keeper: claims, heartbeats, listens and reports for its executors, and never runs user code itself.

Its loops share one event loop and the `Holdings`:

    fetch      leases jobs while executors have an appetite, and deals them out
    report     carries outcomes to the record
    heartbeat  prolongs leases, and tells of the worker itself
    listen     turns notifications into claims
    stage, reap   the maintainer's work at a tenth of its rate, so that a dead maintainer stops nothing
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from typing import Any

from shiftboss.queue.contract import Lease, Registration, WorkerStatus
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Done, Failed, Outcome, Quarantined, Released
from shiftboss.queue.runtime.board import DeadlineBoard
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.deaths import settle
from shiftboss.queue.runtime.dispatcher import Dispatcher
from shiftboss.queue.runtime.executor_process import Death, ExecutorProcess
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.leftovers import Notes
from shiftboss.queue.runtime.loop import Loop, wait_for_event
from shiftboss.queue.runtime.marks import Marks
from shiftboss.queue.runtime.ports import QueueClient, Wakeups, boot_clock
from shiftboss.queue.runtime.reporter import Reporter
from shiftboss.queue.states import QuarantineReason

log = logging.getLogger("shiftboss.keeper")

UPKEEP_SHARE = 10
TASK_AWAY_SECONDS = 15.0
PROBE_SECONDS = 2.0
MAX_START_FAILURES = 5
SETTLE_SECONDS = 10.0
MAX_UNREPORTED_CHARACTERS = 64 * 1024 * 1024


class Keeper:
    """One worker. `run()` returns when it has drained; raises where it cannot work at all."""

    def __init__(self, config: KeeperConfig, client: QueueClient, wakeups: Wakeups) -> None:
        self._config = config
        self._client = client
        self._wakeups = wakeups
        self._clock = boot_clock
        self._holdings = Holdings(config.lease_seconds)
        self._reporter = Reporter(client, self._holdings)
        self._dispatcher = Dispatcher(clock=self._clock)
        self._marks = Marks(config.queues, poll_seconds=config.poll_seconds)
        self._deadlines = DeadlineBoard()
        self._notes = Notes(config.run_folder, pool=config.pool)
        self._executors: list[ExecutorProcess] = []
        self._tasks: set[str] = set()
        self._away: dict[str, float] = {}
        self._stop = asyncio.Event()
        self._ended = asyncio.Event()
        self._stir = asyncio.Event()
        self._hurry = False
        self._starting: set[asyncio.Task[None]] = set()
        self._sentinel: asyncio.subprocess.Process | None = None
        self._state = "running"
        self._idle = False
        self._heartbeats_fail = False
        self._next_heartbeat = 0.0
        self._next_probe = 0.0
        self._losses = 0
        self._start_failures = 0

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT, then drain. Raises SchemaTooOld, UnsupportedDatabase, RuntimeError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        self._notes.kill_leftovers()
        await self._open()
        watch = asyncio.create_task(self._keep_sentinel())
        for place in range(self._config.processes):
            self._start_executor(place)
        config = self._config
        loops = [
            Loop("fetch", self._fetch, every_seconds=0.05).run(self._stop),
            Loop("surplus", self._give_back_surplus, every_seconds=0.5).run(self._stop),
            Loop("stage", self._stage, every_seconds=config.stage_seconds * UPKEEP_SHARE).run(self._stop),
            Loop("reap", self._reap, every_seconds=config.reap_seconds * UPKEEP_SHARE).run(self._stop),
            Loop("report", self._reporter.run_once, every_seconds=0.2).run(self._ended),
            Loop("heartbeat", self._heartbeat, every_seconds=0.0).run(self._ended),
            self._wakeups.listen(self._wake),
        ]
        tasks = [asyncio.create_task(one) for one in loops]
        try:
            await self._stop.wait()
            await self._drain()
        finally:
            self._ended.set()
            for task in [*tasks, watch, *self._starting]:
                task.cancel()
            await asyncio.gather(*tasks, watch, return_exceptions=True)
            await self._say_goodbye()
            self._notes.clear()
        if self._start_failures >= MAX_START_FAILURES:
            raise RuntimeError("executors end before they are ready; their own messages stand above")

    def _signalled(self) -> None:
        self._hurry = self._stop.is_set()
        self._stop.set()
        self._stir.set()

    async def _open(self) -> None:
        pause = 0.5
        while not self._stop.is_set():
            try:
                await self._client.open()
                await self._client.register(self._registration(), ())
            except StoreUnavailable as error:
                log.warning("keeper.store_unavailable", extra={"error": str(error)})
                await wait_for_event(self._stop, pause)
                pause = min(pause * 2, 10.0)
            else:
                log.info("keeper.started", extra={"pool": self._config.pool, "slots": self._config.slots})
                return

    def _registration(self) -> Registration:
        config = self._config
        return Registration(
            pool=config.pool,
            host=socket.gethostname(),
            pid=os.getpid(),
            code_version=config.code_version,
            queues=config.queues,
            processes=config.processes,
            threads=config.threads,
            lease_seconds=config.lease_seconds,
            heartbeat_seconds=config.heartbeat_seconds,
        )

    # -- children ------------------------------------------------------------------------------------------

    async def _keep_sentinel(self) -> None:
        interval = max(0.05, self._config.margin_seconds / 4)
        argv = (sys.executable, "-P", "-m", "shiftboss.queue.runtime.sentinel")
        facts = (str(self._deadlines.fd), str(os.getpid()), str(interval))
        while True:
            try:
                self._sentinel = await asyncio.create_subprocess_exec(
                    *argv,
                    *facts,
                    pass_fds=(self._deadlines.fd,),
                    stdin=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
                await self._sentinel.wait()
                log.error("sentinel.died", extra={"exit_code": self._sentinel.returncode})
            except OSError as error:
                log.error("sentinel.not_started", extra={"error": str(error)})
            await asyncio.sleep(0.5)

    def _start_executor(self, place: int, *, after_seconds: float = 0.0) -> None:
        executor = ExecutorProcess(
            place=place,
            config=self._config,
            deadlines=self._deadlines,
            clock=self._clock,
            on_message=self._on_message,
            on_death=self._on_death,
        )
        self._executors.append(executor)

        async def start() -> None:
            await asyncio.sleep(after_seconds)
            try:
                await executor.start()
            except OSError as error:
                log.error("executor.not_started", extra={"error": str(error)})
                self._executors.remove(executor)
                self._start_again(executor.place, failed=True)
            else:
                self._notes.add(executor.pid)

        task = asyncio.create_task(start())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _on_message(self, executor: ExecutorProcess, message: dict[str, Any]) -> None:
        if "hello" in message:
            executor.ready = True
            self._start_failures = 0
            log.info("executor.ready", extra={"pid": executor.pid, "tasks": len(message["known"])})
        self._tasks.update(message.get("known", ()))
        for ticket_outcome in message.get("outcomes", ()):
            self._on_outcome(executor, *ticket_outcome)
        if executor.reserved and not executor.in_hand:
            executor.reserved = False
        self._dispatcher.deal(self._executors)
        self._stir.set()

    def _on_outcome(self, executor: ExecutorProcess, kind: str, ticket: int, *facts: Any) -> None:
        held = executor.taken_back(ticket)
        if held is None:
            return
        task = held.job.task
        match kind, facts:
            case "done", (result, seconds):
                self._dispatcher.ended(task, seconds)
                self._report(held, Done(result, _ms(seconds)))
            case "failed", (code, type_, message, fingerprint, trace, wait, seconds):
                self._dispatcher.ended(task, seconds)
                self._report(held, Failed(code, type_, message, fingerprint, trace, wait, _ms(seconds)))
            case "released", (code,):
                self._report(held, Released(code))
            case "quarantined", (reason, message):
                self._report(held, Quarantined(QuarantineReason(reason), message))
            case "not_here", (message,):
                # Others may know it; this worker looks again later.
                self._away[task] = self._clock() + TASK_AWAY_SECONDS
                self._tasks.discard(task)
                log.warning("task.not_here", extra={"task": task, "error": message})
                self._report(held, Released("task_not_here"))

    def _report(self, held: Held, outcome: Outcome) -> None:
        if held.lost:
            self._holdings.drop([held.job.lease])  # nothing is submitted after the lease is lost
        else:
            self._reporter.add(held.job.lease, outcome)

    def _on_death(self, executor: ExecutorProcess, death: Death) -> None:
        self._executors.remove(executor)
        stopping = self._stop.is_set()
        level = logging.INFO if stopping else logging.ERROR
        in_hand = [held.job.id for held in (*death.started, *death.ended)]
        log.log(level, "executor.died", extra={"pid": executor.pid, "cause": death.cause, "jobs": in_hand})
        for held, outcome in settle(death, draining=stopping):
            self._report(held, outcome)
        self._notes.remove(executor.pid)
        self._stir.set()
        if not stopping:
            self._losses += 1
            self._start_again(executor.place, failed=not death.was_ready)

    def _start_again(self, place: int, *, failed: bool) -> None:
        self._start_failures = self._start_failures + 1 if failed else 0
        if self._start_failures >= MAX_START_FAILURES:
            self._signalled()
        elif not self._stop.is_set():
            self._start_executor(place, after_seconds=0.25 * (2**self._start_failures - 1))

    # -- fetch ---------------------------------------------------------------------------------------------

    async def _fetch(self) -> bool:
        self._stir.clear()
        now = self._clock()
        want = 0 if self._holds_back() else self._dispatcher.appetite(self._executors)
        queues = self._marks.open_queues(now) if want and self._known_tasks() else []
        for queue in queues:
            want -= await self._claim(queue, want)
            if want <= 0:
                break
        if queues:
            return True
        if want and not self._idle and self._tasks:
            await self._declare_idle()
            return True
        await self._probe(now)
        await wait_for_event(self._stir, self._pause(now, hungry=bool(want and self._tasks)))
        return True

    def _holds_back(self) -> bool:
        full = self._reporter.characters > MAX_UNREPORTED_CHARACTERS
        return self._stop.is_set() or self._reporter.trouble or self._heartbeats_fail or full

    def _pause(self, now: float, *, hungry: bool) -> float:
        poll = self._config.poll_seconds
        return min(poll, max(0.001, self._marks.next_try() - now)) if hungry else min(poll, 0.25)

    def _known_tasks(self) -> list[str]:
        return sorted(self._tasks)

    async def _claim(self, queue: str, want: int) -> int:
        began = self._clock()
        after = self._marks.start(queue, began)
        jobs = await self._client.claim(queue, self._known_tasks(), want, after)
        now = self._clock()
        self._marks.claimed(queue, after, jobs, limit=want, began=began, now=now)
        if not jobs:
            return 0
        held = self._holdings.claimed(jobs, began)
        if self._stop.is_set() or now - began > self._config.lease_seconds / 2:
            # Too late to begin: we are stopping, or the claim itself took half of the lease.
            for one in held:
                self._report(one, Released("shutdown" if self._stop.is_set() else "not_started"))
        else:
            self._dispatcher.add(held)
            self._dispatcher.deal(self._executors)
        return len(jobs)

    async def _declare_idle(self) -> None:
        # Declare, then claim once more, then wait: what was enqueued in between is found by that claim.
        self._idle = True
        await self._client.worker_heartbeat(self._status())
        self._marks.reopen()

    def _wake(self, queue: str | None, priority: int) -> None:
        if queue is None:
            self._marks.reopen()
        else:
            self._marks.wake(queue, priority)
        self._stir.set()

    async def _probe(self, now: float) -> None:
        """Ask the executors for tasks that wait in the queues and are not known here."""
        ready = [executor for executor in self._executors if executor.ready]
        if now < self._next_probe or self._holds_back() or not ready:
            return
        self._next_probe = now + PROBE_SECONDS
        self._away = {task: until for task, until in self._away.items() if until > now}
        names = await self._client.waiting_tasks([*self._tasks, *self._away])
        for executor in ready if names else ():
            executor.send({"resolve": names})
        self._away.update(dict.fromkeys(names, now + TASK_AWAY_SECONDS))

    async def _give_back_surplus(self) -> None:
        for held in self._dispatcher.surplus():
            self._report(held, Released("not_started"))

    # -- upkeep --------------------------------------------------------------------------------------------

    async def _stage(self) -> None:
        await self._client.stage()

    async def _reap(self) -> None:
        await self._client.reap()

    # -- heartbeat -----------------------------------------------------------------------------------------

    async def _heartbeat(self) -> bool:
        period = self._config.heartbeat_seconds
        planned = self._next_heartbeat or self._clock()
        await asyncio.sleep(max(0.0, planned - self._clock()))
        lag = self._clock() - planned
        self._next_heartbeat = max(planned + period, self._clock() + period / 2)
        self._idle = self._idle and not self._dispatcher.waiting and self._in_hand() < self._config.slots
        try:
            await self._renew()
            known = await self._client.worker_heartbeat(self._status(lag_ms=round(lag * 1000)))
            if not known:
                await self._client.register(self._registration(), self._known_tasks())
        except BaseException:
            # Until a heartbeat gets through again no job is leased, and it is tried again soon.
            self._heartbeats_fail = True
            self._next_heartbeat = self._clock() + min(1.0, period / 5)
            raise
        self._heartbeats_fail = False
        return True

    async def _renew(self) -> None:
        stale = self._holdings.stale(self._clock() - self._config.heartbeat_seconds / 4)
        for start in range(0, len(stale), 500):
            await self._renew_batch([held.job.lease for held in stale[start : start + 500]])
        for executor in self._executors:
            executor.refresh_deadline()

    async def _renew_batch(self, leases: list[Lease]) -> None:
        sent_at = self._clock()
        answer = await self._client.heartbeat(leases)
        self._holdings.renewed(answer.renewed, sent_at)
        for lease in answer.lost:
            self._lose(lease)
        if answer.busy:
            self._next_heartbeat = min(self._next_heartbeat, self._clock() + 1.0)

    def _lose(self, lease: Lease) -> None:
        held = self._holdings.get(lease)
        if held is None:
            return  # it was settled while the heartbeat was under way
        held.lost = True
        log.warning("job.lease_lost", extra={"job": lease.job_id, "fence": lease.fence})
        if held.executor is not None:
            held.executor.cancel(held, Cause.LEASE_LOST)

    def _in_hand(self) -> int:
        return sum(min(len(executor.in_hand), executor.threads) for executor in self._executors)

    def _status(self, *, lag_ms: int = 0) -> WorkerStatus:
        return WorkerStatus(
            state=self._state,
            in_use=self._in_hand(),
            idle=self._idle,
            tasks=tuple(self._known_tasks()),
            lag_ms=lag_ms,
            losses=self._losses,
        )

    # -- drain ---------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Fetching has stopped; tokens are set, heartbeats go on. What has not finished in time is released."""
        self._state, self._idle = "draining", False
        log.info("keeper.draining", extra={"in_hand": len(self._holdings)})
        for held in self._dispatcher.clear():
            self._report(held, Released("shutdown"))
        for executor in self._executors:
            executor.send({"drain": True})
        ends_at = self._clock() + self._config.drain_seconds
        while any(executor.in_hand for executor in self._executors):
            if self._hurry or self._clock() >= ends_at:
                break
            self._stir.clear()
            await wait_for_event(self._stir, min(0.5, ends_at - self._clock()))
        await self._end_executors()
        # The last word of each run goes to the record, within a bound.
        await self._settle_all(min(SETTLE_SECONDS, self._config.lease_seconds))

    async def _end_executors(self) -> None:
        ending = list(self._executors)
        for executor in ending:
            if executor.in_hand or not executor.ready:
                executor.kill()
            else:
                executor.send({"stop": True})
        gone = asyncio.gather(*(executor.gone() for executor in ending))
        try:
            await asyncio.wait_for(gone, 10)
        except TimeoutError:
            for executor in list(self._executors):
                executor.kill()

    async def _settle_all(self, seconds: float) -> None:
        ends_at = self._clock() + seconds
        while self._reporter.pending and self._clock() < ends_at:
            await asyncio.sleep(0.02)
        if self._reporter.pending:
            log.error("keeper.unreported", extra={"outcomes": self._reporter.pending})

    async def _say_goodbye(self) -> None:
        self._state = "stopped"
        try:
            await asyncio.wait_for(self._client.worker_heartbeat(self._status()), 5)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("keeper.goodbye_failed", extra={"error": str(error)})
        await self._client.close()
        if self._sentinel is not None and self._sentinel.returncode is None:
            self._sentinel.kill()
            await self._sentinel.wait()
        log.info("keeper.stopped")


def _ms(seconds: float) -> int:
    return min(round(seconds * 1000), 2**31 - 1)
