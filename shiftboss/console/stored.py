"""JSON with parts that the record holds as JSON already: put in as they are, so that no digit is lost."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4


class Stored(str):
    """A JSON text that is to be a part of an object as it is."""


def dumps(value: Any) -> str:
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

    first, *rest = json.dumps(marked(value)).split(f'"{mark}')
    return first + "".join(texts[int(piece[:6])] + piece[7:] for piece in rest)
