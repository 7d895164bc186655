"""A worker's way to the record over its own PostgreSQL connections: work, heartbeat, listen.

A server that is gone without a word (a host that died, a firewall that forgot the connection, a cut network) is
noticed by the answer that does not come: each statement has a time, which the server keeps by itself
(`statement_timeout`), and a fourth of it later the client gives the connection up. Keepalives would not do: what
stands between may go on acknowledging for both sides. The times follow from the lease, so that a connection
that is no good is given up within half of it, and there is time to renew by another one.
"""

import asyncio
import logging
import os
import random
import socket
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from shiftboss.queue.authority import System
from shiftboss.queue.contract import (
    Claimed,
    Heartbeat,
    Known,
    Lease,
    Mark,
    Note,
    Registration,
    Settlement,
    WorkerStatus,
)
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.outcomes import Discarded, Done, Failed, Lost, Quarantined, Released, Snoozed
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.ports import CANCEL, QueueClient, Wakeups
from shiftboss.queue.store import backfill, lease, notes, read, upkeep, workers
from shiftboss.queue.store.schema import check_schema
from shiftboss.queue.store.statement import Verb, arun

log = logging.getLogger("shiftboss.client")

R = TypeVar("R")
SYSTEM = System()
SESSION = """
set timezone = 'UTC';
-- The hot statements go by index, one plan for all batches. Fresh statistics of a table that is now empty,
-- now full, would make the planner read it whole, or join two batches row by row.
set plan_cache_mode = force_generic_plan;
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_nestloop = off;
-- Before PostgreSQL 18 a plan that cannot do without what is off counts as immensely dear, and would be compiled.
set jit = off;
"""
CHANNEL = "shiftboss_available"
OWN_CHANNEL = "shiftboss_worker_"
"""With the worker's id behind it: orders to one worker."""


STATEMENT_SECONDS = 30.0
"""The time of a statement where no lease asks for less. The server cancels it then: it has done nothing."""

LOCK_SECONDS = 1.0
"""A finish waits so long for a row's lock, at most half of its statement's time; then the batch is split."""

ANSWER_SHARE = 1.25
"""Of the time of its statements, a connection may be without an answer."""

STALL_SECONDS = 0.1


class _Connection(psycopg.AsyncConnection[Any]):
    """A psycopg connection that is cut off where the server does not answer within `answer_seconds`."""

    answer_seconds: float | None = None
    gave_up = False

    async def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Every exchange with the server goes through here."""
        if self.answer_seconds is None:
            return await super().wait(*args, **kwargs)
        self._timer = asyncio.get_running_loop().call_later(self.answer_seconds, self._look_again)
        try:
            return await super().wait(*args, **kwargs)
        finally:
            self._timer.cancel()

    def _look_again(self) -> None:
        # Where this process itself stood still, the answer may have come meanwhile, and is to be read first.
        self._timer = asyncio.get_running_loop().call_later(STALL_SECONDS, self._cut_off)

    def _cut_off(self) -> None:
        # Not by cancelling: psycopg would ask the server to cancel the statement, and wait for it to answer that.
        self.gave_up = True
        with socket.socket(fileno=os.dup(self.fileno())) as ours:
            try:
                ours.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was faster


class Connection:
    """One async connection that opens itself when it is needed, and again after it broke.

    A statement may take `statement_seconds`; no answer for `ANSWER_SHARE` times as long means no server.
    `session`: what is set at its start.
    """

    def __init__(
        self, dsn: str, *, name: str, statement_seconds: float = STATEMENT_SECONDS, session: str = SESSION
    ) -> None:
        self._dsn = dsn
        self._name = name
        self._session = session
        self._statement_seconds = statement_seconds
        self._answer_seconds = statement_seconds * ANSWER_SHARE
        self._connection: _Connection | None = None
        self._turn = asyncio.Lock()

    async def run(self, verb: Verb[R]) -> R:
        """Run one verb. Raises StoreUnavailable."""
        async with self._turn:
            connection = await self.opened()
            try:
                return await arun(verb, connection)
            except StoreUnavailable:
                await self.close()
                if connection.gave_up:
                    raise StoreUnavailable(f"no answer within {self._answer_seconds:g} s") from None
                raise
            except pg.ReadOnlySqlTransaction as error:
                # A standby, or told to write no more: the next connection may lead to who is the primary now.
                await self.close()
                raise StoreUnavailable(_reason(error)) from None
            except pg.QueryCanceled as error:
                raise StoreUnavailable(_reason(error)) from None
            except asyncio.CancelledError:
                await self.close()  # a half-read answer must not meet the next question
                raise

    async def opened(self) -> _Connection:
        """The connection, made now where there is none. Raises StoreUnavailable."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = None
        try:
            connection = await _Connection.connect(
                self._dsn,
                autocommit=True,
                connect_timeout=_connect_seconds(self._answer_seconds),
                application_name=f"shiftboss {self._name}",
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=10_000,
            )
            connection.answer_seconds = self._answer_seconds
            await connection.execute(self._session)
            lock_seconds = min(LOCK_SECONDS, self._statement_seconds / 2)
            await connection.execute(f"set lock_timeout = {round(lock_seconds * 1000)}")
            await connection.execute(f"set statement_timeout = {round(self._statement_seconds * 1000)}")
        except BaseException as error:
            if connection is not None:
                await connection.close()  # it must not be used without its settings
            _let_go(error)
            if isinstance(error, psycopg.Error):
                raise StoreUnavailable(_reason(error)) from None
            raise
        self._connection = connection
        return connection

    async def close(self) -> None:
        """Close; the next use opens anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _let_go(error: BaseException | None) -> None:
    """Let go what an attempt to connect has left in the frames that it went through.

    One that was given up half-way hangs in a cycle of these with its own error, until somebody looks for cycles.
    The server, should it come back to it, would have a client that never asks anything.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _connect_seconds(answer_seconds: float) -> int:
    """How long each host of the address has to let us in; libpq knows nothing below 2 s."""
    return max(2, min(5, int(answer_seconds)))


