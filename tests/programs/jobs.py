"""Tasks for `shiftboss run`."""

from typing import Any

from shiftboss import task


@task
def add(one: int, two: int = 1) -> int:
    """The sum."""
    return one + two


@task(takes_context=True)
def attempt(context: Any) -> int:
    """Which attempt the context says this is."""
    number: int = context.attempt
    return number


@task
async def slowly(word: str) -> str:
    """The word."""
    return word


@task
def broken() -> None:
    """Fails."""
    raise ValueError("broken on purpose")


@task
def unstorable() -> object:
    """Returns what JSON cannot hold."""
    return object()


def plain() -> None:
    """No task."""
