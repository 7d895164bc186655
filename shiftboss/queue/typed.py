"""Inputs and results of a task, validated against the type hints of its function, by pydantic.

In pydantic's lax mode: values come from JSON, where a date is a text and a set is a list, and so "5" is an `int`
too. What has no hint passes untouched, and so does what has one that cannot be resolved or that pydantic cannot
work with: that is logged, once for each. Defaults are the function's own business. No message repeats a value: it
may be a secret.
"""

import inspect
import logging
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from shiftboss.queue.errors import InvalidArguments, InvalidJob, InvalidResult

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

log = logging.getLogger("shiftboss.typed")

MAX_PROBLEMS = 3
MAX_PLACE = 200
_ANYTHING = (inspect.Parameter.empty, Any, object, typing.NoReturn, typing.Never)
# What JSON or the codecs of payload.py hold as it is, once it is of this type.
_STORABLE = frozenset({None, type(None), bool, int, float, str, UUID, Decimal, datetime, date, time, timedelta})
# A value that is of such a type, no more and no less, is what pydantic would make of it.
_EXACT = frozenset({type(None), bool, int, float, str})
# What pydantic's messages may name: it is from the hint, and not from the value.
_OF_THE_HINT = frozenset(
    {"actual_length", "class", "class_name", "decimal_places", "expected", "field_type", "ge", "gt", "le", "lt"}
    | {"max_digits", "max_length", "min_length", "multiple_of", "pattern", "whole_digits"}
)
_OWN_WORDS = frozenset({"value_error", "assertion_error"})