def _bounded(answer_seconds: float, *, least: float) -> float:
    """The time of a statement where no answer for so long means no server."""
    return min(STATEMENT_SECONDS, max(least, answer_seconds / ANSWER_SHARE))


def _reason(error: psycopg.Error) -> str:
    # The server's words, never the connection string.
    return str(error).strip().partition("\n")[0]


class LocalClient:
    """A `QueueClient` over SQL. Everything is done as `System`."""

    def __init__(self, config: KeeperConfig) -> None:
        self._lease_seconds = config.lease_seconds
        self._heartbeat_seconds = config.heartbeat_seconds
        self._poll_seconds = config.poll_seconds
        self._queues = config.queues
        self._dsn = config.dsn
        self._worker_id = 0
        self._connect()

    def _connect(self) -> None:
        half = self._lease_seconds / 2
        # A claim that takes half of the lease would be given back unused. The first poll, or the first beat, after
        # the network was cut has to be missed before half of the lease is over.
        work = min(0.8 * half, 0.85 * (half - self._poll_seconds))
        pulse = 0.8 * (half - self._heartbeat_seconds)
        self._work = Connection(self._dsn, name="work", statement_seconds=_bounded(work, least=1.0))
        self._pulse = Connection(self._dsn, name="heartbeat", statement_seconds=_bounded(pulse, least=0.5))

    async def open(self) -> None:
        """Connect and check the schema."""
        await self._work.run(check_schema())

    async def close(self) -> None:
        """Close both connections. It may be opened again, on another event loop too."""
        for connection in (self._work, self._pulse):
            await connection.close()
        self._connect()

    async def register(self, registration: Registration, tasks: Sequence[str]) -> int:
        """Announce the worker and remember its id; again under the same one, where the record has forgotten it."""
        known = self._worker_id or None
        verb = workers.register(registration, authority=SYSTEM, tasks=tasks, worker_id=known)
        self._worker_id = await self._pulse.run(verb)
        return self._worker_id

    async def worker_heartbeat(self, status: WorkerStatus) -> Known | None:
        """Say that the worker lives, and hear what is ordered of it."""
        verb = workers.worker_heartbeat(status, authority=SYSTEM, worker_id=self._worker_id)
        return await self._pulse.run(verb)

    async def heartbeat(self, leases: Sequence[Lease]) -> Heartbeat:
        """Prolong leases, on the heartbeat's own connection."""
        verb = lease.heartbeat(
            leases, authority=SYSTEM, worker_id=self._worker_id, lease_seconds=self._lease_seconds
        )
        return await self._pulse.run(verb)

    async def claim(self, queue: str, tasks: Sequence[str], limit: int, after: Mark | None) -> list[Claimed]:
        """Lease available jobs."""
        verb = lease.claim(
            authority=SYSTEM,
            worker_id=self._worker_id,
            queue=queue,
            tasks=tasks,
            limit=limit,
            lease_seconds=self._lease_seconds,
            after=after,
        )
        return await self._work.run(verb)

    async def note(self, items: Sequence[tuple[Lease, Note]]) -> Settlement:
        """Keep what running handlers tell."""
        return await self._work.run(notes.note(items, authority=SYSTEM, worker_id=self._worker_id))

    async def revisions(self, revisions: Sequence[int]) -> dict[int, str]:
        """The configurations behind these revisions, as far as they are known."""
        return await self._work.run(read.revisions(revisions, authority=SYSTEM))

    async def complete(self, items: Sequence[tuple[Lease, Done]]) -> Settlement:
        """Finish jobs."""
        return await self._work.run(lease.complete(items, authority=SYSTEM, worker_id=self._worker_id))

    async def fail(self, items: Sequence[tuple[Lease, Failed]]) -> Settlement:
        """Count failures."""
        return await self._work.run(lease.fail(items, authority=SYSTEM, worker_id=self._worker_id))

    async def release(self, items: Sequence[tuple[Lease, Released]]) -> Settlement:
        """Give jobs back unharmed."""
        return await self._work.run(lease.release(items, authority=SYSTEM, worker_id=self._worker_id))

    async def snooze(self, items: Sequence[tuple[Lease, Snoozed]]) -> Settlement:
        """Put jobs off."""
        return await self._work.run(lease.snooze(items, authority=SYSTEM, worker_id=self._worker_id))

    async def discard(self, items: Sequence[tuple[Lease, Discarded]]) -> Settlement:
        """Give jobs up for good."""
        return await self._work.run(lease.discard(items, authority=SYSTEM, worker_id=self._worker_id))

    async def quarantine(self, items: Sequence[tuple[Lease, Quarantined]]) -> Settlement:
        """Hold back jobs that cannot run at all."""
        return await self._work.run(lease.quarantine(items, authority=SYSTEM, worker_id=self._worker_id))

    async def reap_own(self, items: Sequence[tuple[Lease, Lost]]) -> Settlement:
        """Settle what a dead executor had in hand."""
        return await self._work.run(lease.reap_own(items, authority=SYSTEM, worker_id=self._worker_id))

    async def stage(self) -> int:
        """Cancel what is past its deadline, make due jobs available, and enqueue what backfills have room for."""
        late = await self._work.run(upkeep.expire(authority=SYSTEM))
        staged = await self._work.run(upkeep.stage(authority=SYSTEM))
        return late + staged + await self._work.run(backfill.feed(authority=SYSTEM))

    async def reap(self) -> int:
        """Take jobs from expired leases."""
        return len(await self._work.run(upkeep.reap(authority=SYSTEM)))

    async def waiting_tasks(self, tasks: Sequence[str]) -> list[str]:
        """Tasks that wait in the worker's queues and are not among `tasks`."""
        verb = workers.waiting_tasks(authority=SYSTEM, queues=self._queues, tasks=tasks)
        return await self._work.run(verb)


