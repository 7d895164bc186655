"""The end of a log as it is shown: lines that are found, cut where they are very long. Plain functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_SOUGHT = 200
MOST_CHARACTERS = 1000
"""Of a line; what is beyond is told by its length. The agent has cut what is longer than twice that already."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its number among those that the agent sent, its text, and how many characters more it has."""

    number: int
    text: str
    more: int


@dataclass(frozen=True, slots=True)
class Shown:
    """The lines that hold what is sought; `of` were sent."""

    lines: list[Line]
    of: int


def shown(sent: Any, sought: str = "") -> Shown | None:
    """The lines of an answer that hold a text, in any case; None where no lines came."""
    if not isinstance(sent, Sequence) or isinstance(sent, str):
        return None
    wanted = sought.casefold()
    lines = [
        Line(number, line[:MOST_CHARACTERS], max(0, len(line) - MOST_CHARACTERS))
        for number, line in enumerate(map(str, sent), start=1)
        if wanted in line.casefold()
    ]
    return Shown(lines, len(sent))
