"""Keys of jobs as the record holds them: with those among whose jobs each is unique."""

from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from shiftboss.queue.authority import SEPARATOR, Authority, Owner, System, owner_of

MAX_KEY_LENGTH = 400


class Scope(StrEnum):
    """Among whose jobs a key is unique: those of the same authority, or all."""

    OWNER = "owner"
    GLOBAL = "global"


class ScopedKey(NamedTuple):
    """A job's key and among whose jobs it is unique: `owner` is None for System's and for global keys."""

    scope: Scope
    owner: str | None
    key: str


def scoped_key(key: str, *, authority: Authority, scope: Scope = Scope.OWNER) -> str:
    """The text that the record holds for a key: no two (scope, owner, key) have the same one.

    Raises ValueError for a key that is not 1 to 400 characters without control characters or lone surrogates.
    """
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY_LENGTH:
        size = f"{len(key)} characters" if isinstance(key, str) else f"a {type(key).__name__}"
        raise ValueError(f"a key has 1 to {MAX_KEY_LENGTH} characters, not {size}")
    if any(c < " " or "\ud800" <= c <= "\udfff" or c == "\x7f" for c in key):
        raise ValueError("a key holds a control character or a lone surrogate")
    owner = owner_of(authority)
    if scope is Scope.GLOBAL:
        return f"global:{key}"
    # The first separator ends the owner, whatever the key holds.
    return f"system:{key}" if owner is None else f"owner:{owner}{SEPARATOR}{key}"


def read_key(text: str) -> ScopedKey:
    """What `scoped_key` made the text of. Raises ValueError for a text that it cannot have made."""
    kind, _, rest = text.partition(":")
    with suppress(ValueError):
        read, authority = _parts(kind, rest)
        if scoped_key(read.key, authority=authority, scope=read.scope) == text:
            return read
    raise ValueError(f"no key of a job: {text[:80]!r}")


def _parts(kind: str, rest: str) -> tuple[ScopedKey, Authority]:
    """What the text seems to be made of. Raises ValueError where it is certain to be no key."""
    if kind == "global":
        return ScopedKey(Scope.GLOBAL, None, rest), System()
    if kind == "system":
        return ScopedKey(Scope.OWNER, None, rest), System()
    owner, _, key = rest.partition(SEPARATOR)
    return ScopedKey(Scope.OWNER, owner, key), Owner(owner)
