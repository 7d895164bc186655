"""An executor as its keeper sees it: a child process, a socket, a slot board, and the jobs in its hands."""

import asyncio
import json
import logging
import math
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from shiftboss.queue.redaction import Redactor
from shiftboss.queue.runtime import ending, usage
from shiftboss.queue.runtime.board import ENDED, NOT_STARTED, STARTED, TICKETS, DeadlineBoard, SlotBoard
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.evidence import storable
from shiftboss.queue.runtime.frames import Unpacker, pack
from shiftboss.queue.runtime.holdings import Held
from shiftboss.queue.runtime.loop import wait_for_event
from shiftboss.queue.runtime.output import MAX_OUTPUT
from shiftboss.queue.runtime.passing import Passing
from shiftboss.queue.runtime.running import HOST, packed

log = logging.getLogger("shiftboss.executor")

START_SECONDS = 120.0
"""Loading a project's tasks takes no longer."""
CUT_OFF_SECONDS = 0.5
"""The end of the socket and that of the process come this close to each other."""


@dataclass(frozen=True, slots=True)
class Death:
    """How an executor ended and what it had in hand. `exit_code` is negative for a signal.

    `put_down`: its keeper has ended it, because of a deaf job. Where it had one run at a time, `used` is what that
    has used, and `output` what it has written last.
    """

    exit_code: int
    was_ready: bool
    past_deadline: bool
    put_down: bool
    not_started: tuple[Held, ...]
    started: tuple[Held, ...]
    ended: tuple[Held, ...]
    used: Mapping[str, int] = field(default_factory=dict)
    output: str = ""

    @property
    def cause(self) -> str:
        """In words: `killed by SIGSEGV`, `exited with 3`."""
        if self.exit_code >= 0:
            return f"exited with {self.exit_code}"
        try:
            return f"killed by {signal.Signals(-self.exit_code).name}"
        except ValueError:
            return f"killed by signal {-self.exit_code}"

    @property
    def evidence(self) -> dict[str, Any]:
        """For the attempt's record."""
        key, value = ("exit_code", self.exit_code) if self.exit_code >= 0 else ("signal", -self.exit_code)
        return {key: value, "cause": self.cause, "past_deadline": self.past_deadline, "host": HOST, **self.used}


