"""Handlers that write effects and their own completion in one transaction."""

import json
import os
import time
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import OperationalError, connection, transaction

from shiftboss import task


def write(number: int, context: Any) -> None:
    """The effect."""
    with connection.cursor() as cursor:
        cursor.execute("insert into ledger values (%s, %s, %s)", [number, context.job_id, context.fence])


def stand(number: int, point: str) -> None:
    """Say that the run of this number stands at this point, and wait there to be struck; once."""
    folder = _points()
    struck = folder / f"{number}.struck"
    if struck.exists():
        return
    connection.ensure_connection()
    facts = {
        "number": number,
        "point": point,
        "executor": os.getpid(),
        "keeper": os.getppid(),
        "backend": connection.connection.info.backend_pid,
    }
    written = folder / f"{number}.{os.getpid()}"
    written.write_text(json.dumps(facts))
    written.rename(folder / f"{number}.here")
    while not struck.exists():
        time.sleep(0.005)


def _points() -> Path:
    return Path(os.environ["TEST_LOG"], "points")


@task(takes_context=True)
def enter(context: Any, number: int, point: str | None = None) -> str:
    """Write and complete; stand between BEGIN and COMMIT, or between the commit and its report."""
    with context.complete_in_transaction(number):
        write(number, context)
        if point is not None:
            (_points() / f"{number}.going").write_text(str(os.getpid()))
        if point == "open":
            stand(number, point)
    if point == "committed":
        stand(number, point)
    return "what the handler returns is ignored"


@task(takes_context=True, isolation="process")
def enter_alone(context: Any, number: int) -> None:
    """As `enter`, in a process of its own."""
    with context.complete_in_transaction(number):
        write(number, context)


@task(takes_context=True)
async def enter_in_loop(context: Any, number: int) -> None:
    """As `enter`, from a coroutine."""

    def work() -> None:
        with context.complete_in_transaction(number), transaction.atomic():
            write(number, context)

    try:
        context.complete_in_transaction(number)
    except RuntimeError as error:
        if "sync_to_async" in str(error):
            await sync_to_async(work)()


def tidy_up(context: Any, number: int) -> None:
    """Take some time for what is not part of the job any more."""
    from tests.runtime import tasks

    tasks.write("tidies", number)
    while context.cancelled is None and not tasks.opened("tidy"):
        time.sleep(0.01)
    tasks.write("tidied" if context.cancelled is None else "cancelled", number)


@task(takes_context=True, max_attempts=1)
def end_after(context: Any, number: int, how: str) -> Any:
    """Complete, and end in another way then."""
    with context.complete_in_transaction(number):
        write(number, context)
        if how == "hook":
            transaction.on_commit(lambda: 1 / 0)
    match how:
        case "raise":
            raise ValueError("too late")
        case "exit":
            raise SystemExit(3)
        case "snooze":
            context.snooze(3600)
        case "discard":
            context.discard("too late")
        case "again":
            with context.complete_in_transaction(number):
                write(number, context)
        case "nonsense":
            return object()
        case "tidy":
            tidy_up(context, number)
    return how


@task(takes_context=True, max_attempts=1)
def break_off(context: Any, number: int, how: str) -> None:
    """Fail in the block, one way or another."""
    if how == "outer":
        with transaction.atomic(), context.complete_in_transaction(number):
            write(number, context)
    if how == "no autocommit":
        transaction.set_autocommit(False)
    with context.complete_in_transaction(object() if how == "result" else number):
        write(number, context)
        match how:
            case "raise":
                raise ValueError("in the block")
            case "rollback":
                transaction.set_rollback(True)
            case "close":
                connection.close()
            case "snooze":
                context.snooze(3600)


@task(takes_context=True)
def savepoints(context: Any, number: int) -> None:
    """A part is rolled back, the rest is committed; the first try of the block is given up."""
    try:
        with context.complete_in_transaction("the first try"):
            write(-1, context)
            raise LookupError
    except LookupError:
        pass
    with context.complete_in_transaction(number):
        write(number, context)
        try:
            with transaction.atomic():
                write(-2, context)
                raise LookupError
        except LookupError:
            pass


@task(takes_context=True, backoff=0)
def lose_the_answer(context: Any, number: int, committed: bool) -> None:
    """The connection breaks in the COMMIT of the first attempt, before or after PostgreSQL has done it."""
    commit = connection._commit

    def broken() -> None:
        if committed:
            commit()
        connection.connection.close()
        raise OperationalError("server closed the connection unexpectedly")

    with context.complete_in_transaction(number):
        write(number, context)
        if context.fence == 1:
            connection._commit = broken
    raise AssertionError("reached only by the second attempt, and ignored there")
