"""One kind of harm each. Those that can be repeated log their attempts as `tests.faults.audit` reads them."""

import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction

from shiftboss import task
from tests.logbook import opened, witnessed, write
from tests.runtime.tasks import note


@task(takes_context=True)
def listen_at_first(context: Any) -> None:
    """In the first attempt wait to be asked to end, however long that takes."""
    with witnessed(context):
        while context.fence == 1 and context.cancelled is None:
            time.sleep(0.01)
        if context.cancelled is not None:
            write(f"heard-{context.cancelled}", f"{context.job_id}.{context.fence}")


@task(takes_context=True, max_attempts=1)
def segfault(context: Any) -> None:
    """Read what is nobody's."""
    with witnessed(context):
        ctypes.string_at(0)


@task(takes_context=True, max_attempts=1)
def leave(context: Any, code: int) -> None:
    """End the process past everything that Python does at its end."""
    with witnessed(context):
        os._exit(code)


def _orders() -> dict[str, Any]:
    """What the keeper has told this executor on its command line."""
    orders: dict[str, Any] = json.loads(sys.argv[-1])
    return orders


def _wait_until(gate: str) -> None:
    while not opened(gate):
        time.sleep(0.01)


@task(takes_context=True, max_attempts=1)
def close_pipe(context: Any, gate: str) -> None:
    """Close all that is open from the keeper's pipe on, and go on, at the first attempt."""
    with witnessed(context):
        if context.fence == 1:
            os.close(_orders()["socket"])
            _wait_until(gate)


@task(takes_context=True, max_attempts=1)
def write_garbage(context: Any, text: str, gate: str) -> None:
    """Write these bytes, in hexadecimal digits, into the keeper's pipe, and go on, at the first attempt."""
    with witnessed(context):
        if context.fence == 1:
            os.write(_orders()["socket"], bytes.fromhex(text))
            _wait_until(gate)


@task(takes_context=True, max_attempts=1)
def eat_memory(context: Any) -> None:
    """Ask for more memory than the process may have."""
    with witnessed(context):
        limits = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**26, limits[1]))
        try:
            bytearray(2**32)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)


def _is_there(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@task(takes_context=True, max_attempts=1)
def fork_many(context: Any, number: int) -> list[int]:
    """Fork so many that live on in sessions of their own, and fall; the next attempt tells who is still there."""
    folder = os.environ["TEST_LOG"]
    with witnessed(context):
        if context.fence > 1:
            pids = [int(name.removeprefix("forked-")) for name in os.listdir(folder) if name.startswith("forked-")]
            write("forked", len(pids))
            return [pid for pid in pids if _is_there(pid)]
        for _ in range(number):
            if not os.fork():
                os.setsid()
                os.close(os.open(f"{folder}/forked-{os.getpid()}", os.O_CREAT | os.O_WRONLY, 0o600))
                time.sleep(600)
                os._exit(0)
        while sum(name.startswith("forked-") for name in os.listdir(folder)) < number:
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
        return []


class Mute(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise ZeroDivisionError("in __str__")

    __repr__ = __str__


class Odd(dict[str, Any]):
    """A result whose items are not what they were when it was looked at."""

    def items(self) -> Any:
        """Raise."""
        raise LookupError("in items()")


def _endless(depth: int = 0) -> int:
    return _endless(depth + 1)


def _deep(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def _ring() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _raise(error: BaseException) -> Any:
    raise error


def _caused() -> Any:
    try:
        raise Mute
    except Mute as error:
        raise ValueError("told") from error


BAD_ENDS: dict[str, Callable[[], Any]] = {
    "str raises": lambda: _raise(Mute()),
    "recursion": _endless,
    "a long text": lambda: _raise(ValueError("д" * 10_000_000)),
    "nul and surrogates": lambda: _raise(ValueError("\x00 \ud800 \udfff")),
    "a type of no name": lambda: _raise(type("A", (Exception,), {"__module__": "\x00\ud800"})("text")),
    "a group": lambda: _raise(BaseExceptionGroup("both", [Mute(), KeyboardInterrupt()])),
    "a cause that is mute": _caused,
    "generator exit": lambda: _raise(GeneratorExit("text")),
    "nan": lambda: {"a": float("nan")},
    "infinity": lambda: [float("-inf")],
    "nul in a result": lambda: "a\x00b",
    "surrogate in a result": lambda: {"a": "\ud800"},
    "surrogate in a key": lambda: {"\udc00": 1},
    "an object": object,
    "a set": lambda: {1, 2},
    "a key that is no text": lambda: {(1, 2): 3},
    "a ring": _ring,
    "deep": lambda: _deep(100_000),
    "too long": lambda: "x" * (11 * 2**20),
    "odd": lambda: Odd(a=1),
}
"""Ways to raise and results, each hard to tell."""


@task(max_attempts=1)
def end_badly(how: str) -> Any:
    """Raise, or return, what is hard to tell."""
    return BAD_ENDS[how]()


@task
def echo(value: Any) -> Any:
    """Answer with what was given."""
    return value


BACKOFFS: dict[str, Callable[[], Any]] = {
    "huge": lambda: 1e300,
    "endless": lambda: float("inf"),
    "beyond a float": lambda: 10**400,
    "nan": lambda: float("nan"),
    "a text": lambda: "soon",
    "nothing": lambda: None,
    "raises": lambda: 1 / 0,
    "exits": lambda: sys.exit(1),
    "recursion": _endless,
    "negative": lambda: -1e300,
}


@task(max_attempts=2, backoff=lambda error, _: BACKOFFS[str(error)]())
def fail_with_backoff(how: str) -> None:
    """Fail, and ask for a wait that cannot be."""
    raise ValueError(how)


@task(takes_context=True, max_attempts=1)
def enqueue_in_savepoints(context: Any) -> None:
    """Enqueue, undo a part of it, and complete the job in the same transaction."""
    with context.complete_in_transaction(None):
        note.enqueue("kept")
        try:
            with transaction.atomic():
                note.enqueue("undone")
                with transaction.atomic():
                    note.enqueue("undone-with-it")
                raise LookupError
        except LookupError:
            note.enqueue("kept-too")
    with transaction.atomic():
        note.enqueue("undone-alone")
        transaction.set_rollback(True)


def _ask(times: int) -> bool:
    with connection.cursor() as cursor:
        for number in range(times):
            cursor.execute("select %s::integer, pg_backend_pid()", [number])
            if cursor.fetchone()[0] != number:
                return False
    return True


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


@task(max_attempts=1)
def fork_and_ask(children: int, times: int) -> dict[str, Any]:
    """Ask the database, fork, and go on asking in all processes at once; how that ended in each of them."""
    before = _backend()
    pids = []
    for _ in range(children):
        if not (pid := os.fork()):
            good = False
            try:
                good = _ask(times) and _backend() != before
                connection.close()
            finally:
                os._exit(not good)
        pids.append(pid)
    mine = _ask(times)
    ends = [os.waitpid(pid, 0)[1] for pid in pids]
    return {"children": ends, "mine": mine, "same": _backend() == before}


@task(max_attempts=1)
def fork_and_return() -> list[int]:
    """Fork, and let each child leave in its own way past the end of this function; how they ended."""
    pids = []
    for how in ("return", "raise", "exit"):
        if not (pid := os.fork()):
            if how == "raise":
                raise ValueError("in a child")
            if how == "exit":
                sys.exit(3)
            return []
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
