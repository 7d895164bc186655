"""The keeper: claims, heartbeats, listens and reports for its executors, and never runs user code itself.

Its loops share one event loop and the `Holdings`:

    fetch      leases jobs while executors have an appetite, and deals them out
    notes      carries what handlers tell to the record (notebook.py)
    report     carries outcomes to the record (reporter.py)
    heartbeat  prolongs leases, tells of the worker itself, hears whose end was asked for (pulse.py)
    escalate   sees to it that runs end that should (escalation.py)
    listen     turns notifications into claims, and orders to this worker into heartbeats or its own end
    stage, reap   the maintainer's work at a tenth of its rate, so that a dead maintainer stops nothing
"""

import asyncio
import json
import logging
import math
import os
import signal
import socket
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from shiftboss.queue.contract import Note, NoteKind, Registration, WorkerStatus
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Discarded, Done, Failed, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.revision import SOLO
from shiftboss.queue.runtime import usage
from shiftboss.queue.runtime.children import Children
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.deaths import output_of
from shiftboss.queue.runtime.dispatcher import Dispatcher
from shiftboss.queue.runtime.escalation import LOOK_SECONDS, Escalation
from shiftboss.queue.runtime.executor_process import ExecutorProcess
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.intake import Intake
from shiftboss.queue.runtime.loop import Loop, wait_for_event
from shiftboss.queue.runtime.notebook import Notebook
from shiftboss.queue.runtime.notes import SETTLE, SETTLED
from shiftboss.queue.runtime.observing import Observing
from shiftboss.queue.runtime.ports import CANCEL, DRAIN, STOP, QueueClient, Wakeups, boot_clock
from shiftboss.queue.runtime.pulse import Pulse
from shiftboss.queue.runtime.reporter import Reporter
from shiftboss.queue.runtime.revisions import Revisions
from shiftboss.queue.runtime.said import milliseconds, outcome_of
from shiftboss.queue.runtime.wear import LOOK_SECONDS as WEAR_LOOK_SECONDS
from shiftboss.queue.runtime.wear import Wear

log = logging.getLogger("shiftboss.keeper")

