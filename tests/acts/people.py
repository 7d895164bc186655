"""People as acts know them."""

from collections.abc import Iterable
from uuid import uuid4

from shiftboss.permissions import Person, Via
from shiftboss.queue.authority import Staff, System

EVERYTHING = None


def person(
    name: str = "kim",
    *,
    may: Iterable[str] | None = EVERYTHING,
    via: Via = Via.CODE,
    authority: Staff = System(),  # noqa: B008
) -> Person:
    """Somebody to whom these permissions are given, or all."""
    allows = (lambda _: True) if may is None else frozenset(may).__contains__
    return Person(kind="user", id=name, name=name, via=via, allows=allows, authority=authority)


def a_request() -> str:
    """A request id that nobody has used: the audit is never emptied."""
    return uuid4().hex
