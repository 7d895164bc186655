"""The keeper's child processes: executors and the sentinel.

*Shared* executors are replaced when they die. *Solo* ones have one thread, for jobs that ask for an executor to
themselves; they are started when such jobs are there, and ended when none has come for a while. *Retired* ones
have done enough (wear.py) and *tainted* ones hold a deaf job (escalation.py): both have been replaced already, and
wait for the end of what runs in them.
"""

import asyncio
import itertools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from shiftboss.queue.outcomes import Lost, Outcome
from shiftboss.queue.retry import backoff_seconds
from shiftboss.queue.runtime import ending
from shiftboss.queue.runtime.board import MAX_EXECUTORS, DeadlineBoard
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.deaths import settle
from shiftboss.queue.runtime.executor_process import Death, ExecutorProcess
from shiftboss.queue.runtime.holdings import Held
from shiftboss.queue.runtime.leftovers import Notes

log = logging.getLogger("shiftboss.children")

MAX_START_FAILURES = 5
END_SECONDS = 10.0
IDLE_SECONDS = 60.0
"""So long a solo executor without a job is kept."""


class Children:
    """Starts, watches, replaces and ends them.

    `hear(executor, message)` gets what executors say, `report(held, outcome)` what a death does to the jobs in
    hand, and `give_up()` is called when executors end again and again before they are ready, or too many of them
    are tainted: `failure` says which.
    """

    def __init__(
        self,
        *,
        config: KeeperConfig,
        clock: Callable[[], float],
        hear: Callable[[ExecutorProcess, dict[str, Any]], None],
        report: Callable[[Held, Outcome], None],
        give_up: Callable[[], None],
    ) -> None:
        self.shared: list[ExecutorProcess] = []
        self.solo: list[ExecutorProcess] = []
        self.retired: list[ExecutorProcess] = []
        self.tainted: list[ExecutorProcess] = []
        self.overrun = False
        self.losses = 0
        self._config = config
        self._clock = clock
        self._hear = hear
        self._report = report
        self._give_up = give_up
        self._deadlines = DeadlineBoard()
        self._places = list(range(MAX_EXECUTORS - 1, -1, -1))
        self._mark = ending.new_mark()
        self._marks = itertools.count()
        self._notes = Notes(config.run_folder, pool=config.pool, mark=self._mark)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sentinel: asyncio.subprocess.Process | None = None
        self._start_failures = 0
        self._stopping = False

    @property
    def hopeless(self) -> bool:
        """Whether executors end again and again before they are ready."""
        return self._start_failures >= MAX_START_FAILURES

    @property
    def failure(self) -> str | None:
        """Why this worker cannot go on, so that another process has to take its place."""
        if self.hopeless:
            return "executors end before they are ready; their own messages stand above"
        if self.overrun:
            return "as many executors as the worker has are held by jobs that do not end when they are asked to"
        return None

    @property
    def executors(self) -> list[ExecutorProcess]:
        """All of them."""
        return [*self.shared, *self.solo, *self.retired, *self.tainted]

    @property
    def ready(self) -> list[ExecutorProcess]:
        """Shared executors that have said hello and live."""
        return [executor for executor in self.shared if executor.ready]

    @property
    def in_use(self) -> int:
        """Slots that have a job; a solo executor with a job counts as one, as far as there are slots."""
        serving = (*self.shared, *self.solo, *self.retired)
        used = sum(min(len(executor.in_hand), executor.threads) for executor in serving)
        return min(used, self._config.slots)

    @property
    def busy(self) -> bool:
        """Whether any executor has a job in hand."""
        return any(executor.in_hand for executor in self.executors)

    async def start(self) -> None:
        """End what an earlier keeper left behind, and start the sentinel and all executors."""
        await asyncio.to_thread(self._notes.kill_leftovers)
        self._background(self._keep_sentinel())
        for _ in range(self._config.processes):
            self._start_executor()

    def provide_solo(self, jobs: int) -> None:
        """Start solo executors for so many waiting jobs, as far as there may be so many."""
        starting = sum(not executor.ready and not executor.dismissed for executor in self.solo)
        for _ in range(min(jobs - starting, self._config.isolated - len(self.solo))):
            if not self._stopping and not self.hopeless:
                self._start_executor(solo=True, after_seconds=self._pause_seconds)

    def dismiss_idle(self) -> None:
        """End solo executors for which no job has come for a while."""
        before = self._clock() - IDLE_SECONDS
        for executor in self.solo:
            if executor.ready and not executor.in_hand and executor.idle_since < before:
                executor.dismiss()

    def retire(self, executor: ExecutorProcess, why: str) -> None:
        """It gets no more jobs, another takes its place, and it is ended once it has none in hand.

        One that suspects wait for goes on, and so does one for which there is no room among the retired: there are
        no more than the worker has shared ones, however long what runs in them takes.
        """
        if self._stopping or not executor.ready or executor.reserved:
            return
        if executor in self.solo and not executor.in_hand:
            self._log_retired(executor, why)
            executor.dismiss()
        elif executor in self.shared and len(self.retired) < self._config.processes:
            self._log_retired(executor, why)
            self.shared.remove(executor)
            self.retired.append(executor)
            executor.empty()
            self._start_executor()

    def dismiss_retired(self) -> None:
        """End retired executors that have nothing in hand any more."""
        for executor in self.retired:
            if executor.answers and not executor.in_hand and not executor.dismissed:
                executor.dismiss()

    def _log_retired(self, executor: ExecutorProcess, why: str) -> None:
        log.info("executor.retired", extra={"pid": executor.pid, "why": why, "jobs": executor.jobs})

    def taint(self, executor: ExecutorProcess) -> None:
        """A job in it is deaf: it gets no more of them, another takes its place, and it is ended as `put_down`
        says. Where as many shared ones as `processes` wait for that already, the worker gives up instead."""
        if executor in self.tainted:
            return
        kept = sum(not one.solo and not one.is_put_down for one in self.tainted)
        if executor.neighbours and kept >= self._config.processes:
            if self._stopping:
                return  # the end of the drain ends it
            log.error("executor.too_many_tainted", extra={"pid": executor.pid, "tainted": kept})
            self.overrun = True
            self._give_up()
            return
        log.warning("executor.tainted", extra={"pid": executor.pid, "neighbours": len(executor.neighbours)})
        replaced = self._remove(executor)
        self.tainted.append(executor)
        executor.taint()
        if not replaced and not executor.solo and not self._stopping:
            self._start_executor()

    def put_down(self, executor: ExecutorProcess) -> None:
        """Kill a tainted executor; its death settles the deaf jobs."""
        executor.put_down()

    def drain(self) -> None:
        """Set the tokens of what runs, and have the rest given back. Deaths are expected from now on."""
        self._stopping = True
        for executor in self.executors:
            executor.send({"drain": True})

    async def end(self) -> None:
        """End all executors: at once where they have a job in hand, which is settled then."""
        leaving = self.executors
        for executor in leaving:
            if executor.in_hand or not executor.ready:
                executor.kill()
            else:
                executor.send({"stop": True})
        try:
            await asyncio.wait_for(asyncio.gather(*(executor.gone() for executor in leaving)), END_SECONDS)
        except TimeoutError:
            for executor in leaving:
                executor.kill()

    async def close(self) -> None:
        """End the sentinel; nothing is left."""
        for task in self._tasks:
            task.cancel()
        if self._sentinel is not None and self._sentinel.returncode is None:
            self._sentinel.kill()
            await self._sentinel.wait()
        await asyncio.to_thread(ending.end_marked, self._mark)
        self._notes.clear()

    def _background(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_sentinel(self) -> None:
        interval = max(0.05, self._config.margin_seconds / 4)
        argv = (sys.executable, "-P", "-m", "shiftboss.queue.runtime.sentinel")
        facts = (str(self._deadlines.fd), str(os.getpid()), str(interval), self._mark)
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

    def _start_executor(self, *, solo: bool = False, after_seconds: float = 0.0) -> None:
        executor = ExecutorProcess(
            place=self._places.pop(),
            solo=solo,
            mark=f"{self._mark}.{next(self._marks)}",
            config=self._config,
            deadlines=self._deadlines,
            clock=self._clock,
            on_message=self._on_message,
            on_death=self._on_death,
        )
        (self.solo if solo else self.shared).append(executor)
        self._background(self._start(executor, after_seconds))

    async def _start(self, executor: ExecutorProcess, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        if self._stopping:
            return
        try:
            await executor.start()
        except OSError as error:
            log.error("executor.not_started", extra={"error": str(error)})
            self._remove(executor)
            self._places.append(executor.place)
            self._start_again(executor, failed=True)
            self._hear(executor, {})  # a job may wait for this one to itself
        else:
            self._notes.add(executor.pid)

    def _on_message(self, executor: ExecutorProcess, message: dict[str, Any]) -> None:
        if "hello" in message:
            executor.ready = True
            self._start_failures = 0
            log.info("executor.ready", extra={"pid": executor.pid, "tasks": len(message["known"])})
        if "gave_back" in message:
            executor.answers = True
        self._hear(executor, message)

    def _on_death(self, executor: ExecutorProcess, death: Death) -> None:
        replaced = self._remove(executor)
        self._places.append(executor.place)
        expected = self._stopping or executor.dismissed
        in_hand = [held.job.id for held in (*death.started, *death.ended)]
        event = "executor.ended" if expected else "executor.died"
        facts = {"pid": executor.pid, "cause": death.cause, "jobs": in_hand}
        log.log(logging.INFO if expected else logging.ERROR, event, extra=facts)
        outcomes = settle(death, draining=self._stopping, now=self._clock(), backoff_seconds=self._backoff_seconds)
        for held, outcome in outcomes:
            self._report(held, outcome)
        self._notes.remove(executor.pid)
        if not expected:
            self.losses += sum(isinstance(outcome, Lost) for _, outcome in outcomes)
            if not replaced:
                self._start_again(executor, failed=not death.was_ready)
        self._hear(executor, {})  # there may be room elsewhere, or an end to wait for

    def _remove(self, executor: ExecutorProcess) -> bool:
        """Forget an executor; True where another has taken its place already."""
        for group in (self.shared, self.solo, self.retired, self.tainted):
            if executor in group:
                group.remove(executor)
                return group is self.retired or group is self.tainted
        return True

    def _backoff_seconds(self, held: Held) -> float:
        backoff = held.config.backoff if held.config is not None else None
        return backoff_seconds(
            None if isinstance(backoff, str) else backoff,  # the task's own function is not here
            TimeoutError(),
            held.job.failures + 1,
            base_seconds=self._config.backoff_seconds,
            cap_seconds=self._config.backoff_cap_seconds,
        )

    @property
    def _pause_seconds(self) -> float:
        return float(0.1 * (2**self._start_failures - 1))

    def _start_again(self, executor: ExecutorProcess, *, failed: bool) -> None:
        self._start_failures = self._start_failures + 1 if failed else 0
        if self.hopeless:
            self._give_up()
        elif not self._stopping and not executor.solo:  # a solo one is started when a job is there
            self._start_executor(after_seconds=self._pause_seconds)
