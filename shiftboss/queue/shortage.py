"""What a host runs short of, judged by what its agent has measured."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MEMORY_PERCENT = 90
DISK_PERCENT = 90
DISK_ROOM_KB = 10 * 1024 * 1024
"""With so much left a large disk is not short, however full it is."""
DISK_SMALL_KB = 512 * 1024
"""With no more than this left any disk is short."""
FILES_PERCENT = 85
WAITING_PERCENT = 80
SUPERVISOR_PERCENT = 60


@dataclass(frozen=True, slots=True)
class Shortage:
    """`kind` is memory, processor, disk, files or supervisor; `of` is which disk, or whose files.

    `percent` is how much is used. Of the processor: for how much of the last minute programs had to wait for it.
    Of a core by a supervisor that spins.
    """

    kind: str
    of: str | None
    percent: int


def shortages(resources: Mapping[str, Any] | None) -> tuple[Shortage, ...]:
    """What is short, the most urgent kind first. What was not measured is not short."""
    return tuple(_found(resources or {}))


def _found(resources: Mapping[str, Any]) -> Iterator[Shortage]:
    for disk in resources.get("disks", ()):
        used, free = used_percent(disk["total_kb"] - disk["free_kb"], disk["total_kb"]), disk["free_kb"]
        if free <= DISK_SMALL_KB or (used >= DISK_PERCENT and free < DISK_ROOM_KB):
            yield Shortage("disk", ", ".join(disk["of"]), used)
    if memory := resources.get("memory"):
        used = used_percent(memory["total_kb"] - memory["available_kb"], memory["total_kb"])
        if used >= MEMORY_PERCENT:
            yield Shortage("memory", None, used)
    if (files := resources.get("files")) and (used := used_percent(files["open"], files["most"])) >= FILES_PERCENT:
        yield Shortage("files", files["of"], used)
    waiting = (resources.get("processor") or {}).get("waiting_percent")
    if waiting is not None and waiting >= WAITING_PERCENT:
        yield Shortage("processor", None, round(waiting))
    if (spins := resources.get("supervisor")) and spins["percent"] >= SUPERVISOR_PERCENT:
        yield Shortage("supervisor", None, spins["percent"])


def used_percent(part: float, whole: float) -> int:
    """How much of the whole that is, rounded down: what is not quite full is never called 100 %."""
    return int(100 * max(0.0, min(1.0, part / whole))) if whole > 0 else 0
