"""Waiting for a fact instead of for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], *, seconds: float, every: float = 0.02) -> T:
    """Ask until the answer is true, and return it. AssertionError with the last answer after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s; the last answer was {answer!r}")
        time.sleep(every)