class ExecutorProcess(asyncio.Protocol):
    """One executor. `on_message(executor, message)` gets its words, `on_death(executor, death)` its end.

    `solo`: it has one thread, for jobs that ask for an executor to themselves. `mark`: see ending.py.
    """

    def __init__(
        self,
        *,
        place: int,
        solo: bool,
        mark: str,
        config: KeeperConfig,
        deadlines: DeadlineBoard,
        clock: Callable[[], float],
        on_message: Callable[["ExecutorProcess", dict[str, Any]], None],
        on_death: Callable[["ExecutorProcess", Death], None],
    ) -> None:
        self.place = place
        self.solo = solo
        self.threads = 1 if solo else config.threads
        self.ready = False
        self.answers = False
        self.dismissed = False
        self.is_put_down = False
        self.idle_since = clock()
        self.jobs = 0
        self.tainted_at = 0.0
        self.reserved = False
        self.in_hand: dict[int, Held] = {}
        self.resources: dict[str, dict[str, int]] = {}
        self.pid = 0
        self._mark = mark
        self._born: int | None = None
        self._pid_is_free = False
        self._told: set[int | None] = set()
        self._config = config
        self._deadlines = deadlines
        self._clock = clock
        self._on_message = on_message
        self._on_death = on_death
        self._board = SlotBoard()
        self._output = Passing() if solo else None
        self._free = list(range(TICKETS - 1, -1, -1))
        self._deadline = 0.0
        self._unpacker = Unpacker()
        self._transport: asyncio.Transport | None = None
        self._closed = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self._killing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and connect. Its hello comes as a message. Raises OSError where it cannot start.

        A process that has not said hello within `START_SECONDS` is killed.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        orders = {
            "keeper": os.getpid(),
            "socket": theirs.fileno(),
            "board": self._board.fd,
            "threads": self.threads,
            "margin_seconds": self._config.margin_seconds,
        }
        output = self._output.writer if self._output is not None else None
        try:
            process = subprocess.Popen(
                [*self._config.executor_argv, json.dumps(orders)],
                pass_fds=(theirs.fileno(), self._board.fd),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, ending.MARK: self._mark},
            )
        except OSError:
            ours.close()
            self._board.close()
            raise
        finally:
            theirs.close()
            if self._output is not None:
                self._output.start()
        self.pid, self._born = process.pid, ending.start_time(process.pid)
        self._transport, _ = await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
        self._watcher = asyncio.create_task(self._watch(process))
        asyncio.get_running_loop().call_later(START_SECONDS, self._give_up_starting)

    def _give_up_starting(self) -> None:
        if not self.ready and not self._closed.is_set():
            log.error("executor.start_timed_out", extra={"pid": self.pid, "seconds": START_SECONDS})
            self.kill()

    def data_received(self, data: bytes) -> None:
        """Hand on whole messages; garbage ends the executor."""
        try:
            for message in self._unpacker.feed(data):
                self._on_message(self, message)
        except ValueError as error:
            log.error("executor.garbage", extra={"pid": self.pid, "error": str(error)})
            self.kill()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is at its end: all that the executor said has been heard.

        One that has closed it and lives would go on for ever, with jobs of whose end nobody would hear.
        """
        self._closed.set()
        asyncio.get_running_loop().call_later(CUT_OFF_SECONDS, self._end_the_cut_off)

    def _end_the_cut_off(self) -> None:
        if not self._pid_is_free:
            log.error("executor.cut_off", extra={"pid": self.pid})
            self.kill()

    async def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        process.returncode, used = await _ended(process.pid)
        was_ready, self.ready = self.ready, False
        past_deadline = bool(self._deadline) and self._clock() >= self._deadline
        self._pid_is_free = True
        self._write_deadline(0.0)  # at once: the next to have this pid is not the sentinel's business
        # What the handlers have started goes too, before anybody runs their jobs again.
        await asyncio.to_thread(ending.end, self.pid, started=self._born, mark=self._mark)
        await wait_for_event(self._closed, 5)  # what it said before its end is heard first
        hand: dict[int, list[Held]] = {NOT_STARTED: [], STARTED: [], ENDED: []}
        for ticket, held in self.in_hand.items():
            held.began_at = self._board.began_at(ticket)
            hand[self._board.state(ticket)].append(held)
            held.executor, held.ticket = None, -1
        self.in_hand.clear()
        death = Death(
            exit_code=process.returncode,
            was_ready=was_ready,
            past_deadline=past_deadline,
            put_down=self.is_put_down,
            used=used if self.solo else {},
            output=self.output,
            not_started=tuple(hand[NOT_STARTED]),
            started=tuple(hand[STARTED]),
            ended=tuple(hand[ENDED]),
        )
        if self._transport is not None:
            self._transport.close()
        self._board.close()
        self._on_death(self, death)

    def run(self, jobs: Sequence[Held]) -> None:
        """Put jobs into the executor's hands."""
        if self._output is not None:
            self._output.forget()
        orders, revisions = [], {}
        board = self._board
        for held in jobs:
            ticket = self._free.pop()
            held.executor, held.ticket = self, ticket
            self.in_hand[ticket] = held
            board.mark(ticket, NOT_STARTED)
            board.set_expiry(ticket, held.expires_at)
            orders.append((ticket, held.job, held.worker_id))
            if held.config is not None and held.job.revision_id not in self._told:
                self._told.add(held.job.revision_id)
                revisions[str(held.job.revision_id)] = held.config.to_json()
        message = {"run": packed(orders)}
        self.send({"revisions": revisions, **message} if revisions else message)
        if not 0.0 < self._deadline < math.inf:
            self.refresh_deadline()

    @property
    def output(self) -> str:
        """The last of what a run that has the executor to itself has written, as far as it may be seen."""
        if self._output is None or not self._config.keeps_output:
            return ""
        return storable(Redactor(self._config.redact_keys).text(self._output.last_words()), MAX_OUTPUT)

    def taken_back(self, ticket: int) -> Held | None:
        """The job of a ticket whose outcome has come; the ticket is free again."""
        held = self.in_hand.pop(ticket, None)
        if held is not None:
            held.executor, held.ticket = None, -1
            self._free.append(ticket)
            if not self.in_hand:
                self._write_deadline(0.0)
                self.idle_since = self._clock()
        return held

    def began_at(self, held: Held) -> float:
        """When a job in hand began, in seconds of the boot-time clock; 0 where it has not."""
        return self._board.began_at(held.ticket)

    def has_ended(self, held: Held) -> bool:
        """Whether the handler of a job in hand is done, heard or not."""
        return self._board.state(held.ticket) == ENDED

    @property
    def neighbours(self) -> list[Held]:
        """Jobs in hand that have begun and may still end well; also those that have, while it is to be heard."""
        return [one for one in self.in_hand.values() if not one.deaf and self.began_at(one)]

    @property
    def unstarted(self) -> list[Held]:
        """Jobs in hand that have not begun."""
        return [one for one in self.in_hand.values() if not self.began_at(one)]

    def empty(self) -> None:
        """It gets no more jobs; those that have not begun are given back. `answers` says that it has heard."""
        self.send({"give_back": True})

    def taint(self) -> None:
        """As `empty`, with the time of it."""
        self.tainted_at = self._clock()
        self.empty()

    def dismiss(self) -> None:
        """End it, idle as it is; its death is expected."""
        self.dismissed = True
        self.ready = False
        self.send({"stop": True})

    def renewed(self, held: Held) -> None:
        """A lease in hand was prolonged; `refresh_deadline` after the last of them."""
        self._board.set_expiry(held.ticket, held.expires_at)

    def refresh_deadline(self) -> None:
        """Tell the sentinel the earliest expiry in hand, less the margin."""
        earliest = min((held.expires_at for held in self.in_hand.values()), default=0.0)
        self._write_deadline(earliest - self._config.margin_seconds if earliest else 0.0)

    def _write_deadline(self, deadline: float) -> None:
        self._deadline = 0.0 if self._pid_is_free else deadline
        self._deadlines.write(self.place, self.pid, self._deadline)

    def cancel(self, held: Held, cause: str) -> None:
        """Have a job in hand given back where it has not started, else set its token."""
        self.send({"cancel": [[held.ticket, cause]]})

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; lost where the executor is dead, which its death will tell."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(pack(message))

    def kill(self) -> None:
        """SIGKILL to the executor, its process group and its descendants; the death is reported as any other."""
        if self.pid:  # not started yet: group 0 would be the keeper's own
            self._killing = asyncio.create_task(
                asyncio.to_thread(ending.end, self.pid, started=self._born, mark=None)
            )

    def put_down(self) -> None:
        """Kill it because of its deaf jobs: nobody is to blame for the others' end."""
        if not self.is_put_down:
            self.is_put_down = True
            self.kill()

    async def gone(self) -> None:
        """Wait until the process has ended and its death has been reported."""
        if self._watcher is not None:
            await self._watcher


async def _ended(pid: int) -> tuple[int, dict[str, int]]:
    """Wait for a child's end: its exit code, negative for a signal, and for the evidence what it has used."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[int, Any]] = loop.create_future()

    def wait() -> None:
        _, status, used = os.wait4(pid, 0)
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(ended.set_result, (os.waitstatus_to_exitcode(status), used))

    threading.Thread(target=wait, name=f"wait-{pid}", daemon=True).start()
    exit_code, used = await ended
    cpu_ms = round((used.ru_utime + used.ru_stime) * 1000)
    return exit_code, {"cpu_ms": cpu_ms, "memory_kb": usage.kilobytes(used.ru_maxrss)}
