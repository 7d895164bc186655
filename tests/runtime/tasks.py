"""Handlers under test. Each keeps a log of its own, so that the record can be held against it."""

import itertools
import os
import signal
import time
from typing import Any

from shiftboss import task


def write(kind: str, name: Any) -> None:
    """Append a line to this process's log: kind, name, time on the boot-time clock."""
    path = os.path.join(os.environ["TEST_LOG"], f"{os.getpid()}.log")
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.write(fd, f"{kind} {name} {time.clock_gettime(time.CLOCK_BOOTTIME)}\n".encode())
    os.close(fd)


@task
def note(name: Any) -> None:
    """Be run."""
    write("ran", name)


@task
def nap(name: Any, seconds: float) -> Any:
    """Sleep, deaf to everything."""
    write("began", name)
    time.sleep(seconds)
    write("ended", name)
    return name


@task(takes_context=True)
def listen(context: Any, name: Any) -> str | None:
    """Wait until asked to end; tells the cause."""
    write("began", name)
    while context.cancelled is None:
        time.sleep(0.01)
    write(f"heard-{context.cancelled}", name)
    return str(context.cancelled)


@task(takes_context=True)
def polite(context: Any, name: Any) -> None:
    """Wait until asked to end, and raise."""
    write("began", name)
    while True:
        context.raise_if_cancelled()
        time.sleep(0.01)


@task
def crash(name: Any, number: int = signal.SIGSEGV) -> None:
    """End the process by a signal."""
    write("began", name)
    os.kill(os.getpid(), number)
    time.sleep(60)


@task
def hog(seconds: float) -> float:
    """Hold the GIL in one single call into C for at least so long; answers how long it was."""
    sample = 5_000_000
    began = time.thread_time()  # neighbours that take the processor away do not make it shorter
    sum(itertools.repeat(1, sample))
    each = (time.thread_time() - began) / sample
    count = int(1.2 * seconds / each)
    write("began", "hog")
    began = time.perf_counter()
    sum(itertools.repeat(1, count))
    return time.perf_counter() - began


@task(max_attempts=2, backoff=0)
def fail(text: str) -> None:
    """Raise."""
    raise ValueError(text)


@task(takes_context=True)
def look(context: Any) -> dict[str, Any]:
    """Tell what the context says."""
    return {
        "job": context.job_id,
        "fence": context.fence,
        "attempt": context.attempt,
        "args": context.task_result.args,
    }


@task
async def wait_for_nothing(name: Any) -> Any:
    """A coroutine function."""
    return name


@task
def result_that_cannot_be_stored() -> Any:
    """Answer with what JSON cannot hold."""
    return float("nan")


@task
def leave(code: int) -> None:
    """Try to end the process the polite way."""
    raise SystemExit(code)


@task(max_attempts=1)
def crashing_text() -> None:
    """Raise with a text that PostgreSQL refuses."""
    raise ValueError("a NUL \x00 and a surrogate \ud800")


class Trap(dict[str, Any]):
    """A result that ends whoever encodes it."""

    def items(self) -> Any:
        """Raise what is no Exception."""
        raise KeyboardInterrupt


@task
def trap() -> Any:
    """Answer with a trap."""
    return Trap(a=1)


@task
def big(characters: int) -> str:
    """Answer with a long text that is not ASCII."""
    return "д" * characters
