"""What a host's agent does for a rolling restart: with one worker, what is next.

It decides by what the record holds of the step and by what supervisord says now, and remembers nothing itself: so
whatever it was doing when it died, the next agent goes on from there.
"""

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from logging import INFO, WARNING
from typing import TypedDict

from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection
from shiftboss.queue.store import rolls
from shiftboss.queue.store.rolls import Move, Step
from shiftboss.supervisor_conf import control
from shiftboss.supervisor_conf.orders import START_SECONDS, OrderFailed, Orders

log = logging.getLogger("shiftboss.listener")

SYSTEM = System()

PROVE_SECONDS = 120.0
"""A worker is given so long to say that it lives: it may wait at the gate, and has to load the project."""

CLAIM_SECONDS = 30.0
"""One that lives is given so long to claim, where there is anything to claim."""

NOTE_SECONDS = 10.0
"""How an end came about is noted within so long, or it is told without that."""

LOOKS_AT_OTHERS = 10
"""In so many looks without a step of its own an agent looks once whether the one whose turn it is is silent."""

UP = frozenset({"RUNNING", "STARTING"})
FAILING = frozenset({"BACKOFF", "FATAL"})


class Deed(StrEnum):
    """What is done to a program."""

    DRAIN = "drain"
    START = "start"


