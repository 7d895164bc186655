"""The event loop of an executor: coroutine jobs share it, each as a task in a lane of its own.

A coroutine that blocks delays the other coroutines of this executor, and nothing else: the socket belongs to the
main thread, the leases to the keeper.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from shiftboss.queue.runtime.ports import Lane

log = logging.getLogger("shiftboss.executor")

CLOSE_SECONDS = 1.0

Job = Callable[[], Coroutine[Any, Any, None]]


class Coroutines:
    """One loop in one thread. `new_lane` makes lanes; there are about as many as coroutines have run at once."""

    def __init__(self, new_lane: Callable[[], Lane]) -> None:
        self._new_lane = new_lane
        self._loop = asyncio.new_event_loop()
        self._free: list[Lane] = []
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself would let them be collected
        self._thread = threading.Thread(target=self._serve, name="loop", daemon=True)
        self._closing = False

    def start(self) -> None:
        """Start the thread, which goes on until the process ends or it is closed."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, if there is one. What jobs have left on the loop has a moment, then it is cancelled."""
        self._closing = True
        if self._thread.ident is None:
            self._loop.close()
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(3 * CLOSE_SECONDS)
        while self._free:
            self._free.pop().close()

    def _serve(self) -> None:
        while not self._closing:
            try:
                # What the user's code does to end it, in a task of its own or by loop.stop(), ends one round.
                self._loop.run_forever()
            except BaseException as error:
                log.warning("coroutines.interrupted", extra={"error": type(error).__name__})
        self._loop.run_until_complete(self._wind_up())
        self._loop.close()

    async def _wind_up(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            _, late = await asyncio.wait(left, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=CLOSE_SECONDS)

    def run(self, job: Job) -> None:
        """Run a job on the loop. The calling thread waits, so that the job has that thread's slot."""
        ended: Future[None] = Future()
        self._loop.call_soon_threadsafe(self._begin, job, ended)
        ended.result()

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """What comes of an awaitable on the loop. The calling thread waits."""

        async def awaited() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def _begin(self, job: Job, ended: "Future[None]") -> None:
        try:
            lane = self._free.pop() if self._free else self._new_lane()
            task = self._loop.create_task(job(), context=lane.context())
        except BaseException as error:
            ended.set_exception(error)
            return
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, lane, ended))

    def _ended(self, task: "asyncio.Task[None]", lane: Lane, ended: "Future[None]") -> None:
        self._tasks.discard(task)
        tidying = self._loop.create_task(self._tidy(lane), context=lane.context())
        self._tasks.add(tidying)
        tidying.add_done_callback(self._tasks.discard)
        # The slot does not wait for the tidying: a call that the job left behind in its lane may take long.
        ended.set_result(None)

    async def _tidy(self, lane: Lane) -> None:
        try:
            await lane.tidy()
        except BaseException as error:
            log.warning("lane.given_up", extra={"error": type(error).__name__})
        else:
            self._free.append(lane)
