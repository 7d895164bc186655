"""Handlers under test. Each keeps a log of its own, so that the record can be held against it."""

import asyncio
import contextvars
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, transaction

from shiftboss import task
from shiftboss.queue.errors import LeaseLost
from shiftboss.queue.resources import Resource
from tests.logbook import opened, write


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
def pass_gate(name: Any, gate: str) -> None:
    """Wait for a gate, deaf to everything."""
    write("began", name)
    while not opened(gate):
        time.sleep(0.01)
    write("ended", name)


@task
async def pass_gate_in_loop(name: Any, gate: str) -> None:
    """As `pass_gate`, as a coroutine."""
    write("began", name)
    while not opened(gate):
        await asyncio.sleep(0.01)
    write("ended", name)


@task(isolation="process")
def pass_gate_alone(name: Any, gate: str) -> None:
    """As `pass_gate`, in an executor to itself."""
    write("began", name)
    while not opened(gate):
        time.sleep(0.01)
    write("ended", name)


@task(isolation="process")
async def tell_process() -> list[Any]:
    """A coroutine in an executor to itself."""
    await asyncio.sleep(0)
    return [os.getpid(), threading.current_thread().name]


@task(isolation="process")
def leave_children(gate: str) -> None:
    """Start a process in a session of its own, one in another without this one's environment, and be deaf."""
    for environment in (None, {"PATH": os.environ["PATH"]}):
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, env=environment)
        write("child", child.pid)
    while not opened(gate):
        time.sleep(0.01)


@task(max_attempts=2, backoff=0)
def tick(name: Any) -> None:
    """Say so again and again, deaf to everything."""
    write("began", name)
    while True:
        write("tick", name)
        time.sleep(0.01)


_hoard: list[bytes] = []


@task
def hoard(megabytes: int) -> int:
    """Hold so much more memory for ever; tells the process."""
    _hoard.append(b"x" * (megabytes << 20))
    return os.getpid()


@task(isolation="process")
def hoard_alone(megabytes: int) -> int:
    """As `hoard`, in an executor to itself."""
    return int(hoard.func(megabytes))


@task(isolation="thread")
async def wait_in_a_thread() -> str:
    """A coroutine with a loop to itself."""
    await asyncio.sleep(0)
    return threading.current_thread().name


@task
async def block_loop(gate: str) -> None:
    """Wait for a gate without ever giving way."""
    write("began", "blocks")
    while not opened(gate):
        time.sleep(0.01)


@task(takes_context=True)
async def listen_in_loop(context: Any, name: Any) -> str:
    """As `listen`, as a coroutine."""
    write("began", name)
    while context.cancelled is None:
        await asyncio.sleep(0.01)
    return str(context.cancelled)


@task(takes_context=True)
async def polite_in_loop(context: Any, name: Any) -> None:
    """As `polite`, in a task group of a coroutine."""

    async def wait() -> None:
        while True:
            context.raise_if_cancelled()
            await asyncio.sleep(0.01)

    write("began", name)
    async with asyncio.TaskGroup() as group:
        group.create_task(wait())
        group.create_task(asyncio.sleep(3600))


@task(takes_context=True, max_attempts=1)
def put_off(context: Any, seconds: Any) -> int:
    """Run again later, the first time; a broad except does not keep it from that."""
    try:
        if context.fence == 1:
            context.snooze(seconds)
    except ArithmeticError:
        pass
    except Exception as error:
        raise RuntimeError("the handler's own except has seen it") from error
    return int(context.fence)


@task(takes_context=True, max_attempts=1)
async def put_off_in_loop(context: Any, seconds: Any) -> int:
    """As `put_off`, in a task group of a coroutine."""

    async def decide() -> None:
        if context.fence == 1:
            context.snooze(seconds)

    async with asyncio.TaskGroup() as group:
        group.create_task(decide())
    return int(context.fence)


@task(takes_context=True)
def give_up(context: Any, reason: str) -> None:
    """Discard the job."""
    with transaction.atomic():
        note.enqueue("never: rolled back")
        context.discard(reason)


@task(takes_context=True)
def snooze_when_cancelled(context: Any) -> None:
    """Answer a cancellation by putting the job off."""
    write("began", "snoozes")
    while context.cancelled is None:
        time.sleep(0.01)
    context.snooze(3600)


_mine: contextvars.ContextVar[str] = contextvars.ContextVar("mine", default="")
_met: set[str] = set()


@task(takes_context=True)
async def meet(context: Any, name: str, number: int) -> list[Any]:
    """Wait until so many of this process run at once."""
    before = _mine.get()
    _mine.set(name)
    _met.add(name)
    while len(_met) < number:
        await asyncio.sleep(0.005)
    return [context.job_id, context.cancelled, before, _mine.get()]


@task(max_attempts=1)
async def misbehave(how: str) -> str:
    """End in a way that could harm the loop or the others on it."""
    await _MISDEEDS[how]()
    return how


async def _exit() -> NoReturn:
    sys.exit(3)


async def _exit_in_a_child() -> None:
    await asyncio.create_task(_exit())


