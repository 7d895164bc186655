"""Connections beside Django's: a keeper's, and one that listens."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg

from shiftboss.queue.clients.local import CHANNEL, Connection
from shiftboss.queue.store.statement import Verb

R = TypeVar("R")


class Session:
    """A keeper's own connection with all its settings, driven by one thread at a time."""

    def __init__(self, dsn: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._connection = Connection(dsn, name="test")
        self.pid: int = self.execute("select pg_backend_pid()")[0][0]

    def run(self, verb: Verb[R]) -> R:
        """Run a verb as a keeper does."""
        return self._loop.run_until_complete(self._connection.run(verb))

    def execute(self, sql: str, params: Sequence[Any] | None = None) -> list[Any]:
        """Run a statement; a `begin` leaves its transaction open for the next verb."""
        return self._loop.run_until_complete(self._execute(sql, params))

    async def _execute(self, sql: str, params: Sequence[Any] | None) -> list[Any]:
        connection = await self._connection.opened()
        cursor = await connection.execute(sql, params)
        return await cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back."""
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()


def watched(verb: Verb[R], errors: list[Exception]) -> Verb[R]:
    """The verb, noting the errors that the database answers it with."""
    try:
        wish = next(verb)
        while True:
            try:
                reply = yield wish
            except Exception as error:
                errors.append(error)
                wish = verb.throw(error)
            else:
                wish = verb.send(reply)
    except StopIteration as stop:
        answer: R = stop.value
        return answer


class Ear:
    """A connection that listens: for jobs that become available, or on another channel."""

    def __init__(self, dsn: str, channel: str = CHANNEL) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute("listen " + channel)
        self._backlog: list[str] = []

    def heard(self) -> str:
        """The next notification, which is waited for."""
        if not self._backlog:
            # Those that have come at once are all in it.
            self._backlog += [notice.payload for notice in self._connection.notifies(timeout=10, stop_after=1)]
        assert self._backlog, "nothing was heard"
        return self._backlog.pop(0)

    def close(self) -> None:
        """Listen no more."""
        self._connection.close()


def together(*calls: Callable[[], R]) -> list[R]:
    """Make calls at one moment, each in a thread of its own; their answers, or the first error."""
    barrier = threading.Barrier(len(calls))
    answers: dict[int, R] = {}
    errors: list[BaseException] = []

    def make(index: int, call: Callable[[], R]) -> None:
        barrier.wait(timeout=10)
        try:
            answers[index] = call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    if errors:
        raise errors[0]
    return [answers[index] for index in range(len(calls))]
