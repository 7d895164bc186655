"""The benchmark's tasks: each leaves the harness's mark and does nothing, or sleeps."""

import time

from qbench.adapters.base import SLEEP
from qbench.record import mark

from shiftboss import task


@task
def noop(n: int) -> None:
    """Leave a mark."""
    mark(n)


@task
def sleep(n: int) -> None:
    """Leave a mark and sleep."""
    mark(n)
    time.sleep(SLEEP)
