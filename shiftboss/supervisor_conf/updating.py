"""Bringing a supervisord that runs to a new configuration, as `supervisorctl update` does, but for the workers.

Workers that are changed stay as they are: a rolling restart starts each of them by the new configuration.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import comparison, control, incarnations, programs, render
from shiftboss.supervisor_conf.foreground import CONFIGURATION
from shiftboss.supervisor_conf.installation import Installation, write_private
from shiftboss.supervisor_conf.programs import Program

POLL_SECONDS = 0.1
LASTING = frozenset({"postgres", programs.FIRST_COMMAND})
"""Programs that are left as they are: all need the one, and the other runs once."""

Say = Callable[[str], None]


class NotUpdated(ShiftbossError):
    """A supervisord could not be brought to the new configuration; the text says how far it is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The configuration that an installation is to have, its programs, and how it differs from what is there."""

    installation: Installation
    text: str
    programs: list[Program]
    difference: str

    def write(self) -> None:
        """Put it in the place of what is there."""
        incarnations.make_folders(self.installation.home, self.programs)
        write_private(self.installation.home / CONFIGURATION, self.text)

    def read_in(self, *, stop_seconds: float, say: Say) -> None:
        """Have supervisord read what is written, and start, stop and start anew what is no worker that goes on.

        Raises NotUpdated, SupervisorUnreachable, SupervisorRefused.
        """
        socket = render.socket_path(self.installation.home)
        changes = control.reload(socket)
        workers = {program.name for program in self.programs if program.pool is not None}
        anew = sorted(changes.changed - workers - LASTING)
        for name in sorted(changes.removed) + anew:
            _end(socket, name, stop_seconds, say)
        for name in anew + sorted(changes.added):
            say(f"{name}: started by the new configuration")
            control.call(socket, "addProcessGroup", name)
        for name in sorted(changes.changed & LASTING):
            say(f"{name}: changed, and left as it is until everything is started anew")


def wanted(installation: Installation, found: list[Program]) -> Wanted:
    """What the installation of `shiftboss up` is to have by the settings. Raises RenderError, NotComparable."""
    text = render.render(installation, found)
    return Wanted(installation, text, found, comparison.of_files({installation.home / CONFIGURATION: text}))


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
