"""Arguments and results against the type hints of a task's function."""

import dataclasses
import logging
import typing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, Field

from shiftboss.queue.errors import InvalidArguments, InvalidJob, InvalidResult
from shiftboss.queue.typed import Typed, check_call

SECRET = "4111111111111111"
ID = "0b1f4c1e-6a43-4d7e-9f43-1a2b3c4d5e6f"


class Colour(Enum):
    RED = "red"
    BLUE = 2


class Size(StrEnum):
    SMALL = "small"


class Line(BaseModel):
    sku: str
    price: Decimal = Field(gt=0)


class Order(BaseModel):
    id: UUID
    lines: list[Line] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Pair(NamedTuple):
    a: int
    b: int


def refuse(value: Any) -> Any:
    raise ValueError(f"{value} is no good")


def leave(value: Any) -> Any:
    raise SystemExit(3)


def taking(hint: Any) -> Typed:
    def function(value):  # type: ignore[no-untyped-def]
        pass

    function.__annotations__ = {"value": hint}
    return Typed(function, takes_context=False)


def giving(hint: Any) -> Typed:
    def function():  # type: ignore[no-untyped-def]
        pass

    function.__annotations__ = {"return": hint}
    return Typed(function, takes_context=False)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("hint", "stored", "made"),
    [
        (int, 5, 5),
        (int, "5", 5),
        (float, 5, 5.0),
        (str, "5", "5"),
        (bool, True, True),
        (UUID, ID, UUID(ID)),
        (UUID, UUID(ID), UUID(ID)),
        (Decimal, "1.10", Decimal("1.10")),
        (datetime, "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (timedelta, 90, timedelta(seconds=90)),
        (Optional[int], None, None),  # noqa: UP045 - one writes it so
        (int | None, "7", 7),
        (Literal["a", "b"], "b", "b"),
        (Colour, "red", Colour.RED),
        (Size, "small", Size.SMALL),
        (set[int], [1, "2"], {1, 2}),
        (tuple[int, str], [1, "x"], (1, "x")),
        (dict[str, int], {"a": "1"}, {"a": 1}),
        (Point, {"x": "1"}, Point(1)),
        (Order, {"id": ID, "lines": [{"sku": "s", "price": "1.5"}]}, None),
        (Annotated[int, Field(ge=1)], 1, 1),
        ("list[Order]", [], []),
        (Any, SECRET, SECRET),
        (object, [1], [1]),
        (None, None, None),
    ],
)
def test_an_argument_is_made_what_its_hint_says(hint: Any, stored: Any, made: Any) -> None:
    args, _ = taking(hint).arguments([stored], {})
    _, kwargs = taking(hint).arguments([], {"value": stored})
    expected = Order.model_validate(stored) if hint is Order else made
    assert (args, kwargs) == ([expected], {"value": expected})
    assert type(args[0]) is type(expected)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("hint", "stored", "told"),
    [
        (int, SECRET + "x", "value: Input should be a valid integer"),
        (int, None, "value: Input should be a valid integer"),
        (UUID, SECRET, "value: Input should be a valid UUID"),
        (datetime, SECRET + "x", "value: Input should be a valid datetime"),
        (Literal["a", "b"], SECRET, "value: Input should be 'a' or 'b'"),
        (Colour, SECRET, "value: Input should be 'red' or 2"),
        (Annotated[str, Field(max_length=3)], SECRET, "value: String should have at most 3 characters"),
        (Annotated[str, Field(pattern="^a$")], SECRET, "value: String should match pattern '^a$'"),
        (
            Annotated[str, AfterValidator(refuse)],
            SECRET,
            "value: a check of the project's own refused it (value_error)",
        ),
        (list[int], [1, "2", SECRET + "x"], "value[2]: Input should be a valid integer"),
        (
            Order,
            {"id": ID, "lines": [{"sku": "s", "price": 0}]},
            "value.lines[0].price: Input should be greater than 0",
        ),
        (Order, {"lines": []}, "value.id: Field required"),
        (Point, {"x": SECRET + "x"}, "value.x: Input should be a valid integer"),
        (Annotated[Order | Point, Field(discriminator="x")], {"x": SECRET}, None),
        (int, [[[[]]]], "value: Input should be a valid integer"),
    ],
)
def test_a_bad_argument_is_named_with_what_was_expected_and_never_with_its_value(
    hint: Any, stored: Any, told: str | None
) -> None:
    for args, kwargs in (([stored], {}), ([], {"value": stored})):
        if told is None:
            continue
        with pytest.raises(InvalidArguments) as raised:
            taking(hint).arguments(args, kwargs)
        assert told in str(raised.value)
        assert SECRET not in str(raised.value)
        assert "4111" not in str(raised.value)


class Card(BaseModel):
    kind: Literal["card"]


class Cash(BaseModel):
    kind: Literal["cash"]


@pytest.mark.requirement("R7")
def test_the_tag_of_a_union_is_a_value_too() -> None:
    means = taking(Annotated[Card | Cash, Field(discriminator="kind")])
    with pytest.raises(InvalidArguments, match=r"value: Input tag\Z"):
        means.arguments([{"kind": SECRET}], {})


@pytest.mark.requirement("R7")
def test_only_a_few_problems_are_told() -> None:
    with pytest.raises(InvalidArguments) as raised:
        taking(list[int]).arguments([["x"] * 10_000], {})
    assert str(raised.value).count("valid integer") == 3
    assert str(raised.value).endswith("; and more")


def variety(context: Any, a: int, /, b: int, *more: int, c: int = "as it is", d: Any = 0, **rest: int) -> int:  # type: ignore[assignment]
    return a


