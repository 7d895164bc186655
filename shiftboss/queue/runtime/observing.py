"""What the keeper tells observers: through a bounded backlog, to a process of their own, never waiting for it.

Without observers there is no process, and nothing is put down. What the backlog has no room for, and what a
process that died had in hand, is dropped and counted.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from shiftboss.queue.contract import Lease
from shiftboss.queue.observation import Backlog, JobFacts, Told, WorkerFacts
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.executor_process import ExecutorProcess
from shiftboss.queue.runtime.frames import Unpacker, pack
from shiftboss.queue.runtime.holdings import Held, Holdings
from shiftboss.queue.runtime.loop import wait_for_event

log = logging.getLogger("shiftboss.observing")

BATCH = 100
LOOK_SECONDS = 0.1
"""How often executors are looked at for runs that have begun."""

END_SECONDS = 10.0
"""So long, and no longer than it drains, a worker that ends waits for what observers have not been told yet."""

LONGEST_PAUSE_SECONDS = 30.0
ASKED = frozenset({"user", "timeout", "superseded"})
"""Causes that end a job also before it has begun."""


class Observing:
    """Keeps the observers' process and tells it what happens to jobs."""

    def __init__(self, *, config: KeeperConfig, holdings: Holdings, clock: Callable[[], float]) -> None:
        self.wanted = bool(config.observers)
        self._config = config
        self._holdings = holdings
        self._clock = clock
        self._backlog: Backlog[Told] = Backlog(config.observer_backlog)
        self._some = asyncio.Event()
        self._begun: set[Lease] = set()
        self._keeping: asyncio.Task[None] | None = None
        self._in_hand = 0
        self._ending = False

    @property
    def dropped(self) -> int:
        """Observations that no observer got."""
        return self._backlog.dropped

    # -- what happens --------------------------------------------------------------------------------------

    def look(self, executors: Iterable[ExecutorProcess]) -> None:
        """Tell of runs that have begun; to be called before their outcomes are taken."""
        if not self.wanted:
            return
        for executor in executors:
            for held in executor.in_hand.values():
                if held.lease not in self._begun and (began_at := executor.began_at(held)):
                    self._begun.add(held.lease)
                    self._started(held, began_at)

    def settled(self, held: Held, outcome: Outcome) -> None:
        """Tell of a run's end that the record holds now."""
        if not self.wanted:
            return
        begun = held.lease in self._begun
        self._begun.discard(held.lease)
        if not begun and isinstance(outcome, Done | Failed | Lost | Snoozed | Discarded):
            self._started(held, held.began_at or self._clock())  # it was too short for a look
        match outcome:
            case Done(run_ms=run_ms):
                self._tell("on_success", held, seconds=run_ms / 1000)
            case Failed(code=code, type=kind, run_ms=run_ms, backoff_seconds=wait):
                seconds = run_ms / 1000
                self._tell("failed", held, seconds=seconds, code=code, error_type=kind, retry_in_seconds=wait)
            case Lost(code=code):
                self._tell("lost", held, code=code)
            case Snoozed(seconds=wait, run_ms=run_ms):
                self._tell("snoozed", held, seconds=run_ms / 1000, code="snoozed", retry_in_seconds=wait)
            case Discarded(run_ms=run_ms):
                self._tell("discarded", held, seconds=run_ms / 1000, code="discarded")
            case Quarantined(reason=reason):
                self._tell("on_failure", held, code=str(reason))
            case Released(code=code):
                if begun or code in ASKED:
                    self._tell("on_abort", held, code=code)

    def draining(self, worker_id: int) -> None:
        """Tell that the worker takes no more jobs."""
        if self.wanted:
            facts = WorkerFacts(
                at=time.time(),
                worker_id=worker_id,
                pool=self._config.pool,
                host=socket.gethostname(),
                pid=os.getpid(),
                in_hand=len(self._holdings),
            )
            self._put(("on_drain", asdict(facts)))

    def _started(self, held: Held, began_at: float) -> None:
        self._tell("on_start", held, at=time.time() - max(0.0, self._clock() - began_at))

    def _tell(self, word: str, held: Held, *, at: float | None = None, **facts: Any) -> None:
        job = held.job
        told = JobFacts(
            at=time.time() if at is None else at,
            job_id=job.id,
            task=job.task,
            queue=job.queue,
            priority=job.priority,
            attempt=job.failures + job.losses + 1,
            fence=job.fence,
            worker_id=held.worker_id,
            **facts,
        )
        # Whether a failure was the last one is what the record says; the observers' process asks it.
        counters = {"failures": job.failures + 1, "losses": job.losses + 1}
        self._put((word, asdict(told) if word.startswith("on_") else {**asdict(told), **counters}))

    def _put(self, told: Told) -> None:
        self._backlog.put([told])
        self._some.set()

    # -- the process ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, where there is anybody to tell."""
        if self.wanted:
            self._keeping = asyncio.create_task(self._keep())

    async def end(self) -> None:
        """Let observers hear what waits for them, within a bound, and end their process."""
        if self._keeping is None:
            return
        self._ending = True
        self._some.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._keeping), min(END_SECONDS, self._config.drain_seconds))
        self._keeping.cancel()
        await asyncio.wait({self._keeping})
        if left := len(self._backlog):
            self._backlog.remove(left, told=False)
            log.warning("observers.not_told", extra={"observations": left})

    async def _keep(self) -> None:
        """One process after another, until the end."""
        failures = 0
        while not (self._ending and not self._backlog):
            began = self._clock()
            try:
                await self._serve()
            except Exception:
                log.exception("observers.failed")
            self._backlog.remove(self._in_hand, told=False)
            self._in_hand = 0
            if self._ending:
                return
            failures = failures + 1 if self._clock() - began < LONGEST_PAUSE_SECONDS else 0
            await asyncio.sleep(min(LONGEST_PAUSE_SECONDS, 0.1 * 2 ** min(failures, 10)))

    async def _serve(self) -> None:
        """One process, from its start to its end."""
        ours, theirs = socket.socketpair()
        orders = {"keeper": os.getpid(), "socket": theirs.fileno(), "observers": list(self._config.observers)}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._config.observer_argv,
                json.dumps(orders),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            await self._feed(reader, writer)
        finally:
            writer.close()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            exit_code = await process.wait()
            if not self._ending:
                log.error("observers.died", extra={"exit_code": exit_code, "dropped": self.dropped})

    async def _feed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Batch after batch, each when the one before has been told, until the process or this worker ends."""
        unpacker = Unpacker()
        gone = asyncio.create_task(reader.read(1 << 16))  # its hello, or its end
        try:
            while True:
                if gone.done():
                    if not (data := gone.result()):
                        return
                    for message in unpacker.feed(data):
                        self._backlog.remove(message["told"], told=True)
                        self._in_hand -= message["told"]
                    gone = asyncio.create_task(reader.read(1 << 16))
                if not self._in_hand and (batch := self._backlog.first(BATCH)):
                    self._in_hand = len(batch)
                    writer.write(pack({"told": batch}))
                    await writer.drain()
                if self._ending and not self._backlog:
                    return
                self._some.clear()
                waits = {gone} if self._in_hand else {gone, asyncio.create_task(self._some.wait())}
                _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for task in pending - {gone}:
                    task.cancel()
        finally:
            gone.cancel()

    async def look_around(self, executors: Callable[[], Iterable[ExecutorProcess]], stop: asyncio.Event) -> None:
        """Look for runs that have begun, again and again, and forget those whose lease was lost."""
        while self.wanted and not await wait_for_event(stop, LOOK_SECONDS):
            self.look(executors())
            self._begun = {lease for lease in self._begun if self._holdings.get(lease) is not None}
