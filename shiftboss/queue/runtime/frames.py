"""Messages between a keeper and an executor: JSON texts over a socket pair, a mark and their length before each.

The mark is no text in UTF-8. Without it, a line of digits that somebody writes there would be the length of a
message that never comes to its end.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any

MARK = b"\xffSB\x01"
_HEAD = struct.Struct(">4sI")
MAX_FRAME_BYTES = 1 << 30


def pack(message: dict[str, Any]) -> bytes:
    """The bytes of one message."""
    try:
        body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate crosses as its escape
        body = json.dumps(message, separators=(",", ":")).encode()
    return _HEAD.pack(MARK, len(body)) + body


class Unpacker:
    """Collects bytes as they come and yields whole messages. Raises ValueError on garbage."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take bytes in and yield the messages that are whole now."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            mark, length = _HEAD.unpack_from(self._buffer)
            if mark != MARK:
                raise ValueError(f"a frame that begins with {mark!r}: the stream is garbage")
            if length > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {length} bytes: the stream is garbage")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            message = json.loads(body)
            if not isinstance(message, dict):
                raise ValueError("a frame that is not an object: the stream is garbage")  # noqa: TRY004
            yield message
