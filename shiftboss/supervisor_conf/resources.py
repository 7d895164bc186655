"""What a host has left of what its programs need: memory, processor, disks, open files. Linux; elsewhere less."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")

SUPERVISOR_SECONDS = 60.0
"""Over so long the supervisor's use of the processor is measured, and told once half of it has gone by."""

_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
"""Files of a container's limit and use, of version 2 and 1 of control groups."""


class Resources:
    """`measure()` again and again. `folders` are those of whose disks one wants to know, by what is in them."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        *,
        proc: Path = PROC,
        cgroups: Path = CGROUPS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folders = folders
        self._clock = clock
        self._supervised: deque[tuple[float, int, float]] = deque()
        self._proc = proc
        self._cgroups = cgroups
        self._busy_before: tuple[float, float] | None = None

    def measure(self, pids: Mapping[str, int], *, launcher: int | None = None) -> dict[str, Any]:
        """What is left now, as JSON; None for what cannot be had. `pids` are those of the programs, by name;
        `launcher` is a child of the supervisor.

        `memory` of the container where that has a limit, else of the machine. `processor`: `percent` that it was
        busy since the last call, and `waiting_percent` of the last minute in which somebody had to wait for it.
        `files` are those of the process that is nearest to its own limit. `supervisor`: `percent` of a core that
        it took itself in the last minute.
        """
        return {
            "memory": self._memory(),
            "processor": self._processor(),
            "disks": list(self._disks()),
            "files": max(self._files(pids), key=lambda one: one["open"] / one["most"], default=None),
            "supervisor": self._supervisor(launcher),
        }

    def _memory(self) -> dict[str, int] | None:
        facts: dict[str, int] = {}
        with suppress(OSError, ValueError, IndexError):
            for line in (self._proc / "meminfo").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    facts[name] = int(value.split()[0])
        if len(facts) < 2:
            return None
        for limit, used in _LIMITS:
            with suppress(OSError, ValueError):
                most = int((self._cgroups / limit).read_text()) // 1024
                if most < facts["MemTotal"]:
                    held = int((self._cgroups / used).read_text()) // 1024 - self._file_pages_kb(Path(used).parent)
                    return {"total_kb": most, "available_kb": max(0, most - held)}
        return {"total_kb": facts["MemTotal"], "available_kb": facts["MemAvailable"]}

    def _file_pages_kb(self, folder: Path) -> int:
        """Of the container's memory what the kernel gives up first."""
        with suppress(OSError, ValueError, IndexError):
            for line in (self._cgroups / folder / "memory.stat").read_text().splitlines():
                if line.startswith(("inactive_file ", "total_inactive_file ")):
                    return int(line.split()[1]) // 1024
        return 0

    def _processor(self) -> dict[str, Any]:
        cores, percent = os.cpu_count() or 1, None
        with suppress(OSError, ValueError, IndexError):
            ticks = [int(word) for word in (self._proc / "stat").read_text().splitlines()[0].split()[1:9]]
            total, idle = float(sum(ticks)), float(ticks[3] + ticks[4])
            before, self._busy_before = self._busy_before, (total, idle)
            if before and total > before[0]:
                percent = round(100 * (1 - (idle - before[1]) / (total - before[0])))
        return {"cores": cores, "percent": percent, "waiting_percent": self._waiting()}

    def _supervisor(self, launcher: int | None) -> dict[str, int] | None:
        """A supervisord that spins is of no use to anybody, and nothing else would tell."""
        used = None
        if launcher is not None:
            with suppress(OSError, ValueError, IndexError):
                pid = int(self._facts(launcher)[1])
                facts = self._facts(pid)
                used = (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
        if used is None or (self._supervised and self._supervised[0][1] != pid):
            self._supervised.clear()
        if used is None:
            return None
        now = self._clock()
        self._supervised.append((now, pid, used))
        while self._supervised[0][0] < now - SUPERVISOR_SECONDS:
            self._supervised.popleft()
        since, _, before = self._supervised[0]
        if now - since < SUPERVISOR_SECONDS / 2:
            return None
        return {"percent": round(100 * (used - before) / (now - since))}

    def _facts(self, pid: int) -> list[str]:
        """The fields of a process's `stat` from its state on."""
        return (self._proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()

    def _waiting(self) -> float | None:
        with suppress(OSError, ValueError, IndexError):
            some = (self._proc / "pressure" / "cpu").read_text().splitlines()[0]
            return float(dict(word.split("=") for word in some.split()[1:])["avg60"])
        return None

    def _disks(self) -> Iterator[dict[str, Any]]:
        by_device: dict[int, list[tuple[str, Path]]] = {}
        for what, folder in self._folders.items():
            with suppress(OSError):
                by_device.setdefault(folder.stat().st_dev, []).append((what, folder))
        for found in by_device.values():
            with suppress(OSError):
                room = os.statvfs(found[0][1])
                yield {
                    "of": [what for what, _ in found],
                    "total_kb": room.f_blocks * room.f_frsize // 1024,
                    "free_kb": room.f_bavail * room.f_frsize // 1024,
                }

    def _files(self, pids: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        for name, pid in pids.items():
            for one in (pid, *self._children(pid)):
                with suppress(OSError, ValueError, IndexError):
                    limits = (self._proc / str(one) / "limits").read_text()
                    most = int(limits.partition("Max open files")[2].split()[0])
                    yield {"of": name, "open": len(os.listdir(self._proc / str(one) / "fd")), "most": most}

    def _children(self, pid: int) -> list[int]:
        with suppress(OSError, ValueError):
            return [int(word) for word in (self._proc / f"{pid}/task/{pid}/children").read_text().split()]
        return []
