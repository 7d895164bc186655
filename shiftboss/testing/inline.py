"""Enqueued jobs, run inside of a test by the code that runs them in production, on the test's own connection."""

import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any

from asgiref.sync import async_to_sync
from django.db import connections, transaction

from shiftboss import conf
from shiftboss.queue import payload
from shiftboss.queue.contract import Claimed, Lease, Note, NoteKind, Registration
from shiftboss.queue.errors import InTransaction, UnknownTask
from shiftboss.queue.handlers import DjangoHandlers
from shiftboss.queue.outcomes import Done, Failed, Outcome, Released
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.runtime.board import SlotBoard
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.notes import SETTLED, Teller
from shiftboss.queue.runtime.ports import Handler
from shiftboss.queue.runtime.resources import Pools
from shiftboss.queue.runtime.running import Order, Runner
from shiftboss.queue.runtime.said import outcome_of
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store.lease import complete_here
from shiftboss.queue.store.statement import run
from shiftboss.testing.records import SYSTEM, Record, record_of

MOST_RUNS = 10_000
TICKET = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One attempt that `run_jobs` made.

    `outcome`: how the run ended: `completed`, `failed`, `snoozed`, `discarded`, `released` or `quarantined`.
    `state`: where the job stands then. `result`: what the handler returned, as a reader of the result gets it.
    `error`: what it raised where it failed.
    """

    job_id: int
    task: str
    queue: str
    attempt: int
    outcome: str
    state: State
    result: Any = None
    error: BaseException | None = None


def run_jobs(
    *,
    queue: str | None = None,
    limit: int | None = None,
    until_idle: bool = True,
    scheduled: bool = False,
    reraise: bool = False,
    store: Any = None,
) -> list[JobRun]:
    """Run the jobs that wait, here and now, one after the other, and tell what happened.

    On Django's own connection and so inside the transaction of a `TestCase`, which stays open. Handlers,
    arguments, results, retries, snoozes and the context are those of a worker; isolation and timeouts are not: all
    runs in this thread. Coroutines use this connection too.

    `queue`: only this one. `limit`: at most so many runs. `until_idle` False: only jobs that wait at the call, and
    not what they enqueue. `scheduled`: also jobs whose time has not come, such as retries; each is made due.
    `reraise`: raise what a handler raised, once its failure is recorded. `store`: a `MemoryStore` instead of the
    database. Raises RuntimeError where it finds no end.
    """
    record = record_of(store)
    desk = Desk(record)
    try:
        return list(_runs(desk, record, queue, limit, until_idle, scheduled, reraise))
    finally:
        desk.close()


def _runs(
    desk: "Desk",
    record: Record,
    queue: str | None,
    limit: int | None,
    until_idle: bool,
    scheduled: bool,
    reraise: bool,
) -> Iterator[JobRun]:
    meant = None if until_idle else {job.id for state in WAITING for job in record.waiting(state)}
    for number in count():
        if number == limit:
            return
        job = desk.next(queue, meant, scheduled=scheduled)
        if job is None:
            return
        if number >= MOST_RUNS:
            raise RuntimeError(f"{MOST_RUNS} runs, and {job.task} is to be run again: does it enqueue itself?")
        done = desk.run(job)
        yield done
        if meant is not None:
            meant.discard(job.id)
        if reraise and done.error is not None:
            raise done.error


class Desk:
    """A worker of one slot, without a process: the runner of a worker, with everything around it at hand."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._handlers = InlineHandlers()
        self._board = SlotBoard()
        self._outcomes: list[list[Any]] = []
        self._teller = InlineTeller(self._keep_notes)
        loop = NoLoop()
        self._pools = Pools(find=self._handlers.resource, threads=1, coroutines=loop)
        self._runner = Runner(
            handlers=self._handlers,
            board=self._board,
            margin_seconds=1.0,
            coroutines=loop,
            teller=self._teller,
            pools=self._pools,
            deliver=self._outcomes.append,
            redactor=self._handlers.redactor,
        )
        self._tasks = set(self._handlers.known())
        self._strange: set[str] = set()
        self._job: Claimed | None = None
        self._worker_id = record.register(_registration(), sorted(self._tasks))

    def close(self) -> None:
        """Let go of what was taken; Django's connection is left as it is."""
        self._pools.close()
        self._board.close()
        alias = conf.get().database
        if not connections[alias].needs_rollback:
            self._record.sign_off(self._worker_id)

    def next(self, queue: str | None, meant: set[int] | None, *, scheduled: bool) -> Claimed | None:
        """The next job, leased; `meant`: only one of these."""
        passed: list[Claimed] = []
        try:
            return self._available(queue, meant, passed) or (
                self._available(queue, meant, passed) if self._make_due(queue, meant, scheduled) else None
            )
        finally:
            for job in passed:
                self._record.report(self._worker_id, job.lease, Released("not_started"))

    def _make_due(self, queue: str | None, meant: set[int] | None, scheduled: bool) -> bool:
        self._record.stage()
        if not scheduled:
            return True
        waiting = [*self._record.waiting(State.SCHEDULED), *self._record.waiting(State.RETRYABLE)]
        later = [
            job
            for job in sorted(waiting, key=lambda job: (job.due_at, job.id))
            if queue in (None, job.queue) and (meant is None or job.id in meant)
        ]
        if later:
            self._record.expedite([later[0].id])
        return True

    def _available(self, queue: str | None, meant: set[int] | None, passed: list[Claimed]) -> Claimed | None:
        waiting = self._record.waiting(State.AVAILABLE)
        for name in sorted({job.queue for job in waiting if queue in (None, job.queue)}):
            self._learn({job.task for job in waiting if job.queue == name})
            while jobs := self._record.claim(self._worker_id, name, sorted(self._tasks)):
                [job] = jobs
                if meant is None or job.id in meant:
                    return job
                passed.append(job)
        return None

    def _learn(self, tasks: set[str]) -> None:
        for name in tasks - self._tasks - self._strange:
            try:
                self._handlers.resolve(name)
            except UnknownTask:
                self._strange.add(name)
            else:
                self._tasks.add(name)

    def run(self, job: Claimed) -> JobRun:
        """Run a job that was claimed, and record how it ended."""
        self._job, self._handlers.error = job, None
        self._handlers.worker_id = self._worker_id
        if job.revision_id is not None:
            found = self._record.revisions([job.revision_id])
            self._runner.revise({str(number): text for number, text in found.items()})
        self._board.set_expiry(TICKET, float("inf"))
        taken = self._runner.take(Order.of(TICKET, job, worker_id=self._worker_id))
        with self._handlers.transaction_of_the_test():
            self._runner.run(taken)
        self._teller.flush()
        [told] = self._outcomes
        self._outcomes.clear()
        outcome = _outcome(told)
        if outcome is not None:
            self._record.report(self._worker_id, job.lease, outcome)
        return self._told(job, told[0], outcome)

    def _told(self, job: Claimed, kind: str, outcome: Outcome | None) -> JobRun:
        after = self._record.job(job.id)
        assert after is not None
        return JobRun(
            job_id=job.id,
            task=job.task,
            queue=job.queue,
            attempt=job.failures + job.losses + 1,
            outcome="completed" if kind in ("done", "settled") else type(outcome).__name__.lower(),
            state=after.state,
            result=None if after.result is None else payload.decode(after.result),
            error=self._handlers.error if isinstance(outcome, Failed) else None,
        )

    def _keep_notes(self, notes: list[tuple[str, str, str]]) -> None:
        assert self._job is not None
        # That the job has been completed in its transaction is for who holds the lease, not for the record.
        told = [note for note in notes if note[0] != SETTLED]
        items = [(self._job.lease, Note(NoteKind(kind), data, name)) for kind, name, data in told]
        self._record.note(self._worker_id, items)


