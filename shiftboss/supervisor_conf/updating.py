"""Bringing a supervisord that runs to a new configuration, as `supervisorctl update` does, but for the workers.

Workers that are changed stay as they are: a rolling restart starts each of them by the new configuration.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import comparison, control, incarnations, programs, render
from shiftboss.supervisor_conf.foreground import CONFIGURATION
from shiftboss.supervisor_conf.installation import Installation, write_private
from shiftboss.supervisor_conf.programs import Program
from shiftboss.supervisor_conf.written import Written

POLL_SECONDS = 0.1
LASTING = frozenset({"postgres", programs.FIRST_COMMAND})
"""Programs that are left as they are: all need the one, and the other runs once."""

Say = Callable[[str], None]


class NotUpdated(ShiftbossError):
    """A supervisord could not be brought to the new configuration; the text says how far it is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The configuration that the programs of a supervisord are to have, and how it differs from what is there.

    `write` puts it there. `prefix` is what the names of the programs begin with.
    """

    socket: Path
    prefix: str
    programs: list[Program]
    difference: str
    write: Callable[[], None]

    def read_in(self, *, stop_seconds: float, say: Say) -> None:
        """Have supervisord read what is written, and start, stop and start anew what is no worker that goes on.

        Programs whose names do not begin with the prefix are not ours, and left alone.
        Raises NotUpdated, SupervisorUnreachable, SupervisorRefused.
        """
        changes = control.reload(self.socket)
        workers = {self.prefix + program.name for program in self.programs if program.pool is not None}
        lasting = {self.prefix + name for name in LASTING}
        anew = sorted(self._ours(changes.changed) - workers - lasting)
        for name in sorted(self._ours(changes.removed)) + anew:
            _end(self.socket, name, stop_seconds, say)
        for name in anew + sorted(self._ours(changes.added)):
            say(f"{name}: started by the new configuration")
            control.call(self.socket, "addProcessGroup", name)
        for name in sorted(changes.changed & lasting):
            say(f"{name}: changed, and left as it is until everything is started anew")

    def _ours(self, names: Collection[str]) -> set[str]:
        return {name for name in names if name.startswith(self.prefix)}


def of_up(given: Installation, found: list[Program]) -> Wanted:
    """What `shiftboss up` is to run in its home by the settings. Raises RenderError, NotComparable."""
    file, text = given.home / CONFIGURATION, render.render(given, found)

    def write() -> None:
        incarnations.make_folders(given.home, found)
        write_private(file, text)

    return Wanted(render.socket_path(given.home), "", found, comparison.of_files({file: text}), write)


def of_written(file: Path, by: Written, socket: Path, found: list[Program]) -> Wanted:
    """What a file is to have that was written for another supervisord, which listens here.

    Raises RenderError, NotComparable.
    """
    difference = comparison.of_files({file: by.text(found)})
    return Wanted(socket, by.prefix, found, difference, partial(by.write, file, found))


def _end(socket: Path, name: str, seconds: float, say: Say) -> None:
    """Stop a program in order and take it out of supervisord."""
    infos = control.programs(socket)
    if name in infos and infos[name]["pid"]:
        say(f"{name}: stopping")
        control.call(socket, "stopProcess", name, False)
    deadline = time.monotonic() + seconds
    while (info := control.programs(socket).get(name)) and info["pid"]:
        if time.monotonic() > deadline:
            raise NotUpdated(f"{name} did not stop within {seconds:g} seconds: try again once it has")
        time.sleep(POLL_SECONDS)
    control.call(socket, "removeProcessGroup", name)
