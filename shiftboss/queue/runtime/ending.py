"""Ending an executor for certain: itself, its process group, and all that its handlers have started.

A handler's process may have a session of its own and a parent that is gone. So each executor is started with a
*mark* in its environment, which everything that it starts inherits and no process can take out of what the kernel
shows of it: who ends an executor ends every process of this user that bears its mark or descends from it, again
and again until there is none. A mark is a keeper's random word, a dot, and a number; the word alone means all
executors of that keeper. Linux has `/proc` for this; elsewhere the process group is all that can be ended.
"""

import logging
import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("shiftboss.ending")

MARK = "SHIFTBOSS_EXECUTOR"
"""The environment variable."""

END_SECONDS = 3.0
"""SIGKILL takes effect at once, but for a process inside the kernel, which is left to its fate after so long."""


def new_mark() -> str:
    """A keeper's word."""
    return secrets.token_hex(8)


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; with the pid it names a process for certain. Linux."""
    found = _look(pid)
    return found.started if found is not None else None


def mark_of(pid: int) -> str | None:
    """The mark that an executor was started with."""
    prefix = f"{MARK}=".encode()
    words = [entry for entry in _environment(pid) if entry.startswith(prefix)]
    return words[0].removeprefix(prefix).decode(errors="replace") if words else None


def is_executor(pid: int, *, mark: str, keeper: int) -> bool:
    """Whether this process is an executor of the keeper with this mark, and no later one with the same pid."""
    if (process := _look(pid)) is None:
        return not Path("/proc/self/stat").exists()  # nobody can tell
    return process.parent == keeper or _bears(pid, mark)


def end(pid: int, *, started: int | None, mark: str | None) -> None:
    """End the executor that has, or had, this pid, with its group, its descendants and all that bear its mark.

    Where the pid is another's by now (`started` is not its start time) neither it nor its group is touched.
    Returns when nothing is left, or after `END_SECONDS`.
    """
    process = _look(pid)
    mine = process is None or process.started == started
    family = _descendants(pid) if process is not None and mine else []  # known by their parents while these live
    if mine:
        kill_group(pid)
    for process in family:
        _kill(process)
    if mark is not None:
        end_marked(mark)


def end_marked(mark: str) -> list[int]:
    """End all processes of this user that bear the mark; answers their pids."""
    killed: set[int] = set()
    ends_at = time.monotonic() + END_SECONDS
    while found := [process for process in _processes() if _bears(process.pid, mark)]:
        killed.update(process.pid for process in found if _kill(process, mark))
        if time.monotonic() > ends_at:
            log.error("ending.not_ended", extra={"pids": [process.pid for process in found]})
            break
        time.sleep(0.005)
    return sorted(killed)


def kill_group(pid: int) -> None:
    """SIGKILL to a process that leads its own group, and to all in that group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    started: int


def _look(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    facts = text.rpartition(")")[2].split()
    return _Process(pid, int(facts[1]), int(facts[19]))


def _processes() -> Iterator[_Process]:
    """All processes of this user but this one."""
    try:
        entries = [entry for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return
    for entry in entries:
        with suppress(OSError):
            pid = int(entry.name)
            mine = entry.stat().st_uid == os.geteuid() and pid != os.getpid()
            if mine and (process := _look(pid)) is not None:
                yield process


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # gone, or a zombie, or somebody else's


def _bears(pid: int, mark: str) -> bool:
    own = f"{MARK}={mark}".encode()
    return any(entry == own or entry.startswith(own + b".") for entry in _environment(pid))


def _descendants(pid: int) -> list[_Process]:
    """Its living descendants, at this moment."""
    children: dict[int, list[_Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found: list[_Process] = []
    parents = [pid]
    while parents:
        mine = children.pop(parents.pop(), [])
        found += mine
        parents += [process.pid for process in mine]
    return found


def _kill(process: _Process, mark: str | None = None) -> bool:
    """SIGKILL to exactly this process, whoever has its pid by now."""
    fd = None
    with suppress(OSError):
        try:
            with suppress(OSError, AttributeError):  # not every kernel and every sandbox has them
                fd = os.pidfd_open(process.pid)
            # What holds a pidfd names one process for ever: looked at once more, it cannot be another's.
            if (now := _look(process.pid)) is None or now.started != process.started:
                return False
            if mark is not None and not _bears(process.pid, mark):
                return False
            if fd is not None:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            else:
                os.kill(process.pid, signal.SIGKILL)
            return True
        finally:
            if fd is not None:
                os.close(fd)
    return False
