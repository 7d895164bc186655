"""What commands print: aligned columns for people, JSON for programs. No colours, so nothing to switch off."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from shiftboss.console.text import visible

IDS = frozenset({"id", "job_id", "worker_id", "rerun_of", "key_holder"})
"""Fields that are ids: text in JSON, whose numbers lose digits in many a reader."""

STORED_JSON = frozenset({"args", "result", "meta", "evidence", "data", "asked", "before", "after"})
"""Fields that hold JSON as text: printed as it is stored, so that no digit is lost."""


class Stored(str):
    """A JSON text that is to be part of an object as it is."""


def as_object(row: Any) -> dict[str, Any]:
    """The fields of a row of the record, ready for `as_json`."""
    return {field.name: _plain(field.name, getattr(row, field.name)) for field in fields(row)}


def as_json(value: Any) -> str:
    """A value of `as_object`s as indented JSON."""
    # json.dumps has no place for text that is JSON already: it is put in afterwards.
    mark, stored = f"stored-{uuid4()}-", []

    def marked(part: Any) -> Any:
        match part:
            case Stored():
                stored.append(part)
                return f"{mark}{len(stored) - 1:06}"
            case Mapping():
                return {name: marked(item) for name, item in part.items()}
            case list() | tuple():
                return [marked(item) for item in part]
        return part

    first, *rest = json.dumps(marked(value), indent=2, ensure_ascii=False).split(f'"{mark}')
    return first + "".join(stored[int(piece[:6])] + piece[7:] for piece in rest)


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


def block(text: str) -> str:
    """Text of several lines, such as a traceback, with nothing in it that a terminal would obey."""
    return "\n".join(visible(line) for line in text.splitlines())


def _plain(name: str, value: Any) -> Any:
    match value:
        case None:
            return None
        case int() if name in IDS:
            return str(value)
        case str() if name in STORED_JSON:
            return Stored(value)
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case UUID():
            return str(value)
        case str():
            return str(value)  # an enum's word
    return value
