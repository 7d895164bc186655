"""What running handlers tell, on its way out of the executor: progress, events, checkpoints.

A `Teller` belongs to an executor, a `Telling` to one run, whose notes leave in order and before its outcome. A
handler waits for nothing but the saving of a checkpoint.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from threading import Lock
from typing import Any

from shiftboss.queue import payload
from shiftboss.queue.contract import NoteKind
from shiftboss.queue.errors import LeaseLost, NotStorable

PROGRESS_SECONDS = 1.0
"""Progress of a job leaves the executor no more often; what comes in between is replaced by what comes later."""

MAX_NOTE_BYTES = 4096
MAX_NAME_CHARACTERS = 100
MAX_CHECKPOINT_BYTES = 256 * 1024
MAX_EVENTS = 200
"""Of one run; those that come after are counted, and the count is told as the last event."""

DROPPED = "events_dropped"
"""The name of the event that tells how many were dropped."""

SETTLE = ""
"""No kind of note: it is answered when all notes before it are settled."""
SETTLED = "settled"
"""The handler has completed its job in its own transaction; it may go on for a while."""

MAX_FRAME_NOTES = 1000
MAX_FRAME_CHARACTERS = 8 * 1024 * 1024
LOOK_SECONDS = 0.5
"""How often whoever waits for a checkpoint looks whether the lease is still held."""


class Teller:
    """Collects the notes of all runs for the thread that owns the socket, and hands out the keeper's answers.

    `wake` has that thread call `take`; between calls it may sleep for `pause`.
    """

    def __init__(self, *, wake: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.lock = Lock()
        self.clock = clock
        self._wake = wake
        self._out: deque[list[Any]] = deque()
        self._late: dict[Telling, float] = {}
        self._numbers = count(1)
        self._waiting: dict[int, Future[str]] = {}

    def open(self, ticket: int) -> "Telling":
        """For a run that has this ticket."""
        return Telling(self, ticket)

    def put(self, ticket: int, kind: str, data: str, *, name: str = "") -> None:
        """A note that nobody waits for. Under the lock."""
        self._out.append([ticket, 0, kind, name, data])
        self._wake()

    def ask(self, ticket: int, kind: str, data: str) -> "Future[str]":
        """A note whose answer somebody waits for. Under the lock."""
        number, answer = next(self._numbers), Future[str]()
        self._waiting[number] = answer
        self._out.append([ticket, number, kind, "", data])
        self._wake()
        return answer

    def later(self, telling: "Telling", at: float) -> None:
        """Have this one asked again at that time. Under the lock."""
        self._late[telling] = at
        self._wake()

    def done(self, telling: "Telling") -> None:
        """Nothing more comes from this one. Under the lock."""
        self._late.pop(telling, None)

    def pause(self) -> float | None:
        """Seconds until there is something to take, if nobody wakes before; None: whenever somebody does."""
        with self.lock:
            return max(0.0, min(self._late.values()) - self.clock()) if self._late else None

    def take(self) -> list[list[Any]]:
        """Notes for one message, in order, bounded in number and in size; none where nothing is left."""
        batch: list[list[Any]] = []
        characters = 0
        with self.lock:
            now = self.clock()
            for telling in [one for one, at in self._late.items() if at <= now]:
                del self._late[telling]
                telling.out(now)
            while self._out and len(batch) < MAX_FRAME_NOTES and characters < MAX_FRAME_CHARACTERS:
                batch.append(self._out.popleft())
                characters += len(batch[-1][-1])
        return batch

    def noted(self, number: int, answer: str) -> None:
        """The keeper has answered for a note."""
        with self.lock:
            waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class Telling:
    """What one run tells, from any of its threads and coroutines. Once it is closed the run is over."""

    __slots__ = ("_closed", "_dropped", "_events", "_progress", "_progress_at", "_teller", "_ticket", "_told")

    def __init__(self, teller: Teller, ticket: int) -> None:
        self._teller = teller
        self._ticket = ticket
        self._progress: str | None = None
        self._progress_at = -math.inf
        self._events = 0
        self._dropped = 0
        self._told = False
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the run is over."""
        return self._closed

    def progress(self, data: str) -> None:
        """The latest word on how far the run is."""
        with self._teller.lock:
            if self._closed:
                return
            self._told = True
            waits, self._progress = self._progress is not None, data
            if (now := self._teller.clock()) >= self._progress_at:
                self.out(now)
            elif not waits:
                self._teller.later(self, self._progress_at)

    def out(self, now: float) -> None:
        """What waits is put on its way. Under the lock."""
        if self._progress is not None:
            self._teller.put(self._ticket, NoteKind.PROGRESS, self._progress)
            self._progress, self._progress_at = None, now + PROGRESS_SECONDS

    def event(self, name: str, data: str) -> None:
        """Something has happened."""
        with self._teller.lock:
            if self._closed:
                return
            self._told = True
            if self._events < MAX_EVENTS:
                self._events += 1
                self._teller.put(self._ticket, NoteKind.EVENT, data, name=name)
            else:
                self._dropped += 1

    def checkpoint(self, data: str) -> "Future[str]":
        """Where the next attempt is to go on; the answer comes once it is durable. Raises LeaseLost."""
        with self._teller.lock:
            if self._closed:
                raise LeaseLost("this run is over: its checkpoint can no longer be saved")
            return self._teller.ask(self._ticket, NoteKind.CHECKPOINT, data)

    def settle(self, lost: Callable[[], bool]) -> None:
        """Wait until the record holds all that was told so far, or refuses it, or the lease is lost."""
        with self._teller.lock:
            if self._closed or not self._told:
                return
            self.out(0.0)
            self._teller.done(self)
            self._told = False
            answer = self._teller.ask(self._ticket, SETTLE, "")
        while not lost():
            try:
                answer.result(LOOK_SECONDS)
                return
            except TimeoutError:
                continue

    def settled(self) -> None:
        """The job is completed; there is no lease any more."""
        with self._teller.lock:
            self._teller.put(self._ticket, SETTLED, "")

    def close(self) -> None:
        """The run is over: its last words are put on their way, and nothing comes after them."""
        with self._teller.lock:
            if self._closed:
                return
            self._closed = True
            self.out(0.0)
            self._teller.done(self)
            if self._dropped:
                self._teller.put(self._ticket, NoteKind.EVENT, f'{{"dropped":{self._dropped}}}', name=DROPPED)


