"""How far a job is, as people read it, from whatever its handler has told."""

import json
from dataclasses import dataclass
from typing import Any

from django.utils import formats
from django.utils.translation import gettext as _

from shiftboss.console import text
from shiftboss.queue import payload

LARGEST = 10**15
"""Larger numbers are no measure of progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`percent` (0 to 100) where there is a whole; `text`: so many of so many; `more`: what else was told."""

    percent: int | None
    text: str
    message: str
    more: list[tuple[str, str]]


def read_progress(told: str) -> Progress:
    """Read the JSON text of a progress: value, total and message where they are such, and all the rest."""
    found: Any = payload.decode(told, typed=False)
    rest: dict[str, Any] = dict(found) if isinstance(found, dict) else {"": found}
    value, total, message = _number(rest.get("value")), _number(rest.get("total")), rest.get("message")
    said = ""
    if value is not None:
        del rest["value"]
        said = _written(value)
        if total is not None:
            del rest["total"]
            said = _("%(value)s of %(total)s") % {"value": said, "total": _written(total)}
    if isinstance(message, str):
        del rest["message"]
    return Progress(
        percent=_percent(value, total),
        text=said,
        message=message if isinstance(message, str) else "",
        more=[
            (name, item if isinstance(item, str) else json.dumps(item, ensure_ascii=False))
            for name, item in rest.items()
        ],
    )


def _percent(value: float | None, total: float | None) -> int | None:
    return int(100 * min(value / total, 1)) if value is not None and total else None


def _number(given: Any) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return given if is_number and 0 <= given < LARGEST else None


def _written(value: float) -> str:
    return (
        text.number(value)
        if isinstance(value, int)
        else formats.number_format(round(value, 2), force_grouping=True)
    )
