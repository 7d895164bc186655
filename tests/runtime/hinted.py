"""Handlers with type hints, and hard ways to end."""

import asyncio
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel

from shiftboss import task


class Parcel(BaseModel):
    """What is sent."""

    id: UUID
    weight: float


def leave(value: Any) -> Any:
    """A validator that ends the process, if it is let."""
    raise SystemExit(3)


@task
def send(parcel: Parcel, times: int = 1) -> Parcel:
    """Answer with what came."""
    assert isinstance(parcel, Parcel)
    return parcel.model_copy(update={"weight": parcel.weight * times})


@task
async def send_in_loop(parcel: Parcel) -> Parcel:
    """As `send`, as a coroutine."""
    await asyncio.sleep(0)
    return parcel


@task(isolation="thread")
async def send_in_a_thread(parcel: Parcel) -> Parcel:
    """As `send`, as a coroutine in a thread."""
    return parcel


@task
def answer(how: str) -> Parcel:
    """Answer with what the hint does not allow, or what cannot be stored."""
    match how:
        case "text":
            return "sk_live_4111"  # type: ignore[return-value]
        case "nan":
            return Parcel(id=UUID(int=1), weight=float("nan"))
    return Parcel.model_construct(id="\ud83d", weight=1.0)  # type: ignore[arg-type]


@task
def answer_much() -> str:
    """A result that is larger than is allowed."""
    return "x" * 2_000_000


@task
def leave_by_input(value: Annotated[int, AfterValidator(leave)]) -> None:
    """Its input's check leaves."""


@task
def leave_by_result() -> Annotated[int, AfterValidator(leave)]:
    """Its result's check leaves."""
    return 1


class Mute(Exception):
    """Says nothing."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@task
def fail(how: str) -> None:
    """Raise what is hard to tell of."""
    match how:
        case "mute":
            raise Mute
        case "recursion":
            fail.func(how)
        case "long":
            raise ValueError("x" * 2_000_000)


@task(retry_on=(ConnectionError, TimeoutError), discard_on=LookupError, backoff=7)
def choose(how: str) -> None:
    """Raise something that is retried, given up, or held at once."""
    match how:
        case "reset":
            raise ConnectionResetError("a child of one that is retried")
        case "key":
            raise KeyError("a child of one that is given up")
        case "mute":
            raise type("MuteLookup", (Mute, LookupError), {})
        case "group":
            raise ExceptionGroup("all of them retried", [TimeoutError(), ConnectionError()])
        case "mixed":
            raise ExceptionGroup("not all of them", [TimeoutError(), LookupError()])
        case "exit":
            raise SystemExit(3)
        case "nan":
            return float("nan")  # type: ignore[return-value]
    raise ValueError("nobody has named it")
