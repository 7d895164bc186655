"""What differs between two JSON texts, line by line as they are laid out for reading."""

import difflib
from dataclasses import dataclass

from shiftboss.console import pretty

LONGEST = 3000
"""Lines that are compared; the work grows with their product."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the difference: `kind` is `old`, `new`, `same`, or `gap` where lines are left out."""

    kind: str
    text: str


_KINDS = {"-": "old", "+": "new", " ": "same", "@": "gap"}


def lines(before: str, after: str) -> list[Line] | None:
    """The changed lines and three around each; none where nothing differs, None where they are too long for it."""
    old, new = pretty.indented(before).split("\n"), pretty.indented(after).split("\n")
    if max(len(old), len(new)) > LONGEST:
        return None
    told = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    return [Line(_KINDS[line[0]], "" if line[0] == "@" else line[1:]) for line in told]
