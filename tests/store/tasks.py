"""Tasks as a project declares them."""

from typing import Any

from shiftboss import task


@task
def add(a: int, b: int = 0) -> int:
    """A plain one."""
    return a + b


@task(priority=5, queue_name="mail", max_attempts=2, backoff=[1, 60])
def send(to: str) -> None:
    """One with options."""


@task(takes_context=True)
def with_context(context: Any, a: int) -> int:
    """One that is given its context."""
    return a


@task
async def fetch(url: str) -> str:
    """A coroutine."""
    return url


def no_task() -> None:
    """Not declared as one."""
