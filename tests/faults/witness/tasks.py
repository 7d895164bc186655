"""Handlers whose logs name the attempt: job and fence. See `tests.faults.audit`."""

import asyncio
import time
from typing import Any

from shiftboss import task
from tests.logbook import opened, witnessed

TICK_SECONDS = 0.05


def _opened(gate: str | None) -> bool:
    return gate is not None and opened(gate)


@task(takes_context=True, backoff=0.1)
def work(context: Any, seconds: float = 0.0, gate: str | None = None) -> int:
    """Work for so long, or until the gate is open, deaf to everything; answers with the fence."""
    ends_at = time.monotonic() + seconds
    with witnessed(context) as tick:
        while time.monotonic() < ends_at and not _opened(gate):
            tick()
            time.sleep(min(TICK_SECONDS, max(0.0, ends_at - time.monotonic())))
        return int(context.fence)


@task(takes_context=True, backoff=0.1, isolation="process")
def work_alone(context: Any, seconds: float = 0.0) -> int:
    """As `work`, in a process of its own."""
    ends_at = time.monotonic() + seconds
    with witnessed(context) as tick:
        while time.monotonic() < ends_at:
            tick()
            time.sleep(min(TICK_SECONDS, max(0.0, ends_at - time.monotonic())))
        return int(context.fence)


@task(takes_context=True, backoff=0.1)
async def work_in_loop(context: Any, seconds: float = 0.0) -> int:
    """As `work`, as a coroutine."""
    ends_at = time.monotonic() + seconds
    with witnessed(context) as tick:
        while time.monotonic() < ends_at:
            tick()
            await asyncio.sleep(min(TICK_SECONDS, max(0.0, ends_at - time.monotonic())))
        return int(context.fence)


@task(takes_context=True, backoff=0.1)
def fail_at_first(context: Any, times: int = 1) -> int:
    """Fail so often, then work."""
    with witnessed(context):
        if context.attempt <= times:
            raise ValueError("not yet")
        return int(context.fence)


@task(takes_context=True)
def put_off_at_first(context: Any, seconds: float = 0.1) -> int:
    """Snooze once, then work."""
    with witnessed(context):
        if context.fence == 1:
            context.snooze(seconds)
        return int(context.fence)