async def _run_a_loop() -> None:
    nothing = asyncio.sleep(0)
    try:
        asyncio.run(nothing)
    finally:
        nothing.close()


async def _raise_in_finally() -> None:
    try:
        await asyncio.sleep(0)
    finally:
        raise LookupError("in finally")


async def _swallow_a_cancellation() -> None:
    asyncio.current_task().cancel()  # type: ignore[union-attr]
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        pass


async def _cancel_itself() -> None:
    asyncio.current_task().cancel()  # type: ignore[union-attr]


async def _cancel_itself_and_wait() -> None:
    await _cancel_itself()
    await asyncio.sleep(3600)


async def _never_wait() -> None:
    pass


async def _stop_the_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


async def _close_the_loop() -> None:
    asyncio.get_running_loop().close()


async def _cancel_all() -> None:
    for other in asyncio.all_tasks():
        other.cancel()
    await asyncio.sleep(3600)


_MISDEEDS = {
    "exit": _exit,
    "exit in a child": _exit_in_a_child,
    "run a loop": _run_a_loop,
    "raise in finally": _raise_in_finally,
    "swallow a cancellation": _swallow_a_cancellation,
    "cancel itself": _cancel_itself,
    "cancel itself and wait": _cancel_itself_and_wait,
    "never wait": _never_wait,
    "stop the loop": _stop_the_loop,
    "close the loop": _close_the_loop,
    "cancel all": _cancel_all,
}


def _break_transaction() -> None:
    transaction.atomic().__enter__()
    try:
        connection.cursor().execute("select 1 / 0")
    except DatabaseError:
        pass


@task
async def leave_a_broken_transaction(gate: str) -> None:
    """Open a transaction, break it, wait, and leave it."""
    await sync_to_async(_break_transaction)()
    write("began", "broken")
    while not opened(gate):
        await asyncio.sleep(0.01)


@task
async def enqueue_a_note(name: str) -> None:
    """Write to the database by Django's asynchronous interface."""
    await note.aenqueue(name)


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


@task(takes_context=True)
def tell(context: Any, pages: int) -> None:
    """Go through pages, fail half-way the first time, and go on from there."""
    first = context.checkpoint.data or 0
    context.event("began", at=first)
    for page in range(first, pages):
        context.progress(page + 1, total=pages, message="pages")
        context.checkpoint.save(page + 1)
        if first == 0 and page + 1 == pages // 2:
            raise ValueError("half-way")
    for number in range(3):
        context.event("closed", number=number)


@task(takes_context=True)
async def tell_in_loop(context: Any) -> None:
    """Tell all there is, and save once more when it is time to end."""
    context.progress({"stage": "waits"})
    context.event("waits")
    before = context.checkpoint.data
    await context.checkpoint.asave({"stage": 1, "before": before})
    write("began", "told")
    while context.cancelled is None:
        await asyncio.sleep(0.01)
    await context.checkpoint.asave({"stage": 2})
    context.raise_if_cancelled()


@task(takes_context=True)
def save_when_lost(context: Any, gate: str) -> str:
    """Save a checkpoint when another has the job long since; tells what came of it."""
    write("began", "saves")
    while not opened(gate):
        time.sleep(0.01)
    try:
        context.checkpoint.save("late")
    except LeaseLost:
        write("refused", "saves")
        raise
    return "saved"


class Desk:
    """What a job works at."""

    def __init__(self) -> None:
        write("made", os.getpid())
        self.used = 0

    def close(self) -> None:
        """Be done with it."""
        write("closed", os.getpid())


desk = Resource("desk", create=Desk, destroy=Desk.close, validate=lambda one: one.used < 2, maximum=1)


@task(takes_context=True, resource="desk")
def work_at(context: Any, name: Any, gate: str) -> int:
    """Wait for a gate at the desk; tells how often it was used."""
    write("began", name)
    while not opened(gate):
        context.raise_if_cancelled()
        time.sleep(0.01)
    context.resource.used += 1
    return int(context.resource.used)


@task(takes_context=True, backoff=0.1)
def in_line(context: Any, number: int) -> int:
    """Be run in order: some fail first, some put themselves off first."""
    write("in_line", number)
    time.sleep(0.02)
    if context.attempt == 1 and number % 5 == 1:
        raise ValueError("not yet")
    if context.attempt == 1 and context.fence == 1 and number % 5 == 3:
        context.snooze(0.1)
    return number


@task(takes_context=True)
def fail_loudly(context: Any, secret: str) -> None:
    """Save where it was, write in every way there is, and fail."""
    context.checkpoint.save({"page": 3})
    print("printed")
    sys.stderr.write("to the error stream\n")
    logging.getLogger("shop").warning("logged %s", "as well")
    subprocess.run(["echo", "by a child"], check=True)
    sum(range(2_000_000))
    raise ValueError(secret)


@task(isolation="process")
def fall_loudly(how: str, word: str = "") -> None:
    """Write a last word, and end the process."""
    print(word)
    print("the last word")
    sys.stdout.flush()
    os.write(2, b"and one by its number\n")
    if how == "killed":
        signal.raise_signal(signal.SIGSEGV)
    os._exit(7)
