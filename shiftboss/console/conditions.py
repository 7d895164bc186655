"""What a query asks of the record: its terms as the conditions of a search."""

from collections.abc import Iterable
from typing import Any

from shiftboss.console.query import FIELDS, IS, Ago, At, Duration, Kind, Query, Term, Text
from shiftboss.queue.authority import Owner, System
from shiftboss.queue.keys import Scope, scoped_key
from shiftboss.queue.states import State
from shiftboss.queue.store.search import Condition


def states(query: Query) -> frozenset[State] | None:
    """The states that a query allows; None where it says nothing of them."""
    told = [term for term in query.terms if term.name == "state"]
    if not told:
        return None
    allowed = frozenset(State)
    for term in told:
        allowed &= frozenset(State) - set(term.values) if term.negated else frozenset(term.values)
    return allowed


def conditions(query: Query) -> tuple[Condition, ...]:
    """The conditions of all terms but those on the state."""
    owners = query.literals("owner")
    return tuple(_condition(term, owners) for term in query.terms if term.name != "state")


def _condition(term: Term, owners: list[str]) -> Condition:
    name, values = term.name, list(term.values)
    if term.op != IS:
        return _compared(term)
    kind = FIELDS[name].kind if name else Kind.TEXT
    if kind is Kind.JSON:
        return _json(term)
    if kind in (Kind.ID, Kind.NUMBER):
        return Condition(name, values, negated=term.negated)
    if kind is Kind.REASON:
        return Condition(name, [str(value) for value in values], negated=term.negated)
    texts = [value for value in values if isinstance(value, Text)]
    match name:
        case "":
            return Condition("word", _within(texts), negated=term.negated)
        case "error":
            return Condition(name, _within(texts), negated=term.negated)
        case "task":
            return Condition("task like", [*_likes(texts), *_likes(texts, before="%.")], negated=term.negated)
        case "key":
            return _key(term, texts, owners)
    return _met(name, texts, negated=term.negated)


def _met(name: str, texts: list[Text], *, path: tuple[str, ...] = (), negated: bool) -> Condition:
    whole = [text.literal for text in texts if text.literal is not None]
    if len(whole) == len(texts):
        return Condition(name, whole, path, negated)
    return Condition(f"{name} like", _likes(texts), path, negated)


def _compared(term: Term) -> Condition:
    [value] = term.values
    name, told = f"{term.name} {term.op}", value
    match value:
        case Ago(milliseconds):
            return Condition(f"{name} ago", milliseconds / 1000, negated=term.negated)
        case At(moment):
            return Condition(name, moment, negated=term.negated)
        case Duration(milliseconds):
            told = milliseconds
    return Condition(name, told, negated=term.negated)


def _json(term: Term) -> Condition:
    texts = [value for value in term.values if isinstance(value, Text)]
    return _met(term.name, texts, path=member(term.name, term.path)[1:], negated=term.negated)


def member(name: str, path: Iterable[str]) -> tuple[str, ...]:
    """The way to a part of a job's JSON: arguments are kept by position and by name."""
    first, *rest = path
    if name == "args":
        return (name, "args" if first.isdigit() else "kwargs", first, *rest)
    return (name, first, *rest)


def _key(term: Term, texts: list[Text], owners: list[str]) -> Condition:
    literal: Any = [text.literal for text in texts]
    if all(literal):
        # A key is kept with those among whose jobs it is unique.
        whose = [Owner(owner) for owner in owners if _names_an_owner(owner)]
        forms = [f"{scope}:{key}" for key in literal for scope in ("system", Scope.GLOBAL)]
        forms += [_scoped(key, whom) for key in literal for whom in whose]
        return Condition("key", forms, negated=term.negated)
    likes = [f"{scope}:{like}" for like in _likes(texts) for scope in ("system", Scope.GLOBAL, "owner:%:")]
    return Condition("key like", likes, negated=term.negated)


def _scoped(key: str, owner: Owner) -> str:
    try:
        return scoped_key(key, authority=owner)
    except ValueError:
        return scoped_key("no such key", authority=System())


def _names_an_owner(text: str) -> bool:
    try:
        Owner(text)
    except ValueError:
        return False
    return True


def _likes(texts: Iterable[Text], *, before: str = "") -> list[str]:
    """Patterns of LIKE, in which only a star of the query is a wildcard."""
    return [before + "%".join(_escaped(piece) for piece in text.pieces) for text in texts]


def _within(texts: Iterable[Text]) -> list[str]:
    return [f"%{like}%" for like in _likes(texts)]


def _escaped(piece: str) -> str:
    return piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
