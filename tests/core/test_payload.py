"""Arguments and results on their way into JSON and back."""

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.errors import InvalidJob, NotStorable
from shiftboss.queue.payload import decode, decode_arguments, encode_arguments, encode_result

MIB = 1024 * 1024

text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20)
keys = text | st.sampled_from(["$uuid", "$dict", "$enc", "$", "$date", "$decimal", "a", ""])
zones = st.sampled_from(
    [UTC, timezone(timedelta(hours=-3, minutes=-30)), timezone(timedelta(seconds=1, hours=14))]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=zones)
    | st.dates()
    | st.times()
    | st.timedeltas()
)
values = st.recursive(
    scalars, lambda some: st.lists(some, max_size=4) | st.dictionaries(keys, some, max_size=4), max_leaves=15
)


@pytest.mark.requirement("P5", "R7")
@given(args=st.lists(values, max_size=3), kwargs=st.dictionaries(keys, values, max_size=3))
def test_any_value_comes_back_as_it_went(args: list[Any], kwargs: dict[str, Any]) -> None:
    assert decode_arguments(encode_arguments(args, kwargs, max_bytes=MIB)) == (args, kwargs)


@pytest.mark.requirement("R7")
@given(value=scalars.filter(lambda value: value is not None))
def test_types_are_kept(value: Any) -> None:
    back = decode(encode_result([value], max_bytes=MIB) or "")
    assert [type(item) for item in back] == [type(value)]


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("value", [timedelta.max, timedelta.min, timedelta(days=999_999, microseconds=1)])
def test_the_longest_spans_of_time_keep_their_last_microsecond(value: timedelta) -> None:
    assert decode(encode_result(value, max_bytes=MIB) or "") == value


@pytest.mark.requirement("R10")
def test_no_result_is_no_text() -> None:
    assert encode_result(None, max_bytes=MIB) is None


@pytest.mark.requirement("R7")
def test_tuples_become_lists_bytes_become_text_and_mappings_become_objects() -> None:
    encoded = encode_result([(1, (2,)), b"\xc3\xa9", MappingProxyType({"a": 1})], max_bytes=MIB)
    assert decode(encoded or "") == [[1, [2]], "é", {"a": 1}]


@pytest.mark.requirement("R7")
def test_without_types_the_plain_form_is_given() -> None:
    value = {"id": UUID(int=7), "at": [date(2026, 11, 30)], "odd": {"$uuid": "mine"}}
    plain = decode(encode_result(value, max_bytes=MIB) or "", typed=False)
    assert plain == {"id": str(UUID(int=7)), "at": ["2026-11-30"], "odd": {"$uuid": "mine"}}


@pytest.mark.requirement("P5")
def test_the_reserved_envelope_cannot_be_forged_by_a_users_dict() -> None:
    encoded = encode_result({"$enc": "mine"}, max_bytes=MIB)
    assert encoded == '{"$dict":{"$enc":"mine"}}'
    assert decode(encoded) == {"$enc": "mine"}


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


BAD = {
    "nan": math.nan,
    "infinity": -math.inf,
    "nul": "a\x00b",
    "lone surrogate": "a\ud800b",
    "bytes": b"\xff\xfe",
    "huge number": 10**5000,
    "set": {1, 2},
    "object": object(),
    "class": dict,
    "number as key": {1: "a"},
    "none as key": {None: "a"},
    "tuple as key": {(1, 2): "a"},
    "nul in key": {"a\x00": 1},
    "surrogate in key": {"\udfff": 1},
    "complex": 1j,
    "datetime without zone": datetime(2026, 11, 30),
}


@pytest.mark.requirement("R7", "P5")
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_cannot_be_stored_is_refused_by_its_place(bad: Any) -> None:
    with pytest.raises(NotStorable, match=r"arguments\['args'\]\[1\]\['rows'\]\[2\]"):
        encode_arguments([0, {"rows": [1, "b", bad]}], {}, max_bytes=MIB)
    with pytest.raises(NotStorable, match=r"arguments\['kwargs'\]\['invoice'\]"):
        encode_arguments([], {"invoice": bad}, max_bytes=MIB)
    with pytest.raises(NotStorable, match="result"):
        encode_result(bad, max_bytes=MIB)


@pytest.mark.requirement("R7")
@given(bad=st.sampled_from(list(BAD.values())), path=st.lists(st.integers(0, 3) | text, max_size=5))
def test_a_bad_value_is_found_however_deep(bad: Any, path: list[int | str]) -> None:
    value, place = bad, ""
    for step in reversed(path):
        place = f"[{step!r}]{place}"
        value = {step: value, "other": Decimal(1)} if isinstance(step, str) else [*range(step), value]
    with pytest.raises(NotStorable) as refused:
        encode_result({"in": value}, max_bytes=MIB)
    assert f"result['in']{place}" in str(refused.value)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("depth", [5_000, 200_000])
def test_nesting_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(NotStorable, match="nested too deeply"):
        encode_arguments([nested(depth)], {}, max_bytes=MIB)


@pytest.mark.requirement("R7")
def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotStorable, match="nested too deeply"):
        encode_arguments([endless], {}, max_bytes=MIB)


@pytest.mark.requirement("R7")
def test_nesting_that_is_accepted_can_be_read_again() -> None:
    accepted = [depth for depth in range(50, 1000, 50) if _is_accepted(depth)]
    deepest = nested(max(accepted))
    assert decode(encode_result([deepest, UUID(int=1)], max_bytes=MIB) or "")[0] == deepest


def _is_accepted(depth: int) -> bool:
    try:
        encode_result([nested(depth), UUID(int=1)], max_bytes=MIB)
    except NotStorable:
        return False
    return True


@pytest.mark.requirement("P5")
def test_too_much_is_refused_with_the_setting_that_limits_it() -> None:
    with pytest.raises(NotStorable, match=r"more than 100: .*MAX_ARGS_BYTES"):
        encode_arguments(["x" * 100], {}, max_bytes=100)
    with pytest.raises(NotStorable, match=r"more than 100: .*MAX_RESULT_BYTES"):
        encode_result("é" * 50, max_bytes=100)


@pytest.mark.requirement("P5")
def test_sizes_are_bytes_and_the_limit_itself_is_allowed() -> None:
    assert encode_result("é" * 49, max_bytes=100) == '"' + "é" * 49 + '"'


def test_a_refusal_is_a_type_error_and_an_invalid_job() -> None:
    assert issubclass(NotStorable, TypeError)
    assert issubclass(NotStorable, InvalidJob)
    assert issubclass(NotStorable, ValueError)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("value", [time(1, 2, 3, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), Decimal("NaN")])
def test_odd_but_sound_values_are_kept(value: Any) -> None:
    assert repr(decode(encode_result(value, max_bytes=MIB) or "")) == repr(value)
