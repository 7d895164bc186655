"""Tasks for `shiftboss run`."""

import asyncio
import sys
from typing import Any

from shiftboss import Resource, task


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


desk = Resource(
    "desk", create=lambda: ["desk"], destroy=lambda one: print("closed", *one, file=sys.stderr), maximum=1
)


async def _opened() -> list[str]:
    return ["line"]


Resource("line", create=_opened)


@task(takes_context=True, resource="desk", secrets=["key"])
def work(context: Any) -> list[str]:
    """What it is lent, and what it may ask for."""
    return [*context.resource, str(context.secrets["key"])]


@task(takes_context=True, resource="line")
def call(context: Any) -> list[str]:
    """What a coroutine function has made."""
    lent: list[str] = context.resource
    return lent


@task(takes_context=True, resource="nothing")
def stranded(context: Any) -> None:
    """It needs what nobody declared."""
