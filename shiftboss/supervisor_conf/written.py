"""A configuration for a supervisord, other than that of `shiftboss up`: by which words it is written.

A note of them in the home lets a deploy write the same one by newer settings.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shiftboss.conf import Config
from shiftboss.queue.launch import project_paths, settings_module
from shiftboss.supervisor_conf import incarnations, places, programs, render
from shiftboss.supervisor_conf.installation import Installation, InstallationError, write_private
from shiftboss.supervisor_conf.programs import Program

NOTE = "written.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Programs of `home` for a supervisord of its own, or, with `include`, for one that runs other things too.

    `prefix` is what the names begin with, and `socket` where that supervisord listens, both with `include`. `web`
    is the console's address where it is served too, `env_file` what the programs read when they start.
    """

    home: Path
    include: bool = False
    prefix: str = ""
    socket: Path | None = None
    web: tuple[str, int] | None = None
    env_file: Path | None = None

    @property
    def installation(self) -> Installation:
        """The home, with the settings and the code of this process."""
        host, port = self.web or ("", 0)
        return Installation(
            home=self.home,
            settings=settings_module(),
            path=tuple(dict.fromkeys([*project_paths(), str(places.CODE)])),
            database_url=None,
            embedded=False,
            host=host,
            port=port,
        )

    @property
    def at(self) -> Path | None:
        """Where its supervisord listens, as far as that is known."""
        return self.socket if self.include else render.socket_path(self.home)

    def programs(self, config: Config) -> list[Program]:
        """What is to run by the settings. Raises RenderError."""
        return programs.programs(config, self.installation, web=self.web is not None, listener=self._listener())

    def text(self, found: list[Program]) -> str:
        """The configuration of these programs. Raises RenderError."""
        given = self.installation
        about: dict[str, Any] = {"surroundings": given.surroundings(), "env_file": self.env_file}
        if self.include:
            return render.include(given, found, prefix=self.prefix, **about)
        return render.render(given, found, **about)

    def write(self, file: Path, found: list[Program]) -> None:
        """Write the configuration of these programs, make the places that they need, and note how.

        Raises RenderError, PlaceError, OSError.
        """
        text = self.text(found)
        places.make_home(self.home)
        places.private_folder(self.installation.logs)
        incarnations.make_folders(self.home, found)
        write_private(file, text)
        note = {"file": file, "by": asdict(self)}
        write_private(self.home / NOTE, json.dumps(note, default=str, indent=2) + "\n")

    def _listener(self) -> Sequence[str] | None:
        """The options of the agent; None where there is no supervisord that it could look at."""
        if not self.include:
            return []  # that of the home
        return ["--socket", str(self.socket), f"--prefix={self.prefix}"] if self.socket else None


def load(home: Path) -> tuple[Path, Written] | None:
    """The file that was written last for this home, and how; None where none was. Raises InstallationError."""
    try:
        note = json.loads((home / NOTE).read_text(encoding="utf-8"))
        by = note["by"]
        by |= {name: Path(by[name]) for name in ("home", "socket", "env_file") if by[name] is not None}
        by["web"] = by["web"] and (str(by["web"][0]), int(by["web"][1]))
        return Path(note["file"]), Written(**by)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InstallationError(
            f"{home / NOTE} cannot be read ({error}); `shiftboss_supervisor_conf --output` writes it anew"
        ) from None