UPKEEP_SHARE = 10
TASK_AWAY_SECONDS = 15.0
PROBE_SECONDS = 2.0
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
        self._observing = Observing(config=config, holdings=self._holdings, clock=self._clock)
        settled = self._observing.settled if self._observing.wanted else None
        self._reporter = Reporter(client, self._holdings, settled=settled)
        self._notebook = Notebook(client, self._holdings, report=self._hand_on)
        self._dispatcher = Dispatcher(clock=self._clock, isolated=config.isolated)
        self._revisions = Revisions(client)
        self._children = Children(
            config=config, clock=self._clock, hear=self._hear, report=self._report, give_up=self._begin_to_stop
        )
        self._escalation = Escalation(
            grace_seconds=config.grace_seconds,
            clock=self._clock,
            holdings=self._holdings,
            children=self._children,
        )
        self._wear = Wear(config=config, children=self._children, give_up=self._begin_to_stop)
        self._intake = self._new_intake(lambda: self._dispatcher.appetite(self._children.shared), rested=False)
        self._solo_intake = self._new_intake(
            lambda: self._dispatcher.solo_appetite(self._children.solo), rested=True
        )
        self._intakes = (self._intake, self._solo_intake) if config.isolated else (self._intake,)
        self._fresh: list[Held] = []
        self._registration = _registration(config)
        self._pulse = Pulse(
            period_seconds=config.heartbeat_seconds,
            client=client,
            clock=self._clock,
            holdings=self._holdings,
            children=self._children,
            register=self._register,
            status=self._status,
            cancel=self._cancel,
            ordered=self._ordered,
        )
        self._tasks: set[str] = set()
        self._away: dict[str, float] = {}
        self._stop = asyncio.Event()
        self._ended = asyncio.Event()
        self._stir = asyncio.Event()
        self._worker_id = 0
        self._renamed = asyncio.Event()
        self._ordered_at = -math.inf
        self._hurry = False
        self._state = "running"
        self._idle = False
        self._next_probe = 0.0

    async def run(self) -> None:
        """Work until SIGTERM or SIGINT, then drain. Raises SchemaTooOld, UnsupportedDatabase, RuntimeError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        await self._open()
        await self._children.start()
        self._observing.start()
        fetching = asyncio.create_task(Loop("fetch", self._fetch, every_seconds=0.05).run(self._stop))
        tasks = [fetching, *map(asyncio.create_task, self._other_loops())]
        try:
            await self._stop.wait()
            await self._drain(fetching)
        finally:
            self._ended.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._observing.end()
            await self._say_goodbye()
            await self._children.close()
            log.info("keeper.stopped")
        if (failure := self._children.failure or self._wear.failure) is not None:
            raise RuntimeError(failure)

    def _new_intake(self, appetite: Callable[[], int], *, rested: bool) -> Intake:
        config = self._config
        return Intake(queues=config.queues, poll_seconds=config.poll_seconds, appetite=appetite, rested=rested)

    def _other_loops(self) -> tuple[Any, ...]:
        config = self._config
        return (
            Loop("surplus", self._give_back_surplus, every_seconds=0.5).run(self._stop),
            Loop("escalate", self._escalation.run_once, every_seconds=LOOK_SECONDS).run(self._ended),
            Loop("wear", self._wear.run_once, every_seconds=WEAR_LOOK_SECONDS).run(self._stop),
            Loop("stage", self._stage, every_seconds=config.stage_seconds * UPKEEP_SHARE).run(self._stop),
            Loop("reap", self._reap, every_seconds=config.reap_seconds * UPKEEP_SHARE).run(self._stop),
            Loop("notes", self._notebook.run_once, every_seconds=0.2).run(self._ended),
            Loop("report", self._reporter.run_once, every_seconds=0.2).run(self._ended),
            Loop("heartbeat", self._pulse.run_once, every_seconds=0.0).run(self._ended),
            self._observing.look_around(lambda: self._children.executors, self._ended),
            self._listen(),
        )

    def _signalled(self) -> None:
        self._hurry = self._stop.is_set()
        self._begin_to_stop()

    def _begin_to_stop(self) -> None:
        self._stop.set()
        self._stir.set()

    async def _open(self) -> None:
        pause = 0.5
        while not self._stop.is_set():
            try:
                await self._client.open()
                await self._register(())
            except StoreUnavailable as error:
                log.warning("keeper.store_unavailable", extra={"error": str(error)})
                await wait_for_event(self._stop, pause)
                pause = min(pause * 2, 10.0)
            else:
                log.info("keeper.started", extra={"pool": self._config.pool, "slots": self._config.slots})
                return

    async def _register(self, tasks: Sequence[str]) -> None:
        worker_id = await self._client.register(self._registration, tasks)
        if worker_id != self._worker_id:
            self._worker_id = worker_id
            self._renamed.set()

    def _status(self, lag_ms: int = 0) -> WorkerStatus:
        self._idle = self._idle and self._has_room()
        used = usage.of_processes([os.getpid(), *(executor.pid for executor in self._children.executors)])
        return WorkerStatus(
            state=self._state,
            in_use=self._children.in_use,
            idle=self._idle,
            tasks=tuple(self._known_tasks()),
            lag_ms=lag_ms,
            losses=self._children.losses,
            tainted=len(self._children.tainted),
            resources=json.dumps(_summed(executor.resources for executor in self._children.executors)),
            dropped=self._observing.dropped,
            memory_kb=used.memory_kb,
            cpu_ms=used.cpu_ms,
        )

    def _has_room(self) -> bool:
        """Whether a wake-up is worth its price: room for solo jobs alone is left to the poll."""
        served = [intake for intake in self._intakes if intake.tasks]
        return bool(served and served[0].want)

    async def _say_goodbye(self) -> None:
        self._state = "stopped"
        try:
            await asyncio.wait_for(self._client.worker_heartbeat(self._status()), 5)
        except (StoreUnavailable, TimeoutError) as error:
            log.warning("keeper.goodbye_failed", extra={"error": str(error)})
        await self._client.close()

    # -- what executors say --------------------------------------------------------------------------------

    def _hear(self, executor: ExecutorProcess, message: dict[str, Any]) -> None:
        for task, isolation in message.get("known", ()):
            self._know(task, isolation)
        executor.resources = message.get("resources", executor.resources)
        for ticket_note in message.get("notes", ()):
            self._on_note(executor, *ticket_note)
        self._observing.look((executor,))
        if outcomes := message.get("outcomes"):
            for outcome in outcomes:
                self._on_outcome(executor, *outcome)
            self._dispatcher.moved()
            self._wear.ended(executor, len(outcomes))
        if self._children.retired:
            self._children.dismiss_retired()
        if executor.reserved and not executor.in_hand:
            executor.reserved = False
        self._deal()
        self._stir.set()

    def _know(self, task: str, isolation: str) -> None:
        self._tasks.add(task)
        mine = self._intake_of(isolation)
        for intake in (self._intake, self._solo_intake):
            (intake.tasks.add if intake is mine else intake.tasks.discard)(task)

    def _intake_of(self, isolation: str) -> Intake:
        return self._solo_intake if isolation == SOLO else self._intake

    def _deal(self) -> None:
        self._dispatcher.deal(self._children.shared)
        if self._dispatcher.solo:
            self._dispatcher.deal_solo(self._children.solo)
            self._children.provide_solo(self._dispatcher.solo)

    def _on_note(self, executor: ExecutorProcess, ticket: int, number: int, kind: str, *told: str) -> None:
        def answer(word: str) -> None:
            if number:
                executor.send({"noted": [[ticket, number, word]]})

        name, data = told
        if (held := executor.in_hand.get(ticket)) is None:
            answer("lost")
        elif kind == SETTLE:
            self._notebook.after(held, answer)
        elif kind == SETTLED:
            held.settle()
            executor.renewed(held)
            executor.refresh_deadline()
            self._holdings.drop([held.lease])
        else:
            self._notebook.add(held, Note(NoteKind(kind), data, name), answer)

    def _on_outcome(self, executor: ExecutorProcess, kind: str, ticket: int, *facts: Any) -> None:
        held = executor.taken_back(ticket)
        if held is None:
            return
        match kind, facts:
            case "done", (result, seconds):
                self._dispatcher.ended(held.job.task, seconds)
                self._report(held, Done(result, milliseconds(seconds)))
            case "settled", (seconds,):
                # Its handler has completed it, in its own transaction: there is nothing left to write.
                self._dispatcher.ended(held.job.task, seconds)
                self._notebook.forget(held)
                self._observing.settled(held, Done(None, milliseconds(seconds)))
                self._holdings.drop([held.lease])
            case "not_here", (message,):
                self._not_here(held, message)
            case _:
                self._on_less(executor, held, outcome_of(kind, facts))

    def _on_less(self, executor: ExecutorProcess, held: Held, outcome: Outcome) -> None:
        """Of a run that was no success."""
        if executor.solo and (output := output_of(held, executor.output)):
            evidence: Any = outcome
            told = json.loads(evidence.evidence)
            outcome = replace(evidence, evidence=json.dumps({**told, **output}, ensure_ascii=False))
        match outcome:
            case Failed():
                _tell("job.failed", held, error=f"{outcome.type}: {outcome.message}"[:200], code=outcome.code)
            case Quarantined():
                _tell("job.quarantined", held, error=outcome.message, code=outcome.reason)
        if isinstance(outcome, Failed | Snoozed | Discarded):
            self._dispatcher.ended(held.job.task, outcome.run_ms / 1000)
        self._report(held, outcome)

    def _not_here(self, held: Held, message: str) -> None:
        """Others may run it; this worker looks again later."""
        task = held.job.task
        self._away[task] = self._clock() + TASK_AWAY_SECONDS
        for tasks in (self._tasks, self._intake.tasks, self._solo_intake.tasks):
            tasks.discard(task)
        log.warning("task.not_here", extra={"task": task, "error": message})
        self._report(held, Released("task_not_here"))

    def _report(self, held: Held, outcome: Outcome) -> None:
        self._notebook.end(held, outcome)

    def _hand_on(self, held: Held, outcome: Outcome) -> None:
        if held.lost:
            self._holdings.drop([held.lease])  # nothing is submitted after the lease is lost
        else:
            self._reporter.add(held, outcome)

    # -- fetch ---------------------------------------------------------------------------------------------

    async def _fetch(self) -> bool:
        self._stir.clear()
        if self._fresh:
            await self._sort()
        now = self._clock()
        hungry = [] if self._holds_back() else [intake for intake in self._intakes if intake.want]
        claimed = [await self._claim_for(intake, now) for intake in hungry]
        if any(claimed):
            return True
        if hungry and not self._idle and self._has_room():
            await self._declare_idle()
            return True
        await self._probe(now)
        await wait_for_event(self._stir, self._pause(now, hungry))
        return True

    async def _claim_for(self, intake: Intake, now: float) -> bool:
        """Claim from the open queues as much as there is room for; False where none is open."""
        want, queues = intake.want, intake.open_queues(now)
        for queue in queues:
            want -= await self._claim(intake, queue, want)
            if want <= 0:
                break
        return bool(queues)

    def _holds_back(self) -> bool:
        full = self._reporter.characters > MAX_UNREPORTED_CHARACTERS
        trouble = self._reporter.trouble or self._notebook.trouble or self._pulse.failing
        return self._stop.is_set() or trouble or full

    def _pause(self, now: float, hungry: Sequence[Intake]) -> float:
        poll = self._config.poll_seconds
        tries = [intake.next_try() - now for intake in hungry]
        return min(poll, max(0.001, min(tries))) if tries else min(poll, 0.25)

    def _known_tasks(self) -> list[str]:
        return sorted(self._tasks)

    async def _claim(self, intake: Intake, queue: str, want: int) -> int:
        began = self._clock()
        after = intake.marks.start(queue, began)
        try:
            jobs = await self._client.claim(queue, sorted(intake.tasks), want, after)
        except StoreUnavailable:
            intake.missed()
            raise
        now = self._clock()
        intake.marks.claimed(queue, after, jobs, limit=want, began=began, now=now)
        intake.claimed(jobs, began=began, now=now)
        if not jobs:
            return 0
        held = self._holdings.claimed(jobs, began, worker_id=self._worker_id)
        if self._ordered_at >= began:
            self._pulse.look()  # the order may have meant one of these
        if self._stop.is_set() or now - began > self._config.lease_seconds / 2:
            # Too late to begin: we are stopping, or the claim itself took half of the lease.
            for one in held:
                self._report(one, Released("shutdown" if self._stop.is_set() else "not_started"))
        else:
            self._fresh += held
            await self._sort()
        return len(jobs)

    async def _sort(self) -> None:
        """Deal out what has been leased, each by its revision. Where that cannot be read now, it stays leased."""
        await self._revisions.read(held.job.revision_id for held in self._fresh)
        fresh, self._fresh = self._fresh, []
        self._dispatcher.add([held for held in fresh if self._configure(held)])
        self._deal()

    def _configure(self, held: Held) -> bool:
        """Take in what the job's revision says; False where the job has been given back."""
        held.config = config = self._revisions.get(held.job.revision_id)
        isolation = config.isolation if config is not None else None
        held.solo = isolation == SOLO or (isolation is None and held.job.task in self._solo_intake.tasks)
        if self._stop.is_set():
            self._report(held, Released("shutdown"))
        elif held.solo and not self._config.isolated:
            self._not_here(held, "it asks for an executor to itself, and the pool has none (`isolated` is 0)")
        else:
            if isolation is not None and held.job.task not in self._intake_of(isolation).tasks:
                # What waits is what the next claims bring, whatever the code says by now.
                self._know(held.job.task, isolation)
            if config is not None and config.timeout_seconds is not None:
                self._escalation.watch(held)
            return True
        return False

    async def _declare_idle(self) -> None:
        # Declare, then claim once more, then wait: what was enqueued in between is found by that claim.
        self._idle = True
        await self._client.worker_heartbeat(self._status())
        self._reopen()

    def _reopen(self) -> None:
        for intake in self._intakes:
            intake.marks.reopen()

    def _wake(self, queue: str | None, priority: int) -> None:
        if queue is None:
            self._reopen()
        else:
            for intake in self._intakes:
                intake.marks.wake(queue, priority)
        self._stir.set()

    async def _listen(self) -> None:
        """Listen under the worker's id, and anew where it gets another one."""
        while True:
            self._renamed.clear()
            listening = asyncio.create_task(
                self._wakeups.listen(self._worker_id, woken=self._wake, ordered=self._ordered)
            )
            try:
                await self._renamed.wait()
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    def _ordered(self, word: str) -> None:
        if word == CANCEL:
            self._ordered_at = self._clock()
            self._pulse.look()
        elif word == STOP:
            self._hurry = True
            self._begin_to_stop()
        elif word == DRAIN:
            self._begin_to_stop()

    def _cancel(self, held: Held, cause: str) -> None:
        """What has not begun is given back without being run; a run gets its token."""
        if held.executor is not None:
            self._escalation.ask(held, Cause(cause))
        elif held in self._fresh or self._dispatcher.withdraw(held):
            self._fresh = [one for one in self._fresh if one is not held]
            self._report(held, Released(cause))
            self._stir.set()

    async def _probe(self, now: float) -> None:
        """Ask the executors for tasks that wait in the queues and are not known here."""
        ready = self._children.ready
        if now < self._next_probe or self._holds_back() or not ready:
            return
        self._next_probe = now + PROBE_SECONDS
        self._away = {task: until for task, until in self._away.items() if until > now}
        names = await self._client.waiting_tasks([*self._tasks, *self._away])
        for executor in ready if names else ():
            executor.send({"resolve": names})
        self._away.update(dict.fromkeys(names, now + TASK_AWAY_SECONDS))

    async def _give_back_surplus(self) -> None:
        for held in self._dispatcher.surplus(self._children.solo):
            if held.config is not None:
                self._know(held.job.task, held.config.isolation)  # leased again when its own line has room
            self._report(held, Released("not_started"))
        self._deal()  # nothing may be heard for hours from who runs
        self._children.dismiss_idle()

    # -- upkeep --------------------------------------------------------------------------------------------

    async def _stage(self) -> None:
        await self._client.stage()

    async def _reap(self) -> None:
        await self._client.reap()

    # -- drain ---------------------------------------------------------------------------------------------

    async def _drain(self, fetching: asyncio.Task[None]) -> None:
        """Fetching has stopped; tokens are set, heartbeats go on. What has not finished in time is released."""
        self._state, self._idle = "draining", False
        log.info("keeper.draining", extra={"in_hand": len(self._holdings)})
        self._observing.draining(self._worker_id)
        # A claim under way is waited for: what it leases has to be given back.
        await asyncio.wait({fetching}, timeout=SETTLE_SECONDS)
        for held in (*self._fresh, *self._dispatcher.clear()):
            self._report(held, Released("shutdown"))
        self._children.drain()
        ends_at = self._clock() + self._config.drain_seconds
        while self._children.busy and not self._hurry and self._clock() < ends_at:
            self._stir.clear()
            await wait_for_event(self._stir, min(0.5, ends_at - self._clock()))
        await self._children.end()
        # The last word of each run goes to the record, within a bound.
        half = min(SETTLE_SECONDS, self._config.lease_seconds) / 2
        await self._settle_all(half, then=half)

    async def _settle_all(self, seconds: float, *, then: float) -> None:
        """Wait for what handlers have told, then for how their runs ended, which is worth more."""
        ends_at = self._clock() + seconds
        while self._notebook.pending and self._clock() < ends_at:
            await asyncio.sleep(0.02)
        if self._notebook.pending:
            log.error("notebook.pending", extra={"outcomes": self._notebook.pending})
            self._notebook.give_up()
        ends_at += then
        while self._reporter.pending and self._clock() < ends_at:
            await asyncio.sleep(0.02)
        if self._reporter.pending:
            log.error("keeper.unreported", extra={"outcomes": self._reporter.pending})


def _summed(resources: Iterable[dict[str, dict[str, int]]]) -> dict[str, Counter[str]]:
    """What all executors say of their resources, by name."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in resources:
        for name, figures in one.items():
            found[name].update(figures)
    return found


def _registration(config: KeeperConfig) -> Registration:
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


def _tell(event: str, held: Held, *, error: str, code: str) -> None:
    fields = {"job": held.job.id, "fence": held.job.fence, "task": held.job.task, "code": code, "error": error}
    log.warning(event, extra=fields)
