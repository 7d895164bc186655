"""What is wrong with a request, in plain words: where, and what would be right there."""

from collections.abc import Iterable, Mapping
from typing import Any

from ninja import Schema

from shiftboss.console.api import schemas

FIELDS = frozenset(
    name
    for kind in vars(schemas).values()
    if isinstance(kind, type) and issubclass(kind, Schema)
    for name in kind.model_fields
)
"""Fields of requests. Whatever else stands in the path to a mistake names one of several types that were tried."""

PLACES = frozenset({"body", "query", "path", "header"})

WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "string_pattern_mismatch": "must be an id, as it was given out",
    "timezone_aware": "must tell its offset from UTC, as in 2026-01-31T12:00:00Z",
    "value_error": "{error}",
}
"""What is said of each kind of mistake, with facts of the mistake."""


def said(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Each place once. Where several kinds of values would do there, all of them are told."""
    found: dict[str, list[str]] = {}
    for error in errors:
        words = found.setdefault(_where(error), [])
        if (text := _words(error)) not in words:
            words.append(text)
    return [{"where": where, "message": ", or ".join(words)} for where, words in found.items()]


def _where(error: Mapping[str, Any]) -> str:
    *way, last = error["loc"]
    known = [part for part in way if isinstance(part, int) or part in FIELDS | PLACES]
    if isinstance(last, int) or last in FIELDS | PLACES or error["type"] == "extra_forbidden":
        known.append(last)
    return ".".join(map(str, known))


def _words(error: Mapping[str, Any]) -> str:
    facts = error.get("ctx", {})
    expected = str(facts.get("expected", "")).replace("'", "").replace(" or ", ", ")
    form = WORDS.get(error["type"], "cannot be so")
    return form.format(**{**facts, "expected": expected})[:200]
