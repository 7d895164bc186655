"""Tasks for `shiftboss run`."""

import asyncio
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


@task(takes_context=True)
def later(context: Any) -> None:
    """Puts itself off."""
    context.snooze(90)


@task(takes_context=True)
async def hopeless(context: Any) -> None:
    """Gives itself up, in one of several tasks."""

    async def give_up() -> None:
        context.discard("the customer is gone")

    async with asyncio.TaskGroup() as group:
        group.create_task(give_up())


@task(takes_context=True)
def stopped(context: Any) -> None:
    """Ends as one does that was asked to."""
    context.token.set("user")
    context.raise_if_cancelled()


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
