"""The one Loop: it alone sleeps, jitters, catches, logs and stops. What is looped has a `run_once()`."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from shiftboss.queue.errors import StoreUnavailable

log = logging.getLogger("shiftboss.loop")

LONGEST_PAUSE_SECONDS = 3.0
"""So soon after the record's return work goes on."""


class Loop:
    """Runs `run_once` every `every_seconds` until stopped; after an error it waits longer each time.

    Waits are up to 30 % shorter, so that processes spread. Where `run_once` answers True there is more to do, and
    it is run again at once; so it is when `hint` is set, but after an error.
    """

    def __init__(
        self,
        name: str,
        run_once: Callable[[], Awaitable[bool | None]],
        *,
        every_seconds: float,
        hint: asyncio.Event | None = None,
    ) -> None:
        self._name = name
        self._run_once = run_once
        self._every_seconds = every_seconds
        self._hint = hint
        self._errors = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Loop until `stop` is set."""
        while not stop.is_set():
            if not await self._guarded():
                await self._pause(stop)

    async def _pause(self, stop: asyncio.Event) -> None:
        if self._hint is None or self._errors:
            await wait_for_event(stop, self._pause_seconds())
            return
        waiting = [asyncio.create_task(event.wait()) for event in (stop, self._hint)]
        await asyncio.wait(waiting, timeout=self._pause_seconds(), return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        self._hint.clear()

    async def _guarded(self) -> bool:
        try:
            again = await self._run_once()
        except StoreUnavailable as error:
            self._errors += 1
            log.warning("loop.store_unavailable", extra={"loop": self._name, "error": str(error)})
        except Exception:
            self._errors += 1
            log.exception("loop.failed", extra={"loop": self._name})
        else:
            self._errors = 0
            return bool(again)
        return False

    def _pause_seconds(self) -> float:
        longest: float = self._every_seconds * 2.0 ** min(self._errors, 10)
        return min(longest, max(LONGEST_PAUSE_SECONDS, self._every_seconds)) * random.uniform(0.7, 1.0)


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Wait at most so long; True where the event is set."""
    try:
        await asyncio.wait_for(event.wait(), max(seconds, 0.0))
    except TimeoutError:
        return event.is_set()
    return True
