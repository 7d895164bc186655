"""A `shiftboss up` and all that it starts."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from shiftboss.supervisor_conf import control, launcher, places, render
from shiftboss.supervisor_conf.postgres import Postgres
from tests.processes import command_line as words_of
from tests.processes import runs
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90
STOP_SECONDS = 40


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


def environment(home: Path, **more: str) -> dict[str, str]:
    """This environment without what tests or their caller have set for Shiftboss."""
    ours = ("SHIFTBOSS_", "DJANGO_", "DATABASE_URL", "PORT", "PYTHONPATH")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    return kept | {"SHIFTBOSS_HOME": str(home), "PYTHONPATH": str(ROOT)} | more


def shiftboss(home: Path, *words: str, user: int | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run one command of `shiftboss` to its end."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "shiftboss.cli", *words],
        cwd=home.parent,
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


class Tree:
    """One `shiftboss up` in a home; `user` is the uid and gid that it runs as."""

    def __init__(self, home: Path, *arguments: str, user: int | None = None) -> None:
        self.home = home
        self.port = free_port()
        self.output = home.parent / "up.log"
        self.known: set[psutil.Process] = set()
        with self.output.open("w") as output:
            self.up = subprocess.Popen(
                command(*arguments, "--port", str(self.port)),
                cwd=home.parent,
                env=environment(home),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )

    def text(self) -> str:
        """What it has printed."""
        return self.output.read_text()

    def ready(self) -> "Tree":
        """Wait until it says so and until every program has become what it is to be."""
        wait_for(lambda: "Ready." in self.text() or self.up.poll() is not None, seconds=START_SECONDS)
        assert self.up.poll() is None, self.text()
        wait_for(lambda: not self._still_at_the_gate(), seconds=START_SECONDS)
        self.processes()
        return self

    def programs(self) -> list[dict[str, Any]]:
        """What supervisord says of its programs."""
        listed: list[dict[str, Any]] = control.call(render.socket_path(self.home), "getAllProcessInfo")
        return listed

    def processes(self) -> set[psutil.Process]:
        """Every process below `shiftboss up` now, and itself; remembered."""
        top = psutil.Process(self.up.pid)
        self.known |= {top, *top.children(recursive=True)}
        return self.known

    def supervisord(self) -> psutil.Process:
        """The process of supervisord."""
        [found] = psutil.Process(self.up.pid).children()
        return found

    def interrupt(self) -> int:
        """What Ctrl-C does; the exit code."""
        self.processes()
        self.up.send_signal(signal.SIGINT)
        return self.up.wait(timeout=STOP_SECONDS)

    def left(self) -> list[psutil.Process]:
        """What still runs of all that it was seen to start."""
        return [p for p in self.known if runs(p)]

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        if self.up.poll() is None:
            self.interrupt()
        for process in self.left():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def ask(self, query: str) -> Any:
        """The one value that the embedded database answers."""
        note = json.loads((self.home / "installation.json").read_text())
        with psycopg.connect(note["database_url"]) as connection:
            [value] = connection.execute(query).fetchone() or [None]
        return value

    def _still_at_the_gate(self) -> bool:
        lines = self.command_lines().values()
        # The launcher's own line names all that stands behind it.
        return any("shiftboss.supervisor_conf.gate" in line and launcher.__file__ not in line for line in lines)

    def command_lines(self) -> dict[psutil.Process, list[str]]:
        """The words of each process that runs now."""
        lines = {process: words_of(process) for process in self.processes()}
        return {process: line for process, line in lines.items() if line}


def command(*arguments: str) -> Sequence[str]:
    """The command line of `shiftboss up`, ended in order should the tests die."""
    return [*places.dies_with_parent("TERM"), sys.executable, "-P", "-m", "shiftboss.cli", "up", *arguments]


def forget(home: Path) -> None:
    """Remove what an installation keeps outside of its home."""
    import shutil

    shutil.rmtree(places.shared(home), ignore_errors=True)
    if (folder := places.socket_folder(home)) != home:
        shutil.rmtree(folder, ignore_errors=True)
    if os.geteuid() != 0 and (sockets := Postgres.of(home).sockets) != home / "postgres":
        shutil.rmtree(sockets, ignore_errors=True)
