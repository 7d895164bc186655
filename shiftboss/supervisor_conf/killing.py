"""Ending at once all that a launcher has started, so that the launcher itself can note how its program ended.

supervisord has one signal for its whole group, after a time that is in the configuration. To have it now, and the
launcher spared, each process is looked up: those of the group, and those below the launcher that left it.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shiftboss.supervisor_conf.taken import with_children


def kill_below(launcher: int) -> None:
    """Kill all that this launcher has started. Raises PermissionError where it is another user's."""
    for pid in {*_group(launcher), *with_children(launcher)} - {launcher}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _group(leader: int) -> Iterator[int]:
    """The processes of the group that supervisord has made of a launcher."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            if int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[2]) == leader:
                yield int(entry.name)
