"""Results: a job as Django's `TaskResult`, whichever table holds it; awaiting its end, cancelling it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import psycopg
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections

from shiftboss import conf
from shiftboss.compat import TaskError, TaskResult, TaskResultStatus
from shiftboss.queue.authority import Authority
from shiftboss.queue.errors import Busy, InTransaction, MovedOn, NoSuchJob, ShiftbossError, StillRunning
from shiftboss.queue.launch import database_dsn
from shiftboss.queue.states import FINAL, State, Verb
from shiftboss.queue.store import awaiting, operate, read
from shiftboss.queue.store.operate import Why
from shiftboss.queue.store.statement import arun, run

STATUS = {
    State.SCHEDULED: TaskResultStatus.READY,
    State.AVAILABLE: TaskResultStatus.READY,
    State.RETRYABLE: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.QUARANTINED: TaskResultStatus.FAILED,
    State.DISCARDED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}
AT_REST = FINAL | {State.QUARANTINED}

LOOK_SECONDS = 1.0
"""How often a waiter looks by itself, beside being woken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftbossResult(TaskResult):  # type: ignore[misc]
    """Django's TaskResult, read again in the name in which it was read first."""

    def refresh(self) -> None:
        """Read the job again. Raises TaskResultDoesNotExist where it is gone."""
        fresh = self.task.get_result(self.id)
        for f in fields(self):
            if f.name != "task":
                object.__setattr__(self, f.name, getattr(fresh, f.name))

    async def arefresh(self) -> None:
        """As `refresh`, from a coroutine."""
        await sync_to_async(self.refresh, thread_sensitive=True)()

    def wait_end(self, *, seconds: float) -> None:
        """Wait until the job has ended or is quarantined, at most so long; the result is fresh then.

        Woken by notification, and looking by itself each second. Raises StillRunning (a TimeoutError) when the
        time is up, InTransaction where the job cannot have been committed yet.
        """
        async_to_sync(self.await_end)(seconds=seconds)

    async def await_end(self, *, seconds: float) -> None:
        """As `wait_end`, from a coroutine."""
        await sync_to_async(_refuse_in_transaction, thread_sensitive=True)()
        try:
            async with asyncio.timeout(seconds):
                await _rest(int(self.id), self._authority(), seconds)
        except TimeoutError:
            raise StillRunning(f"job {self.id} has not ended within {seconds:g} s; it goes on") from None
        await self.arefresh()

    def cancel(self) -> None:
        """Ask for the job's end: at once where it waits, else its handler is told.

        Raises NoSuchJob, MovedOn where it has ended, Busy where another transaction has it in hand.
        """
        answer = run(operate.cancel_one(int(self.id), authority=self._authority()))
        for job in answer.unchanged:
            match job.why:
                case Why.MISSING:
                    raise NoSuchJob(f"there is no job {job.id}")
                case Why.STATE:
                    raise MovedOn(job.id, Verb.CANCEL, str(job.state))
                case _:
                    raise Busy(f"job {job.id} is being changed by somebody else just now; try again")
        self.refresh()

    async def acancel(self) -> None:
        """As `cancel`, from a coroutine."""
        await sync_to_async(self.cancel, thread_sensitive=True)()

    def _authority(self) -> Authority:
        task: Any = self.task
        authority: Authority = task.get_backend().authority(task.authority)
        return authority


def error_of(attempt: read.AttemptRow) -> TaskError:
    """An attempt that failed or was lost, as Django tells of it."""
    kind = attempt.error_type or "shiftboss.queue.errors.LeaseLost"
    return TaskError(
        exception_class_path=kind if "." in kind else f"builtins.{kind}",
        traceback=attempt.traceback or attempt.error_message or attempt.error_code or "",
    )


def _refuse_in_transaction() -> None:
    if connections[conf.get().database].in_atomic_block:
        raise InTransaction("end the transaction first: no worker sees a job before it is committed")


async def _rest(job_id: int, authority: Authority, seconds: float) -> None:
    """Until the job is at rest, on a connection of its own."""
    async with await psycopg.AsyncConnection.connect(database_dsn(), autocommit=True) as ear:
        await ear.execute("listen " + awaiting.CHANNEL)
        waiter = await arun(awaiting.begin(job_id, authority=authority, seconds=seconds), ear)
        try:
            while await arun(awaiting.state(job_id, authority=authority), ear) not in AT_REST:
                await _listen(ear, job_id)
        finally:
            # Where this fails the note expires by itself.
            with suppress(psycopg.Error, ShiftbossError):
                await arun(awaiting.end(waiter, authority=authority), ear)


async def _listen(ear: psycopg.AsyncConnection[Any], job_id: int) -> None:
    """Until this job's notification comes, or it is time to look."""
    async for notice in ear.notifies(timeout=LOOK_SECONDS):
        if notice.payload == str(job_id):
            return
