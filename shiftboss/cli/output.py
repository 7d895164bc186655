"""What commands print: aligned columns for people, JSON for programs. No colours, so nothing to switch off."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shiftboss.console.stored import dumps
from shiftboss.console.text import visible


def as_json(value: Any) -> str:
    """A value for programs, as many lines as it takes to read it."""
    return dumps(value, indent=2)


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, right: frozenset[str] = frozenset()) -> str:
    """Rows under their heads, aligned; `right` names the columns whose ends are aligned."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if head in right else text.ljust(width)
            for head, text, width in zip(heads, line, widths, strict=True)
        ).rstrip()
        for line in [list(heads), *cells]
    )


def cell(value: Any) -> str:
    """A value on one line, with nothing in it that a terminal would obey."""
    match value:
        case None | "":
            return "-"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        case int() if not isinstance(value, bool):
            return str(value)
    return visible(" ".join(str(value).split()))


def moment(time: datetime) -> str:
    """A time in UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def block(text: str) -> str:
    """Text of several lines, such as a traceback, with nothing in it that a terminal would obey."""
    return "\n".join(visible(line) for line in text.splitlines())
