"""A supervisord of a test: started with a configuration, asked, and gone at the end with all that it runs."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from shiftboss.supervisor_conf import control, places, programs
from tests.processes import runs
from tests.waiting import wait_for

START_SECONDS = 90


class Supervisord:
    """One that runs: its socket, and its process."""

    def __init__(self, socket: Path, process: "subprocess.Popen[bytes]") -> None:
        self.socket = socket
        self.process = process

    def programs(self) -> dict[str, dict[str, Any]]:
        """What it says of its programs, by name."""
        listed = control.call(self.socket, "getAllProcessInfo")
        return {program["name"]: program for program in listed}

    def pid_of(self, name: str) -> int:
        """The pid of a program, once it runs."""

        def pid() -> int:
            program = self.programs()[name]
            return int(program["pid"]) if program["statename"] == "RUNNING" else 0

        return wait_for(pid, seconds=START_SECONDS)

    def below(self) -> list[psutil.Process]:
        """All processes that it has started, and theirs."""
        return psutil.Process(self.process.pid).children(recursive=True)


@contextmanager
def supervisord(file: Path, socket: Path, **environment: str) -> Iterator[Supervisord]:
    """Run one with this configuration, which names this socket, for the length of the block."""
    words = [*places.dies_with_parent("TERM"), *programs.python("supervisor.supervisord", "-n", "-c", str(file))]
    said = file.with_suffix(".said")
    with said.open("w") as output:
        process = subprocess.Popen(
            words,
            cwd=file.parent,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    found: list[psutil.Process] = []
    try:
        wait_for(lambda: process.poll() is not None or control.is_running(socket), seconds=START_SECONDS)
        assert process.poll() is None, said.read_text()
        running = Supervisord(socket, process)
        yield running
    finally:
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for one in filter(runs, found):
            with suppress(psutil.NoSuchProcess):
                one.kill()
