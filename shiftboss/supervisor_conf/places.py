"""Where an installation keeps its files, and who may reach them.

The *home* (`.shiftboss/`, or `SHIFTBOSS_HOME`) holds everything. Two things cannot always live there: a
UNIX socket, whose path has little room, and what a server that refuses to run as root has to reach.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from shiftboss.queue.errors import ShiftbossError

CODE = Path(__file__).resolve().parents[2]
"""The folder that `shiftboss` is imported from, for the PYTHONPATH of the programs that we start."""

SHARED = Path("/var/lib/shiftboss")
"""Where files live that `nobody` has to reach and cannot reach in the home. Only root writes there."""

LONGEST_SOCKET_FOLDER = 80
"""Characters. A socket's path has 107 (103 on macOS); the longest name that we put behind it has 20."""


class PlaceError(ShiftbossError):
    """A folder cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Account:
    """The unprivileged user that a server runs as where we are root."""

    uid: int
    gid: int

    def can(self, test: str, path: Path) -> bool:
        """Whether `test -x PATH` (or `-r`) holds for this user, asked by running it as this user."""
        asked = subprocess.run(
            ["test", test, str(path)], user=self.uid, group=self.gid, extra_groups=[], cwd="/", check=False
        )
        return asked.returncode == 0


def unprivileged() -> Account | None:
    """The account for servers that refuse root: `nobody` where we are root, None where we are not."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def dies_with_parent(signal: str) -> list[str]:
    """The words before a command line that make its process get `signal` when its parent dies (Linux)."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", signal] if setpriv else []


def make_home(home: Path) -> None:
    """Make the home for its owner alone; as root others may pass through it, but see nothing."""
    home.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)


def digest(home: Path) -> str:
    """A short name for this home, for what has to live outside of it."""
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:12]


def shared(home: Path) -> Path:
    """This home's folder below `/var/lib/shiftboss`. Not made here."""
    return SHARED / digest(home)


def socket_folder(home: Path) -> Path:
    """The home itself, or a short folder of our own where a socket's path in the home would be too long.

    Raises PlaceError where somebody else already has a folder of that name.
    """
    if len(os.fsencode(home)) <= LONGEST_SOCKET_FOLDER:
        return home
    parent = SHARED if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    if len(os.fsencode(parent)) > LONGEST_SOCKET_FOLDER - 24:
        parent = Path("/tmp")
    return private_folder(parent / f"shiftboss-{digest(home)}")


def private_folder(folder: Path, account: Account | None = None) -> Path:
    """Make a folder that only its owner can enter, or check that it is one. Raises PlaceError."""
    owner = account.uid if account else os.geteuid()
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        if account:
            os.chown(folder, account.uid, account.gid)
    found = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or found.st_uid != owner or found.st_mode & 0o077:
        raise PlaceError(
            f"{folder} must be a folder of mode 0700 owned by uid {owner} "
            f"(it is owned by {found.st_uid}, mode {found.st_mode & 0o7777:04o}); move it away"
        )
    return folder
