"""Numbers, times and foreign text as people read them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.console.pretty import indented
from shiftboss.console.text import duration, number, pieces, relative, size, visible
from shiftboss.console.traces import blocks
from tests.console.scenes import TRACEBACK

pytestmark = pytest.mark.requirement("C3")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 ms"),
        (0.3404, "340 ms"),
        (2.44, "2.4 s"),
        (42.9, "42 s"),
        (185, "3 min 5 s"),
        (300, "5 min"),
        (7800, "2 h 10 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (12, "12 s ago"),
        (-300, "in 5 min"),
        (7200, "2 h ago"),
        (100_000, "27 h ago"),
        (200_000, "2 d ago"),
    ],
)
def test_a_moment_is_told_from_now(seconds: int, text: str) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert relative(now - timedelta(seconds=seconds), now).replace("\N{NO-BREAK SPACE}", " ") == text


def test_counts_and_sizes_are_readable() -> None:
    assert number(1234567) == "1,234,567"
    assert [size(n) for n in (12, 3500, 5 * 1024 * 1024)] == ["12 B", "3.4 KiB", "5.0 MiB"]


def test_unseen_characters_are_written_as_their_codes() -> None:
    assert (
        visible("a\x1b[31m\u202eb\u200b\x85\U000e0041é🙂\n\t")
        == "a\\x1b[31m\\u202eb\\u200b\\x85\\U000e0041é🙂\n\t"
    )


@given(st.text())
def test_no_text_is_lost_in_pieces(text: str) -> None:
    assert "".join(piece for piece, _ in pieces(text)) == visible(text)


def test_foreign_scripts_and_joined_emoji_stay_as_they_are() -> None:
    for text in ("שלום", "مرحبا", "नमस्ते", "👩\N{ZERO WIDTH JOINER}🚀"):
        assert visible(text) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(JSON, st.booleans())
def test_laying_out_json_changes_nothing_in_it(value: object, ascii_only: bool) -> None:
    assert json.loads(indented(json.dumps(value, ensure_ascii=ascii_only))) == value


def test_short_json_stays_on_a_line_and_long_json_has_a_line_for_each_member() -> None:
    assert indented('{"a": [1, 2, {"b": []}]}') == '{"a": [1, 2, {"b": []}]}'
    long = "x" * 80
    assert indented(json.dumps({"a": long, "b": [1, {}]})).split("\n") == [
        "{",
        f'  "a": "{long}",',
        '  "b": [1, {}]',
        "}",
    ]


def test_numbers_keep_every_digit_and_depth_needs_no_stack() -> None:
    assert (
        indented("[1.10, 123456789012345678901234567890, -0.0e5]")
        == "[1.10, 123456789012345678901234567890, -0.0e5]"
    )
    deep = "[" * 20_000 + "]" * 20_000
    laid_out = indented(deep)
    assert "".join(laid_out.split()) == deep
    assert len(laid_out) < 5_000_000


def test_frames_of_the_application_stand_out_and_nothing_is_lost() -> None:
    found = blocks(TRACEBACK)
    assert "\n".join(block.text for block in found) == TRACEBACK.rstrip("\n")
    assert [block.lines[0].split('"')[1] for block in found if block.is_own] == ["/app/shop/tasks.py"]
    assert sum(block.is_frame for block in found) == 3
    assert found[-1].text.startswith("smtplib.SMTPRecipientsRefused")


@given(st.text())
def test_any_text_can_stand_for_a_traceback(text: str) -> None:
    assert "\n".join(block.text for block in blocks(text)) == text.rstrip("\n")
