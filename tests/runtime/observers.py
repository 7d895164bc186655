"""Observers under test: good ones, and such as no worker may suffer from."""

import json
import os
import threading
from dataclasses import asdict
from typing import Any

import psutil

from shiftboss.compat import task_finished, task_started


def _path() -> str:
    return os.path.join(os.environ["TEST_LOG"], "observed")


def keep(kind: str, facts: Any) -> None:
    """Append a line that `heard` reads."""
    line = json.dumps([kind, os.getpid(), facts]) + "\n"
    fd = os.open(_path(), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.write(fd, line.encode())
    os.close(fd)


class Everything:
    """Keeps all that it is told."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda facts: keep(name, asdict(facts))


class Thrower:
    """Raises at every word."""

    def on_start(self, facts: Any) -> None:
        """Not to be loved."""
        raise RuntimeError("an observer that throws")

    on_success = on_failure = on_retry = on_abort = on_enqueue = on_drain = on_start


class Hanger:
    """Never comes back."""

    def on_start(self, facts: Any) -> None:
        """Not to be loved either."""
        keep("hangs", {})
        threading.Event().wait()


class Dier:
    """Takes its process with it, the first time."""

    def on_start(self, facts: Any) -> None:
        """Die once."""
        mark = _path() + "-died"
        if not os.path.exists(mark):
            open(mark, "w").close()
            psutil.Process().kill()


class Late:
    """Would have to be awaited."""

    async def on_start(self, facts: Any) -> None:
        """Nobody awaits it."""


class Deaf:
    """Has no method that anybody calls."""


def connect() -> None:
    """Receivers of Django's signals, for a project that connects some in `ready()`."""

    def receive(sender: Any, task_result: Any, signal: Any, **_: Any) -> None:
        word = "started" if signal is task_started else "finished"
        value = task_result.return_value if task_result.status == "SUCCESSFUL" else None
        keep(f"task_{word}", [task_result.id, str(task_result.status), sender.__name__, value])

    task_started.connect(receive, weak=False)
    task_finished.connect(receive, weak=False)
