"""Ages on pages, which move on by themselves: each is told with the time from which it counts.

A script goes on counting from there, so that a page on which nothing else changed need not be sent again: of an
age only that time is a part of the page's version. Without the script it is as old as the page.
"""

import json
import re
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from shiftboss.console import text
from shiftboss.console.whole import Whole
from shiftboss.queue.store.samples import Part

_AGING = re.compile(r'(<time [^>]*data-ages="[a-z]+"[^>]*>)[^<]*|\bvalue="[^"]*"(?= data-since=)')


def without(part: str) -> str:
    """A part of a page without what moves on by itself."""
    return _AGING.sub(r"\1", part)


def words() -> str:
    """The words from which the script makes ages, as JSON; those of `text`."""
    return json.dumps(
        {
            "s": _("%(n)s s"),
            "min": _("%(n)s min"),
            "h": _("%(n)s h"),
            "d": _("%(n)s d"),
            "now": _("now"),
            "ago": _("%(time)s ago"),
            "in": _("in %(time)s"),
        }
    )


def ago(moment: datetime) -> SafeString:
    """How far a moment lies from now, with its machine's form, and the exact time in UTC as its title."""
    return format_html(
        '<time datetime="{}" title="{}" data-ages="ago">{}</time>',
        moment.astimezone(UTC).isoformat(timespec="milliseconds"),
        text.exact(moment),
        text.relative(moment, timezone.now()),
    )


def lasts(seconds: float) -> SafeString:
    """For how long something is so already."""
    return _length("lasts", since(seconds), text.duration(seconds))


def left(seconds: float) -> SafeString:
    """For how long something stays so."""
    return _length("left", since(-seconds), text.duration(seconds))


def waits(seconds: float, seen: Whole) -> SafeString | str:
    """How long a job waits by now that was seen waiting; where nobody looks any more, as it was seen."""
    return _seen(seconds, Part.WAITS, seen)


def runs(seconds: float, seen: Whole) -> SafeString | str:
    """How long a job runs by now that was seen running; where nobody looks any more, as it was seen."""
    return _seen(seconds, Part.LEASES, seen)


def since(seconds: float) -> str:
    """When something began that has lasted for so long. To the second, so that it is the same at the next look."""
    return to_second(timezone.now() - timedelta(seconds=seconds)).isoformat()


def to_second(moment: datetime) -> datetime:
    """A time without its fraction of a second, in UTC."""
    return moment.astimezone(UTC).replace(microsecond=0)


def _seen(seconds: float, part: Part, seen: Whole) -> SafeString | str:
    if seen.overdue_seconds is not None:
        return text.duration(seconds)
    return lasts(seconds + seen.ages.get(part, 0.0))


def _length(form: str, moment: str, said: str) -> SafeString:
    return format_html('<time datetime="{}" data-ages="{}">{}</time>', moment, form, said)
