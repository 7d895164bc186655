"""Rows of the record as JSON, whose parts that are JSON already are put in as they are: no digit is lost."""

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

IDS = frozenset({"id", "job_id", "worker_id", "rerun_of", "batch_id", "backfill_id", "key_holder", "revision_id"})
"""Fields that are ids: text, because many a reader of JSON rounds large numbers."""

STORED_JSON = frozenset(
    {
        *("args", "result", "meta", "evidence", "data", "asked", "before", "after", "revision"),
        *("progress", "checkpoint"),
    }
)
"""Fields that the record holds as JSON."""


class Stored(str):
    """A JSON text that is to be a part of an object as it is."""


def as_object(row: Any) -> dict[str, Any]:
    """The fields of a row of the record, for `dumps`."""
    return {field.name: _value(field.name, getattr(row, field.name)) for field in fields(row)}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in STORED_JSON:
        return Stored(value)
    return str(value) if name in IDS else value


def dumps(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON: times in UTC, and each `Stored` text in its place."""
    # json has no place for text that is JSON already: it is put in afterwards.
    mark = f"stored-{uuid4()}-"
    texts: list[str] = []

    def marked(part: Any) -> Any:
        match part:
            case Stored():
                texts.append(part)
                return f"{mark}{len(texts) - 1:06}"
            case Mapping():
                return {name: marked(item) for name, item in part.items()}
            case list() | tuple():
                return [marked(item) for item in part]
            case datetime():
                return part.astimezone(UTC).isoformat().replace("+00:00", "Z")
            case UUID():
                return str(part)
        return part

    first, *rest = json.dumps(marked(value), indent=indent).split(f'"{mark}')
    return first + "".join(texts[int(piece[:6])] + piece[7:] for piece in rest)
