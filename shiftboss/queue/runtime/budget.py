"""How much goes to the record, or comes from it, at once: less after each try that took too long."""

from dataclasses import dataclass

HALVINGS = 20
"""So often at most: from the largest batch to one row, and back within as many writes."""


@dataclass(slots=True)
class Budget:
    """Rows and characters of one batch. A batch that does not get through in time is never tried again as it was.

    Halved after a try that failed, doubled after one that did not. One row is always allowed.
    """

    most_rows: int
    most_characters: int = 0
    _halvings: int = 0

    @property
    def rows(self) -> int:
        """At most so many rows, and at least one."""
        return max(1, self.most_rows >> self._halvings)

    @property
    def characters(self) -> int:
        """A batch ends with the row that reaches so many."""
        return self.most_characters >> self._halvings

    def passed(self) -> None:
        """A batch got through."""
        self._halvings = max(0, self._halvings - 1)

    def failed(self) -> None:
        """A batch did not."""
        self._halvings = min(HALVINGS, self._halvings + 1)
