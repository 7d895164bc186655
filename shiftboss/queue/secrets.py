"""A secret's value, which shows itself to nobody by accident."""

from typing import Any, NoReturn

MASK = "********"


class Secret:
    """The value of a secret: `reveal()` gives it, and nothing else does.

    Printed, logged or formatted it is a mask, and it cannot be stored, pickled or copied: arguments, results,
    events and checkpoints that hold one are refused.
    """

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str | bytes) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str | bytes:
        """The value itself, as its provider gave it."""
        return self._value

    def __repr__(self) -> str:
        return f"<Secret {self.name!r} {MASK}>"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a secret is neither pickled nor copied: pass its name, and ask for it where it is used")
