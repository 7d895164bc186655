"""What a run, or a worker as a whole, has used of processor and memory.

`own`: a run's process has no other run, and all of it counts.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

_FRESH_SECONDS = 0.01
_thread = threading.local()


def begin_alone() -> float:
    """A run begins that has its process to itself: its peak of memory is counted from here (on Linux)."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return process_seconds()


def process_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def thread_seconds(now: float) -> float:
    """Processor time of this thread, as it was at most 10 ms ago: it is asked for before each run, and not cheap.

    `now` is of `time.perf_counter`.
    """
    if now - getattr(_thread, "at", -1.0) > _FRESH_SECONDS:
        _thread.at, _thread.seconds = now, time.thread_time()
    seconds: float = _thread.seconds
    return seconds


def told(began: float | None, *, own: bool) -> dict[str, Any]:
    """For the attempt's evidence. `began` is what `begin_alone`, or `thread_seconds` in this thread, has said.

    Without it (a coroutine shares its thread) only memory is told. `memory_shared`: it is that of all runs.
    """
    memory = {"memory_kb": _peak_kb(), "memory_shared": not own}
    if began is None:
        return memory
    now = process_seconds() if own else time.thread_time()
    return {"cpu_ms": round((now - began) * 1000), **memory}


def _peak_kb() -> int:
    with suppress(OSError, ValueError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return kilobytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


class Used(NamedTuple):
    """Memory that processes hold now, processor time that they have used so far; None where nobody can tell."""

    memory_kb: int | None
    cpu_ms: int | None


def of_processes(pids: Iterable[int]) -> Used:
    """Of these processes together, and of their children that have ended. Linux.

    What they share counts in each: what is told is the most that it can be.
    """
    found = [used for pid in pids if pid and (used := _of_process(pid)) is not None]
    if not found:
        return Used(None, None)
    return Used(sum(memory for memory, _ in found), sum(cpu for _, cpu in found))


def _of_process(pid: int) -> tuple[int, int] | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            facts = file.read().rpartition(")")[2].split()
    except OSError:
        return None  # it has ended, or there is no /proc
    pages, ticks = int(facts[21]), sum(map(int, facts[11:15]))
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024, ticks * 1000 // os.sysconf("SC_CLK_TCK")


def kilobytes(maxrss: int) -> int:
    """What `ru_maxrss` says, which counts in bytes on macOS."""
    return maxrss // 1024 if sys.platform == "darwin" else maxrss
