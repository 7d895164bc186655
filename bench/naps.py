"""Handlers that take a moment, so that a queue stays full for a while."""

import time

from shiftboss import task


@task
def nap(n: int, seconds: float = 0.005) -> None:
    """Sleep."""
    time.sleep(seconds)
