"""In whose name a call is made. Every verb and read takes one, by keyword, and none is defaulted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shiftboss.queue.errors import NotAllowed, OutOfScope

MAX_OWNER_LENGTH = 200
SEPARATOR = "::"
"""Stands between owner and key in the record; no owner's id holds it or ends in part of it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One owner: sees and acts on its own jobs only.

    `id` is any text of 1 to 200 characters without control characters or lone surrogates; it neither holds `::`
    nor ends in `:`. Raises ValueError otherwise.
    """

    id: str

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise TypeError(f"Owner takes a str, not {type(self.id).__name__}")
        if not self.id.strip():
            raise ValueError("an Owner needs a non-empty id; for the system itself use System()")
        if len(self.id) > MAX_OWNER_LENGTH:
            raise ValueError(f"an Owner's id has at most {MAX_OWNER_LENGTH} characters, not {len(self.id)}")
        if any(c < " " or "\ud800" <= c <= "\udfff" or c == "\x7f" for c in self.id):
            raise ValueError("an Owner's id holds a control character or a lone surrogate")
        if SEPARATOR in self.id or self.id.endswith(SEPARATOR[:1]):
            raise ValueError(
                f"an Owner's id neither holds {SEPARATOR!r} nor ends in {SEPARATOR[:1]!r}: {self.id!r}"
            )


@dataclass(frozen=True, slots=True)
class System:
    """The system itself: sees and acts on every job. Staff act as System after a permission check."""


@dataclass(frozen=True, slots=True)
class Scoped:
    """Somebody of the staff who sees and acts on a part of the jobs: those of these queues and these owners.

    None stands for all queues, or for all owners and the jobs that have none; at least one of the two is given.
    A job is within it where both hold. Raises TypeError and ValueError for anything but collections of names.
    """

    queues: frozenset[str] | None = None
    owners: frozenset[str] | None = None

    def __init__(self, *, queues: Iterable[str] | None = None, owners: Iterable[str] | None = None) -> None:
        if queues is None and owners is None:
            raise ValueError("Scoped takes queues, owners, or both; who sees everything is System()")
        object.__setattr__(self, "queues", _names("queues", queues))
        object.__setattr__(self, "owners", _names("owners", owners))

    def __str__(self) -> str:
        parts = [
            f"the {kind} {', '.join(sorted(names)) or '(none)'}"
            for kind, names in (("queues", self.queues), ("owners", self.owners))
            if names is not None
        ]
        return " of ".join(parts)


def _names(of_what: str, given: Iterable[str] | None) -> frozenset[str] | None:
    if given is None:
        return None
    if isinstance(given, str | bytes):
        raise TypeError(f"{of_what} is a collection of names, not {given!r}")
    names = frozenset(given)
    if any(not isinstance(name, str) for name in names):
        raise TypeError(f"{of_what} is a collection of texts")
    return names


Authority = Owner | System | Scoped
Staff = System | Scoped
"""In whose name a person of the staff reads and acts."""


def reach_of(authority: Authority) -> dict[str, Any]:
    """What statements filter jobs by, as their parameters; None does not filter.

    `owner` sees its own jobs and those that it watches; `queues` and `owners` are a scope's.
    """
    if not isinstance(authority, Scoped):
        return {"owner": owner_of(authority), "queues": None, "owners": None}
    queues, owners = authority.queues, authority.owners
    return {
        "owner": None,
        "queues": None if queues is None else sorted(queues),
        "owners": None if owners is None else sorted(owners),
    }


def queues_of(authority: Authority, verb: str) -> frozenset[str] | None:
    """The queues that are seen as a whole, None for all: a scope of some owners has none. For staff only.

    Raises NotAllowed.
    """
    if isinstance(authority, Scoped):
        return authority.queues or frozenset() if authority.owners is None else frozenset()
    require_system(authority, verb)
    return None


def require_queue_within(authority: Authority, queue: str, verb: str) -> None:
    """Refuse who does not act on this queue as a whole. Raises NotAllowed."""
    queues = queues_of(authority, verb)
    if queues is not None and queue not in queues:
        raise OutOfScope(f"{verb} of the queue {queue!r}", str(authority))


def require_staff(authority: Authority, verb: str) -> None:
    """Refuse owners. Raises NotAllowed."""
    queues_of(authority, verb)


def owner_of_request(request: Any) -> Owner:
    """The owner that a request's user is, `Owner("user_<primary key>")`.

    Raises NotAllowed where nobody is logged in.
    """
    user = getattr(request, "user", None)
    if user is None:
        raise NotAllowed(
            "the request has no user: add django.contrib.auth's AuthenticationMiddleware to MIDDLEWARE"
        )
    return owner_of_user(user)


def owner_of_user(user: Any) -> Owner:
    """As `owner_of_request`, of a user: one of Django's that is saved and logged in."""
    if not user.is_authenticated:
        raise NotAllowed("nobody is logged in: an anonymous user owns no jobs")
    if user.pk is None:
        raise NotAllowed("the user is not saved yet: without a primary key it would be anybody's")
    try:
        return Owner(f"user_{user.pk}")
    except ValueError as problem:
        raise NotAllowed(f"the user's primary key cannot name an owner: {problem}") from problem


def owner_of(authority: Authority) -> str | None:
    """The owner's id, None for System. Raises NotAllowed for staff who are not the system, TypeError else."""
    match authority:
        case Owner(id=owner):
            return owner
        case System():
            return None
        case Scoped():
            raise OutOfScope("what is an owner's own, or the system's", str(authority))
    raise TypeError(f'authority must be Owner("…") or System(), not {authority!r}')


def require_system(authority: Authority, verb: str) -> None:
    """Refuse everyone but System. Raises NotAllowed."""
    if isinstance(authority, Scoped):
        raise OutOfScope(f"{verb} of the whole installation", str(authority))
    if owner_of(authority) is not None:
        raise NotAllowed(f"{verb} is for System(), not for {authority!r}")
