"""What a configuration would change: beside the files that are there, and beside the programs that run."""

from collections.abc import Iterable, Mapping
from difflib import unified_diff
from pathlib import Path

from shiftboss.queue.errors import ShiftbossError
from shiftboss.supervisor_conf import control


class NotComparable(ShiftbossError):
    """A file is there and cannot be read; the text says why."""


def of_files(texts: Mapping[Path, str]) -> str:
    """A unified diff from the files to what they should hold; empty where they hold it. Raises NotComparable."""
    return "".join(_diff(_read(file), text, str(file), "from the settings") for file, text in texts.items())


def of_running(socket: Path, names: Iterable[str]) -> str:
    """A unified diff of names, from the programs that supervisord runs to those that it should.

    Empty where they are the same, or where no supervisord answers.
    """
    try:
        listed = control.call(socket, "getAllProcessInfo")
    except (control.SupervisorUnreachable, control.SupervisorRefused):
        return ""
    running = "".join(sorted(f"{program['name']}\n" for program in listed))
    wanted = "".join(sorted(f"{name}\n" for name in names))
    return _diff(running, wanted, f"programs at {socket}", "from the settings")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as problem:
        raise NotComparable(f"{file} cannot be read: {problem}") from None


def _diff(before: str, after: str, old: str, new: str) -> str:
    return "".join(unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), old, new))
