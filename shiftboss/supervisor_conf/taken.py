"""What each program takes of memory and processor now, with all processes that it has started. Linux."""

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from shiftboss.queue.runtime import usage

PACE_SECONDS = 2.0
"""Looks that come sooner are told what the last one was, but of new ones: to look at many costs something."""

OVER_SECONDS = 6.0
"""Over so long the use of the processor is an average."""


class Share(NamedTuple):
    """`memory_kb` is resident, so what processes share counts in each. `cores`: None until there is an average."""

    memory_kb: int | None
    cores: float | None


NOTHING = Share(None, None)


class Taken:
    """`look()` again and again, at the same programs or at others."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_at: float | None = None
        self._shares: dict[int, Share] = {}
        self._used: dict[int, deque[tuple[float, int]]] = {}

    def look(self, pids: Collection[int]) -> dict[int, Share]:
        """What the processes of these pids take."""
        now = self._clock()
        known: Mapping[int, Share] = self._shares
        if self._looked_at is None or now - self._looked_at >= PACE_SECONDS:
            self._looked_at, known = now, {}
        self._shares = {pid: known[pid] if pid in known else self._share(pid, now) for pid in pids}
        self._used = {pid: used for pid, used in self._used.items() if pid in self._shares}
        return self._shares

    def _share(self, pid: int, now: float) -> Share:
        memory_kb, cpu_ms = usage.of_processes(with_children(pid))
        if cpu_ms is None:
            return NOTHING
        used = self._used.setdefault(pid, deque())
        used.append((now, cpu_ms))
        while len(used) > 2 and used[1][0] <= now - OVER_SECONDS:
            used.popleft()
        began, before = used[0]
        # A child that nobody has waited for takes its time along.
        return Share(memory_kb, max(0, cpu_ms - before) / 1000 / (now - began) if now > began else None)


def with_children(pid: int) -> Iterator[int]:
    """It, and all that it has started, and theirs."""
    yield pid
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                yield from with_children(int(child))
