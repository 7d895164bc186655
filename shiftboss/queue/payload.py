"""Arguments, results and notes as JSON text that PostgreSQL's jsonb can hold, and back.

Beyond JSON's own types, UUID, Decimal, datetime, date, time and timedelta keep their type: each is stored as an
object with one key that begins with `$`, such as `{"$uuid": "…"}`. An object of the user's own with such a key
is wrapped as `{"$dict": …}`; `$enc` is reserved for encrypted arguments. Tuples come back as lists. A datetime
without a time zone is refused, as Django's Tasks API asks.
"""

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

from shiftboss.queue.errors import NotStorable
from shiftboss.queue.secrets import Secret

_decode = json.JSONDecoder().decode

# The type, its key and its text; a datetime is a date too, so it comes first.
_CODECS: tuple[tuple[type, str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (UUID, "$uuid", str, UUID),
    (Decimal, "$decimal", str, Decimal),
    (datetime, "$datetime", datetime.isoformat, datetime.fromisoformat),
    (date, "$date", date.isoformat, date.fromisoformat),
    (time, "$time", time.isoformat, time.fromisoformat),
    # A whole number: seconds as a float would lose microseconds, and the longest spans altogether.
    (timedelta, "$microseconds", lambda span: span // timedelta.resolution, lambda n: timedelta(microseconds=n)),
)
_SETTINGS = {"arguments": "MAX_ARGS_BYTES", "result": "MAX_RESULT_BYTES"}
_REVIVERS: dict[str, Callable[[Any], Any]] = {key: revive for _, key, _, revive in _CODECS} | {"$float": float}

TYPED = frozenset(_REVIVERS)
"""Keys of the objects that are one value of a type which JSON has not."""


def encode_arguments(args: Any, kwargs: Mapping[str, Any], *, max_bytes: int) -> str:
    """The JSON text of a call's arguments. Raises NotStorable, naming the argument and the fix."""
    return _encode({"args": list(args), "kwargs": dict(kwargs)}, what="arguments", max_bytes=max_bytes)


def decode_arguments(text: str, *, typed: bool = True) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments from their JSON text; see `decode`."""
    value = decode(text, typed=typed)
    return value["args"], value["kwargs"]


def args_digest(text: str) -> str:
    """What arguments can be told by without being seen: the SHA-256 of their JSON text."""
    return sha256(text.encode(errors="backslashreplace")).hexdigest()


def encode_result(value: Any, *, max_bytes: int) -> str | None:
    """The JSON text of a handler's result, None for None. Raises NotStorable."""
    return None if value is None else _encode(value, what="result", max_bytes=max_bytes)


def encode_note(value: Any, *, what: str, max_bytes: int) -> str:
    """The JSON text of what a handler tells while it runs. Raises NotStorable, naming what is not storable."""
    return _encode(value, what=what, max_bytes=max_bytes)


def decode(text: str, *, typed: bool = True) -> Any:
    """The value of a JSON text with the types that were kept; `typed=False` leaves their plain JSON form."""
    value = _decode(text)
    return _revived(value, typed) if '"$' in text else value


def _encode(value: Any, *, what: str, max_bytes: int) -> str:
    try:
        # The second way is slower, and certain: it keeps types, escapes `$`, and finds what cannot be stored.
        text = _plain(value) or json.dumps(_storable(value, what), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise NotStorable(f"the {what} are nested too deeply for JSON") from None
    size = len(text.encode())
    if size > max_bytes:
        setting = f", or raise SHIFTBOSS[{_SETTINGS[what]!r}]" if what in _SETTINGS else ""
        raise NotStorable(
            f"the {what} would be {size:,} bytes of JSON, more than {max_bytes:,}: store the data elsewhere and "
            f"pass its key{setting}"
        )
    return text


def _plain(value: Any) -> str | None:
    """The JSON text of a value that needs no care at all; None for any other."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError):
        return None
    careful = '"$' in text or "\\u0000" in text or "e+" in text or _odd_keys(value)
    return None if careful else text


def _odd_keys(value: Any) -> bool:
    """Whether some object has a key that is not a string: JSON would silently turn it into one."""
    if isinstance(value, dict):
        return any(not isinstance(key, str) or _odd_keys(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(isinstance(item, dict | list | tuple) and _odd_keys(item) for item in value)
    return False


def _storable(value: Any, where: str) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return _whole(value, where)
        case str():
            return _text(value, where)
        case float():
            if not math.isfinite(value):
                raise NotStorable(f"{where} is {value}, which JSON cannot hold: pass None or a string")
            # jsonb writes such a number without its exponent, and it would come back as an int.
            return {"$float": value} if abs(value) >= 1e16 else value
        case bytes():
            return _decoded(value, where)
        case list() | tuple():
            return [_storable(item, f"{where}[{index}]") for index, item in enumerate(value)]
        case Mapping():
            return _object(value, where)
    if isinstance(value, datetime) and value.utcoffset() is None:
        raise NotStorable(
            f"Unsupported type: {where} is a datetime without a time zone, which means another moment elsewhere: "
            "make it aware"
        )
    for kind, key, dump, _ in _CODECS:
        if isinstance(value, kind):
            return {key: dump(value)}
    if isinstance(value, Secret):
        raise NotStorable(f"{where} is the secret {value.name!r}, which is stored nowhere: pass its name instead")
    raise NotStorable(
        f"Unsupported type: {where} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be "
        "stored as JSON: pass an id or a plain value instead"
    )


def _whole(value: int, where: str) -> int:
    try:
        str(value)
    except ValueError:
        raise NotStorable(f"{where} is a number with thousands of digits: pass it as text") from None
    return value


def _decoded(value: bytes, where: str) -> str:
    # As Django's Tasks API does: bytes become text where they are UTF-8.
    try:
        return _text(value.decode(), where)
    except UnicodeDecodeError:
        raise NotStorable(f"Unsupported value: {where} holds bytes that are not UTF-8") from None


def _object(value: Mapping[Any, Any], where: str) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise NotStorable(f"Unsupported type: {where} has the key {key!r}; JSON has string keys only")
    stored = {_text(key, where): _storable(item, f"{where}[{key!r}]") for key, item in value.items()}
    if len(stored) == 1 and next(iter(stored)).startswith("$"):
        return {"$dict": stored}
    return stored


def _text(value: str, where: str) -> str:
    if "\x00" in value:
        raise NotStorable(f"{where} holds a NUL character, which PostgreSQL cannot store: remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotStorable(
            f"{where} holds a lone surrogate, which is no valid text: decode the bytes with errors='replace'"
        ) from None
    return value


def _revived(value: Any, typed: bool) -> Any:
    match value:
        case list():
            return [_revived(item, typed) for item in value]
        case dict() if len(value) == 1:
            [(key, item)] = value.items()
            if key == "$dict":
                return {name: _revived(held, typed) for name, held in item.items()}
            if key in _REVIVERS:
                return _REVIVERS[key](item) if typed else item
            return {key: _revived(item, typed)}
        case dict():
            return {key: _revived(item, typed) for key, item in value.items()}
    return value
