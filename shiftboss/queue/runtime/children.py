"""The keeper's child processes: executors, which are replaced when they die, and the sentinel."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from shiftboss.queue.outcomes import Outcome
from shiftboss.queue.runtime.board import DeadlineBoard
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.deaths import settle
from shiftboss.queue.runtime.executor_process import Death, ExecutorProcess
from shiftboss.queue.runtime.holdings import Held
from shiftboss.queue.runtime.leftovers import Notes

log = logging.getLogger("shiftboss.children")

MAX_START_FAILURES = 5
END_SECONDS = 10.0


class Children:
    """Starts, watches, replaces and ends them.

    `hear(executor, message)` gets what executors say, `report(held, outcome)` what a death does to the jobs in
    hand, and `give_up()` is called when executors end again and again before they are ready.
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
        self.executors: list[ExecutorProcess] = []
        self.losses = 0
        self._config = config
        self._clock = clock
        self._hear = hear
        self._report = report
        self._give_up = give_up
        self._deadlines = DeadlineBoard()
        self._notes = Notes(config.run_folder, pool=config.pool)
        self._tasks: set[asyncio.Task[None]] = set()
        self._sentinel: asyncio.subprocess.Process | None = None
        self._start_failures = 0
        self._stopping = False

    @property
    def hopeless(self) -> bool:
        """Whether executors end again and again before they are ready."""
        return self._start_failures >= MAX_START_FAILURES

    @property
    def ready(self) -> list[ExecutorProcess]:
        """Executors that have said hello and live."""
        return [executor for executor in self.executors if executor.ready]

    @property
    def in_use(self) -> int:
        """Slots that have a job."""
        return sum(min(len(executor.in_hand), executor.threads) for executor in self.executors)

    @property
    def busy(self) -> bool:
        """Whether any executor has a job in hand."""
        return any(executor.in_hand for executor in self.executors)

    def start(self) -> None:
        """End what an earlier keeper left behind, and start the sentinel and all executors."""
        self._notes.kill_leftovers()
        self._background(self._keep_sentinel())
        for place in range(self._config.processes):
            self._start_executor(place)

    def drain(self) -> None:
        """Set the tokens of what runs, and have the rest given back. Deaths are expected from now on."""
        self._stopping = True
        for executor in self.executors:
            executor.send({"drain": True})

    async def end(self) -> None:
        """End all executors: at once where they have a job in hand, which is settled then."""
        ending = list(self.executors)
        for executor in ending:
            if executor.in_hand or not executor.ready:
                executor.kill()
            else:
                executor.send({"stop": True})
        try:
            await asyncio.wait_for(asyncio.gather(*(executor.gone() for executor in ending)), END_SECONDS)
        except TimeoutError:
            for executor in ending:
                executor.kill()

    async def close(self) -> None:
        """End the sentinel; nothing is left."""
        for task in self._tasks:
            task.cancel()
        if self._sentinel is not None and self._sentinel.returncode is None:
            self._sentinel.kill()
            await self._sentinel.wait()
        self._notes.clear()

    def _background(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        self.executors.append(executor)
        self._background(self._start(executor, after_seconds))

    async def _start(self, executor: ExecutorProcess, after_seconds: float) -> None:
        await asyncio.sleep(after_seconds)
        if self._stopping:
            return
        try:
            await executor.start()
        except OSError as error:
            log.error("executor.not_started", extra={"error": str(error)})
            self.executors.remove(executor)
            self._start_again(executor.place, failed=True)
        else:
            self._notes.add(executor.pid)

    def _on_message(self, executor: ExecutorProcess, message: dict[str, Any]) -> None:
        if "hello" in message:
            executor.ready = True
            self._start_failures = 0
            log.info("executor.ready", extra={"pid": executor.pid, "tasks": len(message["known"])})
        self._hear(executor, message)

    def _on_death(self, executor: ExecutorProcess, death: Death) -> None:
        self.executors.remove(executor)
        level = logging.INFO if self._stopping else logging.ERROR
        in_hand = [held.job.id for held in (*death.started, *death.ended)]
        event = "executor.ended" if self._stopping else "executor.died"
        log.log(level, event, extra={"pid": executor.pid, "cause": death.cause, "jobs": in_hand})
        for held, outcome in settle(death, draining=self._stopping):
            self._report(held, outcome)
        self._notes.remove(executor.pid)
        self._hear(executor, {})  # there may be room elsewhere, or an end to wait for
        if not self._stopping:
            self.losses += len(in_hand)
            self._start_again(executor.place, failed=not death.was_ready)

    def _start_again(self, place: int, *, failed: bool) -> None:
        self._start_failures = self._start_failures + 1 if failed else 0
        if self.hopeless:
            self._give_up()
        elif not self._stopping:
            self._start_executor(place, after_seconds=0.1 * (2**self._start_failures - 1))
