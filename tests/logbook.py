"""What handlers under test write down themselves, so that the record can be held against it. Needs no Django."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def write(kind: str, name: Any) -> None:
    """Append a line to this process's log: kind, name, time on the boot-time clock."""
    path = os.path.join(os.environ["TEST_LOG"], f"{os.getpid()}.log")
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.write(fd, f"{kind} {name} {time.clock_gettime(time.CLOCK_BOOTTIME)}\n".encode())
    os.close(fd)


def opened(gate: str) -> bool:
    """Whether the test has opened this gate."""
    return os.path.exists(os.path.join(os.environ["TEST_LOG"], gate))


def attempt_of(context: Any) -> str:
    """Job and fence, as `tests.faults.audit` reads them."""
    return f"{context.job_id}.{context.fence}"


@contextmanager
def witnessed(context: Any) -> Iterator[Callable[[], None]]:
    """Log the attempt: `began`, `tick` at each call of what is given, and `done` or `broke` at its end."""
    who = attempt_of(context)
    write("began", who)
    try:
        yield lambda: write("tick", who)
    except BaseException:
        write("broke", who)
        raise
    write("done", who)
