"""Numbers, times and foreign text as people read them. Everything here returns plain, unescaped text."""

import re
from datetime import UTC, datetime

from django.utils import formats
from django.utils.translation import gettext as _

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_NO_BREAK = "\N{NO-BREAK SPACE}"


def number(value: int) -> str:
    """A count with its thousands apart: 1,234."""
    return formats.number_format(value, force_grouping=True)


def duration(seconds: float) -> str:
    """A length of time in its two largest units: 340 ms, 2.4 s, 42 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    if seconds < 0:
        seconds = 0.0
    if seconds < 1:
        text = _("%(n)s ms") % {"n": round(seconds * 1000)}
    elif seconds < 10:
        text = _("%(n)s s") % {"n": formats.number_format(seconds, 1)}
    else:
        text = _long(int(seconds))
    return text.replace(" ", _NO_BREAK)


def _long(seconds: int) -> str:
    if seconds < _MINUTE:
        return _("%(n)s s") % {"n": seconds}
    if seconds < _HOUR:
        return _two(_("%(n)s min"), seconds // _MINUTE, _("%(n)s s"), seconds % _MINUTE)
    if seconds < _DAY:
        return _two(_("%(n)s h"), seconds // _HOUR, _("%(n)s min"), seconds % _HOUR // _MINUTE)
    return _two(_("%(n)s d"), seconds // _DAY, _("%(n)s h"), seconds % _DAY // _HOUR)


def _two(large: str, n: int, small: str, rest: int) -> str:
    whole = large % {"n": n}
    return f"{whole} {small % {'n': rest}}" if rest else whole


def relative(moment: datetime, now: datetime) -> str:
    """How far a moment lies from now, in its largest unit: 12 s ago, in 5 min, now."""
    seconds = int((now - moment).total_seconds())
    if abs(seconds) < 1:
        return _("now")
    text = _one(abs(seconds)).replace(" ", _NO_BREAK)
    return _("%(time)s ago") % {"time": text} if seconds > 0 else _("in %(time)s") % {"time": text}


def _one(seconds: int) -> str:
    if seconds < _MINUTE:
        return _("%(n)s s") % {"n": seconds}
    if seconds < _HOUR:
        return _("%(n)s min") % {"n": seconds // _MINUTE}
    if seconds < 2 * _DAY:
        return _("%(n)s h") % {"n": seconds // _HOUR}
    return _("%(n)s d") % {"n": seconds // _DAY}


def since(moment: datetime, now: datetime) -> str:
    """The time of day in UTC from which on something is so, with its date where that is another day's."""
    moment, now = moment.astimezone(UTC), now.astimezone(UTC)
    return f"{moment:%H:%M} UTC" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M} UTC"


def exact(moment: datetime) -> str:
    """A time in UTC, to the millisecond."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def stored(moment: object) -> str:
    """A time as JSON holds it, in UTC to the second; what is no time stays as it is."""
    try:
        return f"{datetime.fromisoformat(str(moment)).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError):
        return str(moment)


def size(bytes_: int) -> str:
    """A size in the largest unit of 1,024: 12 B, 3.4 KiB, 1.0 MiB, 2.0 GiB."""
    if bytes_ < 1024:
        return _("%(n)s B") % {"n": bytes_}
    if bytes_ < 1024 * 1024:
        return _("%(n)s KiB") % {"n": formats.number_format(bytes_ / 1024, 1)}
    if bytes_ < 1024 * 1024 * 1024:
        return _("%(n)s MiB") % {"n": formats.number_format(bytes_ / 1024 / 1024, 1)}
    return _("%(n)s GiB") % {"n": formats.number_format(bytes_ / 1024 / 1024 / 1024, 1)}


# What would be unseen, or would change how the text around it is seen: controls (ANSI colours begin with
# one), bidirectional overrides and isolates, zero-width characters, line separators, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with each character that is unseen or turns the reading direction written as its code."""
    return _UNSEEN.sub(lambda found: code_of(found[0]), text)


_COLOURS = re.compile("\x1b\\[[0-9;:]*m")


def plain(written: str) -> str:
    """What was written as if to a terminal, without its colours, its lines ended as on this system."""
    return _COLOURS.sub("", written).replace("\r\n", "\n")


def pieces(text: str) -> list[tuple[str, bool]]:
    """The text of `visible` in pieces, each with whether it is such a code."""
    found: list[tuple[str, bool]] = []
    start = 0
    for match in _UNSEEN.finditer(text):
        if match.start() > start:
            found.append((text[start : match.start()], False))
        found.append((code_of(match[0]), True))
        start = match.end()
    if start < len(text):
        found.append((text[start:], False))
    return found


def code_of(character: str) -> str:
    r"""A character as an escape: \x1b, \u202e, \U000e0041."""
    point = ord(character)
    if point <= 0xFF:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
