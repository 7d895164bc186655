"""What the maintainer sees of the whole for the console: samples, histograms and marks.

Their statements look through tables, so they have connections with settings of their own: one for what is quick,
so that alarms are never old, one for what may take its time.
"""

import logging
import time
from collections.abc import Sequence

from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.runtime.loop import Loop
from shiftboss.queue.store import histograms, marks, samples
from shiftboss.queue.store.samples import Part

log = logging.getLogger("shiftboss.sampler")

SYSTEM = System()
SESSION = "set timezone = 'UTC'; set jit = off;"
LOOK_SECONDS = 1.0
"""How often is asked what is due; how old a part may become says itself."""
HISTOGRAM_SECONDS = 10.0
SUMMARIZE_SECONDS = 60.0
MARK_SECONDS = 5.0


class Sampler:
    """The duties of looking, each a `run_once()` on the one Loop. Safe in many processes at once."""

    def __init__(self, dsn: str) -> None:
        self._quick = Connection(dsn, name="maintainer (samples)", session=SESSION)
        self._slow = Connection(dsn, name="maintainer (statistics)", session=SESSION)
        self._not_before: dict[Part, float] = {}

    def loops(self) -> tuple[Loop, ...]:
        """The duties, to be run beside the others."""
        return (
            Loop("look", self.look, every_seconds=LOOK_SECONDS),
            Loop("look_long", self.look_long, every_seconds=LOOK_SECONDS),
            Loop("write_histograms", self.write_histograms, every_seconds=HISTOGRAM_SECONDS),
            Loop("summarize", self.summarize, every_seconds=SUMMARIZE_SECONDS),
            Loop("mark", self.mark, every_seconds=MARK_SECONDS),
        )

    async def look(self) -> None:
        """Look at what is seen at a glance."""
        await self._look_at(samples.LIGHT, self._quick)

    async def look_long(self) -> None:
        """Look at what may take its time."""
        await self._look_at(samples.HEAVY, self._slow)

    async def _look_at(self, parts: Sequence[Part], connection: Connection) -> None:
        now = time.monotonic()
        for part in await connection.run(samples.due(parts, authority=SYSTEM)):
            if now < self._not_before.get(part, now):
                continue
            begun = time.monotonic()
            try:
                await connection.run(samples.look(part, authority=SYSTEM))
            except StoreUnavailable:
                # Nothing was kept that tells how long it took: perhaps as long as a statement may.
                ended = time.monotonic()
                self._not_before[part] = ended + samples.REST * (ended - begun)
                raise

    async def write_histograms(self) -> None:
        """Write what has ended since the last time; after an absence an hour at a time."""
        more = await self._slow.run(histograms.write(authority=SYSTEM))
        if more:
            log.info("histograms.behind")

    async def summarize(self) -> None:
        """Keep the indexes by time up with the history."""
        await self._slow.run(histograms.summarize(authority=SYSTEM))

    async def mark(self) -> None:
        """Note deploys and lost workers."""
        await self._quick.run(marks.note(authority=SYSTEM))

    async def close(self) -> None:
        """End the connections."""
        await self._quick.close()
        await self._slow.close()
