"""Handlers of kinds that `tests.faults.witness` has not got. Each logs its attempts as the auditor reads them."""

import os
import signal
import time
from typing import Any

from django.db import connection

from shiftboss import task
from tests.faults.witness.tasks import TICK_SECONDS
from tests.logbook import witnessed, write

STEPS = 3
LAST_SECONDS = 120.0


@task(takes_context=True, backoff=0.1)
def fail_always(context: Any) -> None:
    """Raise, each time."""
    with witnessed(context):
        raise ValueError("never")


@task(takes_context=True)
def give_up(context: Any) -> None:
    """Discard the job."""
    with witnessed(context):
        context.discard("of no use any more")


@task(takes_context=True)
def die_once(context: Any) -> int:
    """Kill the own process in the first attempt."""
    with witnessed(context):
        if context.fence == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return int(context.fence)


@task(takes_context=True)
def die_always(context: Any) -> None:
    """Kill the own process in each attempt, in the way of a bad pointer."""
    with witnessed(context):
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(LAST_SECONDS)  # the signal may go to another thread


@task(takes_context=True, backoff=0.1)
def be_deaf(context: Any) -> None:
    """Go on beyond the timeout, deaf to everything."""
    ends_at = time.monotonic() + LAST_SECONDS
    with witnessed(context) as tick:
        while time.monotonic() < ends_at:
            tick()
            time.sleep(TICK_SECONDS)


@task(takes_context=True, backoff=0.1)
def go_on(context: Any) -> int:
    """Go on from the checkpoint by one step, and fail before the last one."""
    with witnessed(context):
        who = f"{context.job_id}.{context.fence}"
        found = context.checkpoint.data or 0
        write(f"found-{found}", who)
        if found < STEPS:
            context.checkpoint.save(found + 1)
            write(f"saved-{found + 1}", who)
            raise ValueError("more is to be done")
        return int(found)


@task(takes_context=True, backoff=0.1)
def enter(context: Any) -> None:
    """Write a row of the user's own, and complete the job in the same transaction."""
    with witnessed(context), context.complete_in_transaction(context.fence):
        with connection.cursor() as cursor:
            cursor.execute("insert into ledger values (%s, %s, %s)", [0, context.job_id, context.fence])
        write("commits", f"{context.job_id}.{context.fence}")
