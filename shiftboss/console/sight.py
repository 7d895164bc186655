"""What of an attempt a person sees. The one place that decides, for pages, the API and the command line."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from shiftboss.console import pretty
from shiftboss.console.stored import as_object
from shiftboss.permissions import VIEW_TRACEBACK, Person
from shiftboss.queue.jobs import AttemptRow

WRITTEN = frozenset({"output", "not_storable"})
"""Members of the evidence with what the handler has written; the second is all of one that could not be stored."""

READABLE_CHARACTERS = 500_000
"""Longer evidence, which no worker writes, is not taken apart."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An attempt without what is withheld from somebody, and the names of that."""

    row: AttemptRow
    withheld: tuple[str, ...] = ()
    permission = VIEW_TRACEBACK

    def as_object(self) -> dict[str, Any]:
        """The attempt for `stored.dumps`."""
        told = {"permission": self.permission, "parts": list(self.withheld)} if self.withheld else None
        return as_object(self.row) | {"withheld": told}


def seen(attempts: Iterable[AttemptRow], *, by: Person) -> list[Seen]:
    """The attempts as this person sees them: tracebacks and what handlers have written need a permission."""
    if by.allows(VIEW_TRACEBACK):
        return [Seen(attempt) for attempt in attempts]
    return [_without_what_was_written(attempt) for attempt in attempts]


def _without_what_was_written(attempt: AttemptRow) -> Seen:
    withheld = ["traceback"] if attempt.traceback else []
    told = members(attempt.evidence)
    if told is None:
        # Nobody knows what is in it.
        return Seen(replace(attempt, traceback=None, evidence="{}"), (*withheld, "evidence"))
    if written := sorted(WRITTEN & told.keys()):
        told = {name: value for name, value in told.items() if name not in WRITTEN}
        attempt = replace(attempt, evidence=pretty.of_members(told))
    return Seen(replace(attempt, traceback=None), (*withheld, *written))


def members(evidence: str) -> dict[str, str] | None:
    """What the evidence holds, each value as JSON text; None where it is of a shape that no worker writes."""
    return pretty.members(evidence) if len(evidence) <= READABLE_CHARACTERS else None