class Checkpoint:
    """Where an attempt left off, for the next one to go on from there: `context.checkpoint`.

    What is saved outlives failures, lost workers, releases and snoozes; a rerun starts without.
    """

    __slots__ = ("_lost", "_saved", "_telling")

    def __init__(
        self, saved: str | None = None, telling: Telling | None = None, lost: Callable[[], bool] = lambda: False
    ) -> None:
        self._saved = saved
        self._telling = telling
        self._lost = lost

    @property
    def data(self) -> Any:
        """What was saved last, by this attempt or an earlier one; None at first."""
        return None if self._saved is None else payload.decode(self._saved)

    def save(self, data: Any) -> None:
        """Save, and return once it is durable in the record: what it covers has to be durable before.

        Whatever arguments of tasks may hold, at most 256 kB as JSON. Raises NotStorable, LeaseLost where the lease
        is no longer held (nothing was saved), and RuntimeError in a coroutine: there use `asave`.
        """
        if in_a_coroutine():
            raise RuntimeError("checkpoint.save() would block the event loop: use `await checkpoint.asave(…)`")
        text, answer = self._offer(data)
        while answer is not None:
            try:
                self._answered(answer.result(LOOK_SECONDS))
                break
            except TimeoutError:
                self._look()
        self._saved = text

    async def asave(self, data: Any) -> None:
        """As `save`, from a coroutine."""
        text, answer = self._offer(data)
        if answer is not None:
            waiting = asyncio.wrap_future(answer)
            while not (await asyncio.wait({waiting}, timeout=LOOK_SECONDS))[0]:
                self._look()
            self._answered(waiting.result())
        self._saved = text

    def _offer(self, data: Any) -> "tuple[str, Future[str] | None]":
        text = payload.encode_note(data, what="checkpoint", max_bytes=MAX_CHECKPOINT_BYTES)
        return text, self._telling.checkpoint(text) if self._telling is not None else None

    def _look(self) -> None:
        if self._lost():
            self._answered("lost")

    def _answered(self, answer: str) -> None:
        match answer:
            case "ok":
                return
            case "refused":
                raise NotStorable("the record cannot hold this checkpoint")
        raise LeaseLost("the lease is no longer held: the checkpoint was not saved")


def progress_text(value: Any, total: Any, message: Any) -> str:
    """The JSON text of a progress. Raises TypeError, ValueError, NotStorable."""
    if isinstance(value, Mapping):
        if total is not None or message is not None:
            raise TypeError("progress() takes either a dict or value, total and message")
        told: Any = value
    else:
        told = {"value": _number("value", value)}
        if total is not None:
            told["total"] = _number("total", total)
        if message is not None:
            told["message"] = _text("progress() takes the message", message)
    return payload.encode_note(told, what="progress", max_bytes=MAX_NOTE_BYTES)


def event_text(name: Any, data: Mapping[str, Any]) -> str:
    """The JSON text of an event's data. Raises TypeError, ValueError, NotStorable."""
    if not 1 <= len(_text("event() takes the name", name)) <= MAX_NAME_CHARACTERS:
        raise ValueError(f"an event's name has from 1 to {MAX_NAME_CHARACTERS} characters, not {len(name)}")
    payload.encode_note(name, what="event's name", max_bytes=MAX_NOTE_BYTES)
    return payload.encode_note(dict(data), what="event", max_bytes=MAX_NOTE_BYTES)


def in_a_coroutine() -> bool:
    """Whether the caller runs on an event loop, which it must not block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _number(name: str, given: Any) -> int | float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"progress() takes the {name} as a number, not {type(given).__name__}")
    if not 0 <= given < math.inf:
        raise ValueError(f"progress() takes a finite {name} from 0 on, not {given!r}")
    return given


def _text(what: str, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{what} as text, not {type(given).__name__}")
    return given
