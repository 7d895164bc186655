"""In whose name a call is made. Every verb and read takes one, by keyword, and none is defaulted."""

from dataclasses import dataclass

from shiftboss.queue.errors import NotAllowed

MAX_OWNER_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Owner:
    """One owner: sees and acts on its own jobs only.

    `id` is any text of 1 to 200 characters without control characters or lone surrogates.
    Raises ValueError otherwise.
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


@dataclass(frozen=True, slots=True)
class System:
    """The system itself: sees and acts on every job. Staff act as System after a permission check."""


Authority = Owner | System


def owner_of(authority: Authority) -> str | None:
    """The owner's id that statements filter by; None for System. Raises TypeError for anything else."""
    match authority:
        case Owner(id=owner):
            return owner
        case System():
            return None
    raise TypeError(f'authority must be Owner("…") or System(), not {authority!r}')


def require_system(authority: Authority, verb: str) -> None:
    """Refuse everyone but System. Raises NotAllowed."""
    if owner_of(authority) is not None:
        raise NotAllowed(f"{verb} is for System(), not for {authority!r}")
