"""What launchers have noted of the programs' lives: when each started, when and how it ended.

The notes of a program that runs as another user are that user's to write. So nothing in them is trusted: what is
not a small file of the right form, or is behind a link, is no note.
"""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from shiftboss.supervisor_conf import places
from shiftboss.supervisor_conf.places import Account
from shiftboss.supervisor_conf.programs import Program, account_of

MOST_BYTES = 4096
MOST_FILES = 200
"""Of one program; its launcher keeps fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """One life of a program. `launcher` is the pid that supervisord knows, times are seconds since 1970.

    `ended` is None for one of which no end is noted: it lives, or its launcher died with it. `code` and `signal`
    say how it ended; both are None where nobody knows.
    """

    program: str
    launcher: int
    pid: int | None
    started: float
    ended: float | None = None
    uptime_seconds: float | None = None
    code: int | None = None
    signal: int | None = None
    peak_memory_kb: int | None = None
    cpu_seconds: float | None = None
    file: Path = field(compare=False)


def folder(home: Path, user: str | None) -> Path:
    """Where launchers that run as this user (None: as supervisord) leave their notes."""
    return home / (f"launched-{user}" if user else "launched")


def make_folders(home: Path, found: Collection[Program]) -> None:
    """Make the folders of notes, each for the user who writes there. Raises PlaceError."""
    places.private_folder(folder(home, None))
    if os.geteuid() != 0:
        return
    for user in {program.user for program in found if program.user}:
        entry = account_of(user)
        places.private_folder(folder(home, user), Account(entry.pw_uid, entry.pw_gid))


def noted(notes: Path, programs: Collection[str]) -> list[Incarnation]:
    """The notes of these programs in a folder, the oldest first."""
    found = [one for program in programs for one in _of_program(notes / program, program)]
    return sorted(found, key=lambda one: (one.started, one.program))


def forget(incarnation: Incarnation) -> None:
    """Remove a note that has been taken."""
    with suppress(OSError):
        incarnation.file.unlink()


def _of_program(notes: Path, program: str) -> Iterator[Incarnation]:
    with suppress(OSError), _opened(notes, os.O_DIRECTORY) as directory:
        names = sorted(name for name in os.listdir(directory) if name.endswith((".running", ".ended")))
        for name in names[:MOST_FILES]:
            with suppress(OSError, ValueError, KeyError), _opened(Path(name), os.O_NONBLOCK, directory) as file:
                found = os.fstat(file)
                if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
                    yield _read(os.read(file, MOST_BYTES).decode(), program, notes / name)


@contextmanager
def _opened(path: Path, flags: int, directory: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(text: str, program: str, file: Path) -> Incarnation:
    said = dict(line.split("=", 1) for line in text.splitlines())
    return Incarnation(
        program=program,
        launcher=_whole(said["launcher"]),
        pid=_whole(said["pid"]) if "pid" in said else None,
        started=_seconds(said["started"]),
        ended=_seconds(said["ended"]) if "ended" in said else None,
        uptime_seconds=_seconds(said["uptime"]) if "uptime" in said else None,
        code=_whole(said["code"]) if "code" in said else None,
        signal=_whole(said["signal"]) if "signal" in said else None,
        peak_memory_kb=_whole(said["peak_kb"]) if "peak_kb" in said else None,
        cpu_seconds=_seconds(said["cpu"]) if "cpu" in said else None,
        file=file,
    )


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise ValueError(text)
    return int(text)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < 2**40:
        raise ValueError(text)
    return value
