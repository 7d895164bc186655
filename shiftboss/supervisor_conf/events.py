"""supervisord's events, taken as hints: something has changed, so look now and not a moment later.

Nothing of what they say is believed or kept. An event that is lost, because supervisord's buffer was full or the
agent hung, so costs no more than the time until the next look. That some were lost is seen by their serials, and
said.
"""

import asyncio
import logging
import os
import stat
from collections.abc import Callable

from shiftboss.queue.errors import ShiftbossError

log = logging.getLogger("shiftboss.listener")

KINDS = "PROCESS_STATE,SUPERVISOR_STATE_CHANGE"
BUFFERED = 10_000
"""Events that supervisord keeps for an agent that is busy; of its own accord it would keep ten."""

ANSWERS_TO = 3
"""The descriptor of the answers. The launcher makes it of the standard output, which anybody may print to."""

MOST_BYTES = 1 << 16
"""Of the text of an event, and of the line before it. Ours have some hundred."""


class NoEvents(ShiftbossError):
    """This process was not started as a listener of events."""


class Events:
    """The listener's end of supervisord's protocol. `hint` is called for each event, in the loop's thread."""

    def __init__(self, hint: Callable[[], None], *, source: int = 0, answers: int = ANSWERS_TO) -> None:
        self._hint = hint
        self._source = source
        self._answers = answers
        self._serial: int | None = None
        self.missed = 0
        """Events that supervisord had and this process was not told of."""

    @staticmethod
    def check(source: int = 0, answers: int = ANSWERS_TO) -> None:
        """Raise NoEvents where there is nobody to take events from."""
        for descriptor in (source, answers):
            try:
                is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
            except OSError:
                is_pipe = False
            if not is_pipe:
                raise NoEvents(
                    "--events is for the section that `shiftboss_supervisor_conf` writes: there supervisord sends "
                    "events to this program. Leave it out: all is seen without it too, up to a second later"
                )

    async def run(self) -> None:
        """Take events until no more come."""
        reader = asyncio.StreamReader(limit=MOST_BYTES)
        source = os.fdopen(self._source, "rb", buffering=0, closefd=False)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), source
        )
        try:
            while True:
                os.write(self._answers, b"READY\n")
                await self._take(reader)
                os.write(self._answers, b"RESULT 2\nOK")
        except (asyncio.IncompleteReadError, BrokenPipeError):
            log.info("events.end")
        except (ValueError, KeyError, OSError, asyncio.LimitOverrunError) as problem:
            log.error("events.spoilt", extra={"error": str(problem), "instead": "looks are made each second"})
        finally:
            transport.close()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        line = await reader.readuntil(b"\n")
        head = dict(word.split(":", 1) for word in line.decode("ascii", "replace").split())
        size = int(head["len"])
        if not 0 <= size <= MOST_BYTES:
            raise ValueError(f"an event of {size} bytes")
        await reader.readexactly(size)
        self._count(int(head["poolserial"]))
        self._hint()

    def _count(self, serial: int) -> None:
        """See whether some are missing between the one before and this. One that was rejected comes again."""
        if self._serial is None:
            log.info("events.begin", extra={"serial": serial})
        elif serial > self._serial + 1:
            missed = serial - self._serial - 1
            self.missed += missed
            log.warning("events.missed", extra={"missed": missed, "in_all": self.missed, "instead": "looking now"})
        self._serial = serial