@dataclass(frozen=True, slots=True)
class Program:
    """A program as supervisord has it; `launcher` is the pid that it knows, None where it is down."""

    state: str
    launcher: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each part of a step may take, in seconds."""

    stop: float
    start: float = START_SECONDS
    prove: float = PROVE_SECONDS
    claim: float = CLAIM_SECONDS
    note: float = NOTE_SECONDS


def decide(step: Step, program: Program | None, patience: Patience) -> Deed | Move | None:
    """What is next: to do something, to move the step, or (None) to wait."""
    match step.state:
        case "waiting":
            return _begin(step, program)
        case "draining":
            return _drain(step, program, patience)
        case "starting":
            return _start(step, program, patience)
        case "proving":
            return _prove(step, program, patience)
    return None


def _begin(step: Step, program: Program | None) -> Move | None:
    if program is None or program.state in ("STOPPED", "EXITED"):
        return Move(to="done")  # somebody has stopped it since: it stays down
    if program.state in UP or program.state in FAILING:
        return Move(to="draining", launcher=program.launcher)
    return None


def _drain(step: Step, program: Program | None, patience: Patience) -> Deed | Move | None:
    if program is None or program.launcher is None:
        if program is not None and program.state == "BACKOFF":
            return Deed.DRAIN  # it would start by itself
        return Move(to="starting")
    if program.launcher != step.launcher and program.state in UP:
        # It ended by itself meanwhile, and what runs now has begun since.
        return Move(to="proving", launcher_after=program.launcher)
    if step.seconds > patience.stop:
        return Move(to="failed", why=f"it did not stop within {patience.stop:g} seconds")
    return Deed.DRAIN if program.state in UP else None


def _start(step: Step, program: Program | None, patience: Patience) -> Deed | Move | None:
    if program is not None and program.launcher is not None and program.state in UP:
        return Move(to="proving", launcher_after=program.launcher)
    if step.ending is not None:
        return Move(to="failed", why=f"it does not come up: {ending(step)}")
    if program is not None and program.state in FAILING:
        # How it ended is noted in a moment.
        if step.seconds < patience.note:
            return None
        return Move(to="failed", why="it does not stay up: see its log")
    if step.seconds > patience.start:
        return Move(to="failed", why=f"it did not start within {patience.start:g} seconds")
    return Deed.START if program is None or program.state in ("STOPPED", "EXITED") else None


def _prove(step: Step, program: Program | None, patience: Patience) -> Move | None:
    if step.ending is not None:
        return _proved(step, why=f"it does not come up: {ending(step)}")
    if step.worker_id and step.code_wanted is not None and step.code_version != step.code_wanted:
        return _proved(step, why=f"it runs version {step.code_version or 'unknown'}, not {step.code_wanted}")
    if step.beats and step.claims:
        return _proved(step)
    if step.beats and step.seconds > patience.claim:
        why = "it lives, and claims nothing though jobs wait in its queues"
        return _proved(step, why=why if step.waits else None)
    if step.seconds > patience.prove:
        gone = program is None or program.launcher != step.launcher_after
        what = "it has ended, nobody knows how" if gone else "no worker has said that it lives: see its log"
        return _proved(step, why=f"{what}, for {patience.prove:g} seconds")
    return None


def _proved(step: Step, *, why: str | None = None) -> Move:
    """The end of a step, with the worker that came up; `why` it failed, where it did."""
    to = "done" if why is None else "failed"
    return Move(to=to, worker_id=step.worker_id, code_version=step.code_version, why=why)


def ending(step: Step) -> str:
    """How a life ended, and its last word."""
    how = {"code": f"exit code {step.code}", "signal": f"signal {step.signal}"}.get(str(step.ending))
    last = next((line for line in reversed((step.log or "").splitlines()) if line.strip()), None)
    said = f"; its log ends with: {last.strip()[:300]}" if last else ""
    return (how or "it has ended, nobody knows how") + said


class Holder(TypedDict):
    """What an agent shows with each word."""

    authority: System
    host: str
    fence: int


class Rolls:
    """Does the steps of rolling restarts that are its host's."""

    def __init__(self, connection: Connection, *, host: str, orders: Orders) -> None:
        self._connection = connection
        self._host = host
        self._orders = orders
        self._patience = Patience(stop=orders.stop_seconds)
        self._looks = 0

    async def run_once(self, fence: int | None) -> bool:
        """Do what is next on this host under its agent's lease; True where something has moved."""
        if fence is None:
            return False
        step = await self._connection.run(rolls.step(authority=SYSTEM, host=self._host))
        if step is None:
            await self._look_at_others(fence)
            return False
        holder: Holder = {"authority": SYSTEM, "host": self._host, "fence": fence}
        if step.fallen is not None:
            why = f"{step.fallen}, which had come up, has ended since: {ending(step)}"
            log.warning("roll.stopped", extra={"roll": step.roll_id, "why": why})
            return await self._connection.run(rolls.stop(step, why=why, **holder))
        to = await asyncio.to_thread(self._next, step)
        if to is None:
            return False
        has_moved = await self._connection.run(rolls.move(step, to, **holder))
        if has_moved:
            fields = {"roll": step.roll_id, "program": step.program, "state": to.to, "why": to.why}
            log.log(WARNING if to.why else INFO, "roll.moved", extra=fields)
        return has_moved

    async def _look_at_others(self, fence: int) -> None:
        """Now and then: does the roll wait for a host of which nobody hears?"""
        self._looks += 1
        if self._looks % LOOKS_AT_OTHERS == 0:
            stopping = rolls.stop_silent(authority=SYSTEM, host=self._host, fence=fence)
            if stopped := await self._connection.run(stopping):
                log.warning("roll.stopped", extra={"roll": stopped, "why": "the agent of its next host is silent"})

    def _next(self, step: Step) -> Move | None:
        """Do what is next for a step; into which state it comes, None where it stays."""
        try:
            match decide(step, self._program(step.program), self._patience):
                case Deed.DRAIN:
                    # A configuration that cannot be read is found out while the worker still runs.
                    control.reload(self._orders.socket)
                    self._orders.begin_stop(step.program)
                case Deed.START:
                    return self._start(step.program)
                case Move() as to:
                    return to
        except control.SupervisorRefused as problem:
            return Move(to="failed", why=str(problem))
        except (control.SupervisorUnreachable, OrderFailed):
            pass  # the host's trouble is told; the step waits for its end
        return None

    def _program(self, name: str) -> Program | None:
        info = control.programs(self._orders.socket, self._orders.prefix).get(name)
        return None if info is None else Program(str(info["statename"]), int(info["pid"]) or None)

    def _start(self, name: str) -> Move | None:
        """Start a program by the configuration as it is now."""
        changes = control.reload(self._orders.socket)
        if name in changes.removed:
            return Move(to="done")  # it stays down; who reads the new configuration in takes it away
        if name in changes.changed:
            control.call(self._orders.socket, "removeProcessGroup", name)
        if name in changes.changed | changes.added:
            control.call(self._orders.socket, "addProcessGroup", name)
        self._orders.begin_start(name)
        return None
