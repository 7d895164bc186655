"""Messages between a keeper and an executor: JSON texts with their length before them, over a socket pair."""

import json
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 1 << 30


def pack(message: dict[str, Any]) -> bytes:
    """The bytes of one message."""
    try:
        body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate crosses as its escape
        body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Collects bytes as they come and yields whole messages. Raises ValueError on garbage."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take bytes in and yield the messages that are whole now."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {length} bytes: the stream is garbage")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            message = json.loads(body)
            if not isinstance(message, dict):
                raise ValueError("a frame that is not an object: the stream is garbage")  # noqa: TRY004
            yield message
