"""Keepers that are killed by themselves at a point: before or after a statement of one of their verbs.

Nothing in the product knows of that: `connect` is the client of their configuration, and sees each statement that
a verb yields. They are forked from a program that has imported everything (`python -P -m
tests.faults.kill_points`), so that dozens of them take no longer than a few started one by one.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import psutil

from shiftboss.queue.clients import local
from shiftboss.queue.runtime.__main__ import main
from shiftboss.queue.runtime.config import KeeperConfig
from shiftboss.queue.runtime.executor import die_with_parent
from shiftboss.queue.runtime.ports import QueueClient, Wakeups
from shiftboss.queue.store.statement import Atomic, Verb
from tests.processes import runs

R = TypeVar("R")
POINT, MARK = "KILL_POINT", "KILL_MARK"
CLIENT = "tests.faults.kill_points:connect"
ROOT = Path(__file__).resolve().parents[2]


class Point(NamedTuple):
    """Where a keeper dies: at the n-th time that this verb comes to this side of this statement.

    The statement `commit` is the end of a transaction: before it nothing of it is durable.
    """

    verb: str
    statement: str
    side: str = "after"
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.side} {self.statement} of {self.verb}" + (f", time {self.nth}" if self.nth > 1 else "")


Reached = Callable[[str, str], None]


def marked(verb: Verb[R], reached: Reached) -> Verb[R]:
    """The verb, telling of both sides of its statements, and of its transactions' ends."""
    try:
        wish = next(verb)
        while True:
            if isinstance(wish, Atomic):
                name = "commit"
                wish = Atomic(_until_commit(wish.verb, reached))
            else:
                name = wish.statement.name
                reached(name, "before")
            try:
                reply = yield wish
            except Exception as error:
                wish = verb.throw(error)
            else:
                reached(name, "after")
                wish = verb.send(reply)
    except StopIteration as stop:
        answer: R = stop.value
        return answer
    finally:
        verb.close()


def _until_commit(verb: Verb[R], reached: Reached) -> Verb[R]:
    answer: R = yield from marked(verb, reached)
    reached("commit", "before")
    return answer


def connect(config: KeeperConfig) -> tuple[QueueClient, Wakeups]:
    """As the ordinary client of a keeper, until the point that the environment names."""
    point = Point(*json.loads(os.environ[POINT]))
    seen: Counter[Point] = Counter()

    def die_at(here: Point) -> None:
        seen[here] += 1
        if seen[here] == point.nth and here == point._replace(nth=1):
            Path(os.environ[MARK]).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    class Connection(local.Connection):
        async def run(self, verb: Verb[R]) -> R:
            name = verb.gi_code.co_name
            return await super().run(marked(verb, lambda *side: die_at(Point(name, *side))))

    vars(local)["Connection"] = Connection
    return local.connect(config)


@dataclass(slots=True)
class Mortal:
    """A keeper in a process of its own, and where it has to die, if anywhere."""

    pid: int
    mark: Path

    @property
    def is_dead(self) -> bool:
        """Whether it has come to its point, and ended there."""
        return self.mark.exists() and not _runs(self.pid)

    def kill(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


def _runs(pid: int) -> bool:
    try:
        return runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


class Keepers:
    """Starts keepers; all end with the block. Their output is in the folder, as that of other programs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._mother = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.faults.kill_points"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TEST_LOG": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, config: KeeperConfig, point: Point | None = None) -> Mortal:
        """A keeper that dies at the point, or at none."""
        self._started += 1
        mark = self._folder / f"keeper-{self._started}.dead"
        environment = {}
        if point is not None:
            config = replace(config, client=CLIENT)
            environment = {POINT: json.dumps(point), MARK: str(mark)}
        given = {
            "config": config.to_json(),
            "environment": environment,
            "output": str(mark.with_suffix(".out")),
        }
        assert self._mother.stdin is not None
        assert self._mother.stdout is not None
        self._mother.stdin.write(json.dumps(given) + "\n")
        self._mother.stdin.flush()
        return Mortal(int(self._mother.stdout.readline()), mark)

    def __enter__(self) -> "Keepers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mother.kill()  # and with it all that it has forked
        self._mother.communicate()


def _live(given: dict[str, Any], mother: int) -> int:
    """The life of a keeper."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    die_with_parent(mother)
    os.environ.update(given["environment"])
    output = os.open(given["output"], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    for fd in (1, 2):
        os.dup2(output, fd)
    reader, writer = os.pipe()
    os.write(writer, given["config"].encode())
    os.close(writer)
    return main(reader)


def _serve() -> None:
    """Fork a keeper for each line, and answer with its pid."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # none is left as a zombie
    mother = os.getpid()
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os._exit(_live(json.loads(line), mother))
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
