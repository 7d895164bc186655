"""Messages over a socket pair, however the bytes come."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.runtime.frames import MARK, MAX_FRAME_BYTES, Unpacker, pack

pytestmark = pytest.mark.requirement("R7")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=5), some, max_size=3),
    max_leaves=8,
)
messages = st.dictionaries(st.text(max_size=5), json_values, max_size=4)


@given(sent=st.lists(messages, max_size=5), data=st.data())
def test_messages_come_out_whole_however_they_were_cut(sent: list[dict[str, Any]], data: st.DataObject) -> None:
    stream = b"".join(map(pack, sent))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    unpacker = Unpacker()
    received = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += unpacker.feed(stream[start:end])
    assert received == sent


def test_one_byte_at_a_time() -> None:
    unpacker = Unpacker()
    received = [message for byte in pack({"run": [1, 2]}) for message in unpacker.feed(bytes([byte]))]
    assert received == [{"run": [1, 2]}]


def test_a_message_is_not_given_before_its_last_byte() -> None:
    unpacker = Unpacker()
    whole = pack({"a": "b" * 1000})
    assert list(unpacker.feed(whole[:-1])) == []
    assert list(unpacker.feed(whole[-1:])) == [{"a": "b" * 1000}]


def test_lone_surrogates_and_nul_cross() -> None:
    assert list(Unpacker().feed(pack({"text": "\ud800\x00"}))) == [{"text": "\ud800\x00"}]


GARBAGE = {
    "no object": MARK + struct.pack(">I", 2) + b"[]",
    "no json": MARK + struct.pack(">I", 3) + b"{x}",
    "no text": MARK + struct.pack(">I", 2) + b"\xff\xff",
    "a length beyond reason": MARK + struct.pack(">I", MAX_FRAME_BYTES + 1),
    "a line of text": b"12345 of 67890 done\n",
    "zeros": bytes(8),
    "a line of text before a message": b"0\n" + pack({"a": 1}),
}


@pytest.mark.parametrize("stream", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_told(stream: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of whatever kind
        list(Unpacker().feed(stream))
