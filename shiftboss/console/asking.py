"""How a page asks for an act before it is done."""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.functional import Promise

from shiftboss.acts import Acted
from shiftboss.permissions import NEED_REASON, Act


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """An act: the last part of its address, its question, its effect, and how it is done."""

    act: Act
    resource: str
    question: Promise
    effect: Promise
    perform: Callable[..., Acted]

    @property
    def needs_reason(self) -> bool:
        """Whether it stops or destroys something, and is refused without a reason."""
        return self.act in NEED_REASON