class InlineHandlers(DjangoHandlers):
    """The project's tasks, with all that they do on this thread's connection, which is never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self.worker_id = 0
        self._depth = 0

    def resolve(self, name: str, config: TaskConfig | None = None) -> Handler:
        """A coroutine function is called through Django's bridge: what it awaits of the ORM comes back here."""
        handler = super().resolve(name, config)
        return super().resolve(name, replace(handler.config, isolation="thread")) if handler.is_async else handler

    def backoff_seconds(self, config: TaskConfig, error: BaseException, failures: int) -> float:
        """The error of the run is kept, too."""
        self.error = error
        return super().backoff_seconds(config, error, failures)

    def after_job(self) -> None:
        """The connection is the test's."""

    @contextmanager
    def transaction_of_the_test(self) -> Iterator[None]:
        """Around a run: where its SQL has failed outside of an `atomic()` of its own, what it wrote is undone, and
        the test's transaction can go on."""
        connection = connections[self._config.database]
        self._depth = len(connection.atomic_blocks)
        if not connection.in_atomic_block:
            yield
            return
        point = connection.savepoint() or ""
        yield
        if connection.needs_rollback or connection.connection.info.transaction_status.name == "INERROR":
            connection.needs_rollback = False
            connection.savepoint_rollback(point)
        else:
            connection.savepoint_commit(point)

    @contextmanager
    def complete_in_transaction(
        self, lease: Lease, worker_id: int, *, done: Callable[[], Done], committed: Callable[[], None]
    ) -> Iterator[None]:
        """As in a worker; the transaction of the test around it is nothing that the handler has opened."""
        alias = self._config.database
        if len(connections[alias].atomic_blocks) > self._depth:
            raise InTransaction("complete_in_transaction() has to commit by itself: leave the outer atomic() out")
        with transaction.atomic(using=alias):
            yield
            run(complete_here(lease, done(), authority=SYSTEM, worker_id=worker_id), using=alias)
        committed()


