"""The executor: a process that runs handlers, for a keeper at the other end of a socket pair.

It never talks to the record about its jobs. Its main thread alone reads and writes the socket and never runs
user code; the slots' threads take orders, run them and leave outcomes; one more runs the event loop of all
coroutines (coroutines.py), whose slots' threads wait for them; and one imports what is asked for.
"""

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

from shiftboss.queue.errors import UnknownTask
from shiftboss.queue.runtime import output
from shiftboss.queue.runtime.board import SlotBoard
from shiftboss.queue.runtime.coroutines import Coroutines
from shiftboss.queue.runtime.frames import Unpacker, pack
from shiftboss.queue.runtime.logs import hide
from shiftboss.queue.runtime.notes import Teller
from shiftboss.queue.runtime.ports import Handlers
from shiftboss.queue.runtime.resources import Pools
from shiftboss.queue.runtime.running import Run, Runner, unpacked

MAX_OUTCOMES = 1000
MAX_FLUSH_CHARACTERS = 8 * 1024 * 1024
LINGER_SECONDS = 0.002
CLOSE_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


class Executor:
    """`threads` slots that run jobs until the keeper says stop or goes away."""

    def __init__(
        self, *, sock: socket.socket, board: SlotBoard, handlers: Handlers, threads: int, margin_seconds: float
    ) -> None:
        self._sock = sock
        self._handlers = handlers
        self._threads = threads
        self._coroutines = Coroutines(handlers.lane)
        self._teller = Teller(wake=self._wake)
        self._pools = Pools(find=handlers.resource, threads=threads, coroutines=self._coroutines, wake=self._wake)
        self._runner = Runner(
            handlers=handlers,
            board=board,
            margin_seconds=margin_seconds,
            coroutines=self._coroutines,
            teller=self._teller,
            pools=self._pools,
            deliver=self._deliver,
            redactor=handlers.redactor,
        )
        self._orders: SimpleQueue[Run] = SimpleQueue()
        self._wanted: SimpleQueue[list[str]] = SimpleQueue()
        self._outcomes: deque[list[Any]] = deque()
        self._found: deque[tuple[str, str]] = deque()
        self._wake_reader, self._wake_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._woken = False

    def serve(self) -> None:
        """Say hello, then work until the socket closes or a stop is ordered."""
        for number in range(self._threads):
            threading.Thread(target=self._work, name=f"slot-{number}", daemon=True).start()
        threading.Thread(target=self._import, name="import", daemon=True).start()
        self._coroutines.start()
        self._send({"hello": os.getpid(), "known": sorted(self._handlers.known().items())})
        selector = selectors.DefaultSelector()
        selector.register(self._sock, selectors.EVENT_READ)
        selector.register(self._wake_reader, selectors.EVENT_READ)
        unpacker = Unpacker()
        while True:
            for key, _ in selector.select(self._pause()):
                if key.fd == self._wake_reader:
                    os.read(self._wake_reader, 64)
                elif not self._obey(unpacker):
                    return
            if not self._flush() and self._woken:
                self._woken = False
                self._flush()  # what came in between has woken nobody

    def _obey(self, unpacker: Unpacker) -> bool:
        """Read and do what the keeper says; False at the end."""
        data = self._sock.recv(1 << 20)
        for message in unpacker.feed(data):
            self._do(message)
            if message.get("stop"):
                self._flush()
                return False
        return bool(data)

    def _do(self, message: dict[str, Any]) -> None:
        self._runner.revise(message.get("revisions", {}))
        for order in unpacked(message.get("run", ())):
            self._orders.put(self._runner.take(order))
        for ticket, cause in message.get("cancel", ()):
            self._runner.cancel(ticket, cause)
        for _, number, answer in message.get("noted", ()):
            self._teller.noted(number, answer)
        if message.get("give_back"):
            self._runner.give_back()
            self._send({"gave_back": True})
        if message.get("drain"):
            self._runner.drain()
        if names := message.get("resolve"):
            self._wanted.put(names)

    def _send(self, message: dict[str, Any]) -> None:
        self._sock.sendall(pack(message))

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            os.write(self._wake_writer, b"!")

    def _pause(self) -> float | None:
        """How long there is nothing to do unless somebody wakes.

        What was there a moment ago has more behind it: then nobody wakes, and it goes together a little later.
        """
        pauses = (LINGER_SECONDS if self._woken else None, self._teller.pause(), self._pools.pause())
        return min((pause for pause in pauses if pause is not None), default=None)

    def close(self) -> None:
        """Be done with what is idle, within a bound. What handlers still hold ends with the process."""
        closing = threading.Thread(target=self._pools.close, name="close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _flush(self) -> bool:
        """Send what there is; False where there was nothing."""
        # What a run has told goes before its outcome; what comes in between has its turn next time.
        outcomes = len(self._outcomes)
        some = bool(outcomes)
        while notes := self._teller.take():
            some = True
            self._send({"notes": notes})
        while outcomes > 0:
            batch = list(_batch(self._outcomes, outcomes))
            outcomes -= len(batch)
            self._send({"outcomes": batch})
        if (resources := self._pools.news()) is not None:
            self._send({"resources": resources})
        while self._found:
            self._send({"known": [self._found.popleft()]})
        return some

    def _work(self) -> None:
        while True:
            self._runner.run(self._orders.get())

    def _deliver(self, outcome: list[Any]) -> None:
        self._outcomes.append(outcome)
        self._wake()

    def _import(self) -> None:
        # An import runs the user's code and may take long: never in the main thread.
        while True:
            for name in self._wanted.get():
                try:
                    handler = self._handlers.resolve(name)
                except UnknownTask:
                    continue
                self._found.append((name, handler.config.isolation))
                self._wake()


def _batch(outcomes: deque[list[Any]], most: int) -> Iterable[list[Any]]:
    """Take outcomes for one message: bounded in number and in size."""
    characters = 0
    for _ in range(min(most, MAX_OUTCOMES)):
        outcome = outcomes.popleft()
        yield outcome
        if outcome[0] != "done" or outcome[2] is not None:
            characters += sum(len(fact) for fact in outcome if isinstance(fact, str))
        if characters >= MAX_FLUSH_CHARACTERS:
            return


def die_with_parent(parent: int) -> None:
    """Ask the kernel (Linux) for SIGKILL when the parent ends; exit at once if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(orders: str, handlers: Callable[[], Handlers]) -> None:
    """An executor's life. `orders` is the JSON text that the keeper passes on the command line."""
    given = json.loads(orders)
    die_with_parent(given["keeper"])
    # Stop signals are the keeper's business. Python handlers, unlike SIG_IGN, are not passed on to children.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    sock = socket.socket(fileno=given["socket"])
    output.keep()
    project = handlers()
    hide(project.redactor)
    executor = Executor(
        sock=sock,
        board=SlotBoard(given["board"]),
        handlers=project,
        threads=given["threads"],
        margin_seconds=given["margin_seconds"],
    )
    executor.serve()
    executor.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that still run a handler must not hold up the end