class LocalWakeups:
    """`Wakeups` by LISTEN on a connection of its own.

    Where nothing was heard for a sixth of a lease, the server is asked whether it is still there and may be
    written to: a connection that leads nowhere, or to who is no longer the primary, says nothing for ever.
    """

    def __init__(self, dsn: str, *, lease_seconds: float = 30.0) -> None:
        self._dsn = dsn
        self._quiet_seconds = min(STATEMENT_SECONDS, lease_seconds / 6)

    async def listen(
        self, worker_id: int, *, woken: Callable[[str | None, int], None], ordered: Callable[[str], None]
    ) -> None:
        """Hand on notifications, reconnecting with a growing, jittered pause, until cancelled."""
        seconds = _bounded(ANSWER_SHARE * self._quiet_seconds, least=0.2)
        connection = Connection(self._dsn, name="listen", statement_seconds=seconds)
        pause = 0.5
        try:
            while True:
                try:
                    opened = await connection.opened()
                    await opened.execute(f"listen {CHANNEL}")
                    await opened.execute(f"listen {OWN_CHANNEL}{worker_id:d}")
                    # What came before this moment has not been heard.
                    woken(None, 0)
                    ordered(CANCEL)
                    is_primary = True
                    while is_primary:
                        async for notice in opened.notifies(timeout=self._quiet_seconds):
                            pause = 0.5
                            if notice.channel == CHANNEL:
                                woken(*_hint(notice.payload))
                            else:
                                ordered(notice.payload)
                        is_primary = await self._is_primary(opened)
                    log.warning("listen.lost", extra={"error": "the server can only be read"})
                except (StoreUnavailable, psycopg.Error) as error:
                    log.warning("listen.lost", extra={"error": str(error).strip()})
                await connection.close()
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(pause * 2, 30.0)
        finally:
            await connection.close()

    @staticmethod
    async def _is_primary(opened: psycopg.AsyncConnection[Any]) -> bool:
        answer = await opened.execute("select current_setting('transaction_read_only') = 'off'")
        [is_primary] = await answer.fetchone() or (False,)
        return bool(is_primary)


def _hint(payload: str) -> tuple[str | None, int]:
    """Queue and priority of a notification; a payload of another version's may mean any queue."""
    priority, _, queue = payload.partition(" ")
    try:
        return queue or None, int(priority)
    except ValueError:
        return None, 0


def connect(config: KeeperConfig) -> tuple[QueueClient, Wakeups]:
    """The client and the wake-ups of a keeper beside its database."""
    return LocalClient(config), LocalWakeups(config.dsn, lease_seconds=config.lease_seconds)