class InlineTeller(Teller):
    """Keeps what a handler tells until its run is over: in a worker it is on a connection of its own, too, and
    outlives what the handler rolls back. A checkpoint is at once as good as saved."""

    def __init__(self, keep: Callable[[list[tuple[str, str, str]]], None]) -> None:
        super().__init__(wake=lambda: None, clock=count(0, 3600).__next__)
        self._keep = keep
        self._told: list[tuple[str, str, str]] = []

    def put(self, ticket: int, kind: str, data: str, *, name: str = "") -> None:
        """Nobody waits for it."""
        self._told.append((kind, name, data))

    def ask(self, ticket: int, kind: str, data: str) -> "Future[str]":
        """What was told before the handler completes its job goes before that."""
        if kind:
            self._told.append((kind, "", data))
        else:
            self.flush()
        answer: Future[str] = Future()
        answer.set_result("ok")
        return answer

    def flush(self) -> None:
        """Write what was told."""
        told, self._told = self._told, []
        if told:
            self._keep(told)


class NoLoop(Coroutines):
    """In the place of a worker's loop: each awaitable has one to itself, and the ORM comes back to this thread."""

    def __init__(self) -> None:
        pass

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """What comes of it."""

        async def awaited() -> Any:
            return await awaitable

        return async_to_sync(awaited)()


@cache
def _registration() -> Registration:
    config = conf.get()
    return Registration(
        pool="testing",
        host=socket.gethostname(),
        pid=os.getpid(),
        code_version=None,
        queues=("default",),
        processes=1,
        threads=1,
        lease_seconds=config.lease_seconds,
        heartbeat_seconds=config.heartbeat_seconds,
    )


def _outcome(told: list[Any]) -> Outcome | None:
    """A runner's words as a value; None where the handler has completed the job itself."""
    kind, _, *facts = told
    match kind:
        case "settled":
            return None
        case "not_here":
            return Released("task_not_here")
    return outcome_of(kind, facts)
