"""What a host runs short of, in words."""

from django.utils.translation import gettext as _

from shiftboss.console.text import number, visible
from shiftboss.queue.shortage import Shortage


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
