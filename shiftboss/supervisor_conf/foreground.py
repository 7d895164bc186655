"""supervisord as the child of a command in the foreground: Ctrl-C stops all programs in order."""

import fcntl
import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import control, installation, places, programs, render
from shiftboss.supervisor_conf.installation import Installation

Say = Callable[[str], None]

CONFIGURATION = "supervisord.conf"
POLL_SECONDS = 0.1
LONG_POLL_SECONDS = 0.5
FATAL = {"FATAL", "BACKOFF"}
ENDED = {"EXITED", "FATAL"}


class AlreadyRunning(ShiftbossError):
    """Another `shiftboss up` runs, or still stops, in the same home."""


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Hold the home's lock for the length of the block. Raises AlreadyRunning."""
    with (home / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            noted = installation.load(home)
            where = f" (console: {noted.address})" if noted else ""
            raise AlreadyRunning(
                f"Shiftboss runs already in {home}{where}: stop it there with Ctrl-C, "
                "or set SHIFTBOSS_HOME to another folder"
            ) from None
        if control.is_running(render.socket_path(home)):
            longest = render.drain_seconds(home / CONFIGURATION)
            drain = "DRAIN_SECONDS" if longest is None else f"{longest} seconds (DRAIN_SECONDS)"
            raise AlreadyRunning(
                f"the programs of {home} are still stopping; workers may take {drain} to finish what they run: "
                "try again then"
            )
        yield


def run(given: Installation, configuration: str, *, say: Say) -> int:
    """Start supervisord and stay until it ends. 0 where we were asked to stop, else 1."""
    file = given.home / CONFIGURATION
    installation.write_private(file, configuration)
    stopping: list[int] = []
    supervisord = _start(file, given)

    def stop(number: int, _: FrameType | None) -> None:
        if not stopping:
            say("Stopping …")
        stopping.append(number)
        supervisord.send_signal(signal.SIGTERM)

    with _signals(stop), _terminal():
        _tell_when_ready(supervisord, given, stopping, say)
        _tell_of_first_command(supervisord, given, stopping, say)
        code = supervisord.wait()
    if stopping:
        say("Stopped.")
        return 0
    say(f"supervisord ended by itself ({_how(code)}): see {given.logs / 'supervisord.log'}")
    return 1


def _start(file: Path, given: Installation) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*places.dies_with_parent("TERM"), *programs.python("supervisor.supervisord", "-c", str(file))],
        cwd=given.home,
        env=os.environ | given.environment(),
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
    )


def _tell_when_ready(
    supervisord: "subprocess.Popen[bytes]", given: Installation, stopping: list[int], say: Say
) -> None:
    """Say that the console answers, or which program does not start; return when there is no more to tell."""
    told: set[str] = set()
    while not stopping and supervisord.poll() is None:
        if _answers(given.host, given.port):
            what = "The console" if given.console else "The site, without a console,"
            say(f"Ready. {what} is at {given.address} — Ctrl-C stops everything.")
            return
        for name in _failing(given.home) - told:
            told.add(name)
            say(f"{name} does not start: see {given.logs / f'{name}.log'}")
        _pause(supervisord, POLL_SECONDS)


def _tell_of_first_command(
    supervisord: "subprocess.Popen[bytes]", given: Installation, stopping: list[int], say: Say
) -> None:
    """Stay until the first command has ended, where there is one, and say so if it failed."""
    while not stopping and supervisord.poll() is None:
        first = next((one for one in _programs(given.home) if one["name"] == programs.FIRST_COMMAND), None)
        if first is None or first["statename"] in ENDED:
            if first and (code := first["exitstatus"]):
                # supervisord does not know which signal it was.
                how = "a signal" if code < 0 else f"exit code {code}"
                say(f"{first['name']} ended with {how}: see {given.logs / first['name']}.log")
            return
        _pause(supervisord, LONG_POLL_SECONDS)


def _pause(supervisord: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait for the end of supervisord, but no longer than this."""
    with suppress(subprocess.TimeoutExpired):
        supervisord.wait(timeout=seconds)


def _failing(home: Path) -> set[str]:
    return {str(program["name"]) for program in _programs(home) if program["statename"] in FATAL}


def _programs(home: Path) -> list[dict[str, Any]]:
    """What supervisord says of its programs; nothing while it does not answer."""
    try:
        listed: list[dict[str, Any]] = control.call(render.socket_path(home), "getAllProcessInfo")
    except (control.SupervisorUnreachable, control.SupervisorRefused):
        return []
    return listed


def _answers(host: str, port: int) -> bool:
    """Whether the console gives an answer to a request, whatever it says."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


@contextmanager
def _signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Give the signals that ask for an end to the handler for the length of the block."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, previous in zip(numbers, before, strict=True):
            signal.signal(number, previous)


@contextmanager
def _terminal() -> Iterator[None]:
    """Take the terminal for the length of the block where another program, such as make, started us.

    make ends with an error when Ctrl-C reaches it, even where what it runs stops in good order.
    """
    terminal: IO[str] = sys.stdin
    mine = os.getpgrp()
    if mine == os.getpid() or not terminal.isatty() or os.tcgetpgrp(terminal.fileno()) != mine:
        yield
        return
    os.setpgid(0, 0)
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else the hand-over itself stops us
    try:
        os.tcsetpgrp(terminal.fileno(), os.getpgrp())
        yield
    finally:
        os.tcsetpgrp(terminal.fileno(), mine)
        signal.signal(signal.SIGTTOU, ignored)


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
