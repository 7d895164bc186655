"""One kind of harm each. Those that can be repeated log their attempts as `tests.faults.audit` reads them."""

import ctypes
import json
import os
import resource
import socket
import sys
import time
from typing import Any

from shiftboss import task
from tests.faults.witness.tasks import witnessed
from tests.runtime.tasks import opened, write


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
def read_along(context: Any, gate: str) -> None:
    """Take away what the keeper says, at the first attempt."""
    with witnessed(context):
        if context.fence == 1:
            with socket.socket(fileno=os.dup(_orders()["socket"])) as mine:
                write("reads", context.job_id)
                mine.recv(7)  # a part of a message: the rest makes no sense
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