@pytest.mark.requirement("R7")
def test_every_kind_of_parameter_is_validated_and_the_context_left_out() -> None:
    typed = Typed(variety, takes_context=True)
    assert typed.arguments(["1", "2", "3", "4"], {"c": "5", "d": "6", "e": "7"}) == (
        [1, 2, 3, 4],
        {"c": 5, "d": "6", "e": 7},
    )
    assert typed.arguments(["1"], {"b": "2"}) == ([1], {"b": 2})
    for args, kwargs, name in (
        (["x"], {}, "a: "),
        ([1, "x"], {}, "b: "),
        ([1, 2, 3, "x"], {}, "argument 4: "),
        ([1], {"c": "x"}, "c: "),
        ([1], {"z": "x"}, "z: "),
        ([1], {"a": "x"}, "a: "),  # not the one by place: it goes into **rest
    ):
        with pytest.raises(InvalidArguments, match=f"the task: {name}Input should be a valid integer"):
            typed.arguments(args, kwargs)
    # How many, and under which names, is told by the call.
    assert Typed(lambda a: a, takes_context=False).arguments([1, 2], {"x": 3}) == ([1, 2], {"x": 3})


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    "hint",
    ["NoSuchName", "list[", logging.Logger, lambda: 1, 5, list["NoSuchName"]],  # noqa: F821
)
def test_a_hint_that_cannot_be_used_leaves_its_argument_alone_and_is_logged_once(
    hint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def function(value, other):  # type: ignore[no-untyped-def]
        pass

    function.__annotations__ = {"value": hint, "other": int}
    typed = Typed(function, takes_context=False)
    for _ in range(2):
        assert typed.arguments(["anything", "1"], {}) == (["anything", 1], {})
    assert [(one.message, one.__dict__["hint"]) for one in caplog.records] == [("task.hint_not_used", "value")]


def test_what_has_no_signature_or_no_hints_is_left_alone() -> None:
    for function in (print, min, lambda *a, **k: None, dict):
        typed = Typed(function, takes_context=False)
        value = object()
        assert typed.arguments([value], {"k": value}) == ([value], {"k": value})
        assert typed.result(value) is value


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("hint", "returned", "stored"),
    [
        (int, 5, 5),
        (int, "5", 5),
        (None, None, None),
        (UUID, UUID(ID), UUID(ID)),
        (Order, Order(id=UUID(ID)), {"id": UUID(ID), "lines": []}),
        (Order, {"id": ID}, {"id": UUID(ID), "lines": []}),
        (list[Point], [Point(1)], [{"x": 1, "y": 0}]),
        (Pair, Pair(1, 2), [1, 2]),
        (Colour, Colour.BLUE, 2),
        (dict[Size, Colour], {Size.SMALL: Colour.RED}, {"small": "red"}),
        (set[int], {1}, [1]),
        (Any, {1}, {1}),
        (typing.NoReturn, 1, 1),
    ],
)
def test_a_result_is_made_what_its_hint_says_in_types_that_can_be_stored(
    hint: Any, returned: Any, stored: Any
) -> None:
    made = giving(hint).result(returned)
    assert made == stored
    assert type(made) is type(stored)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("hint", "returned", "told"),
    [
        (int, SECRET + "x", "result: Input should be a valid integer"),
        (None, SECRET, "result: Input should be None"),
        (Order, {"id": SECRET}, "result.id: Input should be a valid UUID"),
    ],
)
def test_a_bad_result_is_named_and_its_value_is_not(hint: Any, returned: Any, told: str) -> None:
    with pytest.raises(InvalidResult) as raised:
        giving(hint).result(returned)
    assert told in str(raised.value)
    assert SECRET not in str(raised.value)


def test_text_that_is_none_is_left_for_the_encoder_to_tell() -> None:
    assert giving(Line).result({"sku": "\ud83d", "price": 1}) == {"sku": "\ud83d", "price": Decimal(1)}


def test_a_result_that_contains_itself_is_left_for_the_encoder_to_tell() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert giving(list).result(loop) is not None
    deep = giving(list[Any]).result(loop)
    assert isinstance(deep, list)


def test_a_validator_that_ends_the_process_is_not_caught_here() -> None:
    with pytest.raises(SystemExit):
        taking(Annotated[int, AfterValidator(leave)]).arguments([1], {})


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ([], {}, "missing a required argument: 'a'"),
        ([1], {}, "missing a required argument: 'b'"),
        ([1, 2, 3], {}, "too many positional arguments"),
        ([1], {"b": 2, "z": 3}, "unexpected keyword argument 'z'"),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_refused(args: Any, kwargs: Any, told: str) -> None:
    for function, takes_context in ((lambda a, b: None, False), (lambda context, a, b: None, True)):
        with pytest.raises(InvalidJob, match=told):
            check_call(function, args, kwargs, takes_context=takes_context)
        check_call(function, [1], {"b": 2}, takes_context=takes_context)
    check_call(min, args, kwargs, takes_context=False)


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (int, 7, 7),
        (int, "7", 7),
        (int, True, 1),
        (float, 1.5, 1.5),
        (float, 2, 2.0),
        (str, "é", "é"),
        (bool, 1, True),
    ],
)
def test_a_plain_hint_takes_its_own_type_as_it_is_and_makes_it_of_others(hint: Any, value: Any, made: Any) -> None:
    def function(value):  # type: ignore[no-untyped-def]
        pass

    function.__annotations__ = {"value": hint}
    [[found], _] = Typed(function, takes_context=False).arguments([value], {})
    assert (type(found), found) == (type(made), made)
    with pytest.raises(InvalidArguments, match="value"):
        Typed(function, takes_context=False).arguments([None], {})
