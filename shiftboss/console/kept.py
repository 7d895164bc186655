"""What a process keeps for a moment, so that many who look cost no more than one."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

V = TypeVar("V")

MOST = 200
"""More keys than this are not kept; somebody makes them up."""


@dataclass(frozen=True, slots=True)
class Made(Generic[V]):
    """A value and when it was made, by this process's clock."""

    value: V
    at: float

    @property
    def age_seconds(self) -> float:
        """How long ago it was made."""
        return monotonic() - self.at


class Kept(Generic[V]):
    """Values by key, each made anew once it is too old; meanwhile other threads go on with the old one."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Made[V]] = {}
        self._busy: set[Hashable] = set()
        self._turn = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], V], *, seconds: float) -> Made[V]:
        """The value of this key, made now where it is older than `seconds` and no other thread is at it."""
        with self._turn:
            kept = self._made.get(key)
            if kept and (kept.age_seconds < seconds or key in self._busy):
                return kept
            self._busy.add(key)
        try:
            made = Made(make(), monotonic())
        finally:
            with self._turn:
                self._busy.discard(key)
        with self._turn:
            if len(self._made) >= MOST:
                self._made.clear()
            self._made[key] = made
        return made

    def last(self, key: Hashable) -> Made[V] | None:
        """What was made last, however old."""
        return self._made.get(key)

    def forget(self) -> None:
        """Keep nothing."""
        with self._turn:
            self._made.clear()
