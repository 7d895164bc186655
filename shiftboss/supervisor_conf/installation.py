"""One installation: which settings, which database, which address. `shiftboss up` notes it in the home.

The note lets other commands, run from the same folder, find what runs. It holds the database's address,
so only its owner may read it.
"""

import json
import os
import secrets
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from shiftboss.queue.errors import ShiftbossError

BUNDLED = "shiftboss.site.settings"
NOTE = "installation.json"


class InstallationError(ShiftbossError):
    """The note of an installation cannot be read; the text names the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """`database_url` is None where the settings name a database of their own, `console` (a path) where their
    URLs do not include the console. `first_command` is a management command with its arguments, run once at every
    start.
    """

    home: Path
    settings: str
    path: tuple[str, ...]
    database_url: str | None
    embedded: bool
    host: str
    port: int
    console: str | None = "/"
    first_command: str = ""

    @property
    def address(self) -> str:
        """The console's address; that of the site where it has none."""
        return f"http://{self.host}:{self.port}{self.console or '/'}"

    @property
    def logs(self) -> Path:
        """The folder of the programs' logs."""
        return self.home / "log"

    def surroundings(self) -> dict[str, str]:
        """What the programs of this installation need in their environment, as far as it is no secret."""
        return {
            "DJANGO_SETTINGS_MODULE": self.settings,
            "PYTHONPATH": os.pathsep.join(self.path),
            "SHIFTBOSS_HOME": str(self.home),
            "SHIFTBOSS_RUN_FOLDER": str(self.home / "run"),
        }

    def environment(self) -> dict[str, str]:
        """What the programs of this installation need in their environment."""
        values = self.surroundings() | {"SHIFTBOSS_SECRET_KEY": secret_key(self.home)}
        return values | ({"DATABASE_URL": self.database_url} if self.database_url else {})

    def activate(self) -> None:
        """Make this process, and what it starts, see the installation's settings and code."""
        os.environ.update(self.environment())
        sys.path[:0] = [entry for entry in self.path if entry not in sys.path]

    def save(self) -> None:
        """Write the note."""
        values = asdict(self) | {"home": str(self.home)}
        write_private(self.home / NOTE, json.dumps(values, indent=2) + "\n")


def home_folder() -> Path:
    """`SHIFTBOSS_HOME`, else `.shiftboss` in the current folder."""
    return Path(os.environ.get("SHIFTBOSS_HOME") or ".shiftboss").absolute()


def load(home: Path) -> Installation | None:
    """The installation noted in this home; None where there is none. Raises InstallationError."""
    try:
        values = json.loads((home / NOTE).read_text(encoding="utf-8"))
        return Installation(**values | {"home": Path(values["home"]), "path": tuple(values["path"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InstallationError(f"{home / NOTE} cannot be read ({error}); `shiftboss up` writes it anew") from None


def secret_key(home: Path) -> str:
    """The installation's own secret key: from the environment, else from a file of mode 0600, made once."""
    if given := os.environ.get("SHIFTBOSS_SECRET_KEY"):
        return given
    file = home / "secret-key"
    if not file.exists():
        write_private(file, secrets.token_urlsafe(50) + "\n")
    return file.read_text(encoding="utf-8").strip()


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read; whole or not at all."""
    write_whole(file, text, mode=0o600)


def write_whole(file: Path, text: str, *, mode: int) -> None:
    """Write a file of this mode; whole or not at all. Its owner is whoever we are."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as output:
        output.write(text)
        os.fchmod(output.fileno(), mode)
    unfinished.replace(file)