class Typed:
    """What a function takes and gives. Built once for each task; without hints it costs nothing."""

    __slots__ = ("_by_name", "_by_place", "_hinted", "_more_by_name", "_more_by_place", "_result")

    def __init__(self, function: Callable[..., Any], *, takes_context: bool) -> None:
        self._by_place: list[tuple[str, _Check | None]] = []
        self._by_name: dict[str, _Check | None] = {}
        self._hinted = False
        self._more_by_place: _Check | None = None
        self._more_by_name: _Check | None = None
        self._result: _Check | None = None
        try:
            signature = _signature(function)
        except (TypeError, ValueError):
            return  # none to be had
        parameters = list(signature.parameters.values())
        for parameter in parameters[1:] if takes_context else parameters:
            self._add(parameter, _check(function, parameter.name, parameter.annotation))
        self._result = _check(function, "return", signature.return_annotation)

    def _add(self, parameter: inspect.Parameter, check: "_Check | None") -> None:
        self._hinted |= check is not None
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                self._more_by_place = check
            case inspect.Parameter.VAR_KEYWORD:
                self._more_by_name = check
            case kind:
                if kind is not inspect.Parameter.KEYWORD_ONLY:
                    self._by_place.append((parameter.name, check))
                if kind is not inspect.Parameter.POSITIONAL_ONLY:
                    self._by_name[parameter.name] = check

    def arguments(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the hints want them. Raises InvalidArguments, naming those that cannot be made so.

        How many there are, and under which names, is for the call to find out.
        """
        if not self._hinted or (not kwargs and self._are_exact(args)):
            return args, kwargs
        problems: list[str] = []
        args = [
            value if check is None else check.made(value, name, problems)
            for value, (name, check) in zip(args, self._places(len(args)), strict=True)
        ]
        for name in kwargs:
            if (check := self._by_name.get(name, self._more_by_name)) is not None:
                kwargs[name] = check.made(kwargs[name], name, problems)
        if problems:
            raise InvalidArguments(f"the arguments do not fit the task: {_listed(problems)}")
        return args, kwargs

    def _are_exact(self, args: list[Any]) -> bool:
        """Whether nothing has to be made of them, which is soon said of what most tasks take."""
        if len(args) > len(self._by_place):
            return False
        for value, (_, check) in zip(args, self._by_place, strict=False):
            if check is not None and type(value) is not check.exact:
                return False
        return True

    def _places(self, number: int) -> Iterable[tuple[str, "_Check | None"]]:
        yield from self._by_place[:number]
        for place in range(len(self._by_place), number):
            yield f"argument {place + 1}", self._more_by_place

    def result(self, value: Any) -> Any:
        """The result as the hint wants it, in types that can be stored. Raises InvalidResult, naming the field."""
        if self._result is None or type(value) is self._result.exact:
            return value
        problems: list[str] = []
        value = self._result.made(value, "result", problems)
        if problems:
            raise InvalidResult(f"the result is not what the task's hint says: {_listed(problems)}")
        return self._result.stored(value)


class _Check:
    """One hint. For a plain one pydantic is not even loaded before a value of another type comes.

    A value whose type is `exact` is as the hint wants it, and can be stored.
    """

    __slots__ = ("_adapter", "_hint", "_storable", "exact")

    def __init__(self, hint: Any) -> None:
        self._hint = hint
        self.exact: type | None = hint if isinstance(hint, type) and hint in _EXACT else None
        self._storable = isinstance(hint, type | None) and hint in _STORABLE
        self._adapter: TypeAdapter[Any] | None = None if self.exact is not None else self._built()

    def _built(self) -> "TypeAdapter[Any]":
        from pydantic import TypeAdapter

        return TypeAdapter(self._hint)

    def made(self, value: Any, name: str, problems: list[str]) -> Any:
        """The value as the hint wants it, or what is wrong with it added to the problems."""
        if type(value) is self.exact:
            return value
        from pydantic import ValidationError

        if self._adapter is None:
            self._adapter = self._built()
        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            problems += _told(name, error)
        return None

    def stored(self, value: Any) -> Any:
        """Models and dataclasses as objects, enums as their values, sets as lists; other types are kept."""
        if self._storable:
            return value
        assert self._adapter is not None  # only plain hints, which are storable, wait for it
        try:
            return _plain(self._adapter.dump_python(value, warnings=False))
        except (ValueError, RecursionError):
            return value  # it contains itself, which the encoder tells


def check_call(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], *, takes_context: bool) -> None:
    """Raise InvalidJob, naming the parameter, where the function cannot be called so."""
    try:
        signature = _signature(function)
    except (TypeError, ValueError):
        return  # none to be had
    try:
        signature.bind(*([None, *args] if takes_context else args), **kwargs)
    except TypeError as error:
        raise InvalidJob(f"the arguments do not fit the task: {error}") from None


@lru_cache(maxsize=10_000)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        # Names that only type checkers import are no error yet.
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


class _Annotated:
    """One annotation in the place of a function's, for `typing.get_type_hints`."""

    def __init__(self, annotation: Any) -> None:
        self.__annotations__ = {"it": annotation}


def _check(function: Callable[..., Any], name: str, annotation: Any) -> _Check | None:
    if _says_nothing(annotation):
        return None
    try:
        names = getattr(inspect.unwrap(function), "__globals__", {})
        hint = typing.get_type_hints(_Annotated(annotation), names, include_extras=True)["it"]
        if inspect.isroutine(hint):
            raise TypeError("a function is no type")  # pydantic would validate its calls, and call it
        return None if _says_nothing(hint) else _Check(hint)
    except Exception as error:  # resolving and building run code of the user's types
        task = f"{function.__module__}.{getattr(function, '__qualname__', function)}"
        log.warning("task.hint_not_used", extra={"task": task, "hint": name, "error": type(error).__name__})
        return None


def _says_nothing(hint: Any) -> bool:
    # Not by equality: the types of others may have their own.
    return any(hint is one for one in _ANYTHING)


def _told(name: str, error: "ValidationError") -> list[str]:
    """Where it does not fit, and what was expected there."""
    problems = error.errors(include_url=False, include_input=False)[: MAX_PROBLEMS + 1]
    return [f"{_place(name, problem['loc'])}: {_expected(problem)}" for problem in problems]


def _place(name: str, within: Iterable[int | str]) -> str:
    place = name + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in within)
    return place if len(place) <= MAX_PLACE else place[:MAX_PLACE] + "…"


def _expected(problem: Any) -> str:
    from pydantic_core.core_schema import ErrorType

    kind = problem["type"]
    if kind in _OWN_WORDS or kind not in typing.get_args(ErrorType):
        return f"a check of the project's own refused it ({kind})"
    text = str(problem["msg"])
    for what, said in problem.get("ctx", {}).items():
        if what not in _OF_THE_HINT:
            text = text.partition(str(said))[0].rstrip(" ,:'")
    return text


def _listed(problems: list[str]) -> str:
    return "; ".join(problems[:MAX_PROBLEMS]) + ("; and more" if len(problems) > MAX_PROBLEMS else "")


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return _plain(value.value)
        case dict():
            return {_plain(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
    return value
