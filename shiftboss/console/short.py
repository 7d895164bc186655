"""What a host has left of what programs need, and what it runs short of, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _

from shiftboss.console.text import number, size, visible
from shiftboss.queue.shortage import Shortage, used_percent


def told(shortage: Shortage) -> str:
    """A part of a sentence, without the host."""
    facts = {"of": visible(shortage.of or ""), "percent": number(shortage.percent)}
    match shortage.kind:
        case "disk":
            return _("the disk of %(of)s is %(percent)s %% full") % facts
        case "memory":
            return _("%(percent)s %% of the memory is used") % facts
        case "files":
            return _("%(of)s has opened %(percent)s %% of the files that it may") % facts
        case "supervisor":
            return _("its supervisor itself takes %(percent)s %% of a core") % facts
    return _("programs waited for the processor for %(percent)s %% of the last minute") % facts


def measured(resources: Mapping[str, Any]) -> Iterator[str]:
    """What its agent has measured, one thing after the other."""
    if memory := resources.get("memory"):
        used = used_percent(memory["total_kb"] - memory["available_kb"], memory["total_kb"])
        facts = {"percent": number(used), "size": size(memory["total_kb"] * 1024)}
        yield _("%(percent)s %% of %(size)s memory used") % facts
    processor = resources.get("processor") or {}
    if processor.get("percent") is not None:
        facts = {"percent": number(processor["percent"]), "cores": number(processor["cores"])}
        yield _("processor %(percent)s %% busy (cores: %(cores)s)") % facts
    for disk in resources.get("disks", ()):
        used = used_percent(disk["total_kb"] - disk["free_kb"], disk["total_kb"])
        facts = {
            "of": visible(", ".join(disk["of"])),
            "percent": number(used),
            "free": size(disk["free_kb"] * 1024),
        }
        yield _("disk of %(of)s %(percent)s %% full, %(free)s free") % facts
    if files := resources.get("files"):
        facts = {"of": visible(files["of"]), "open": number(files["open"]), "most": number(files["most"])}
        yield _("%(of)s has %(open)s of %(most)s files open") % facts
