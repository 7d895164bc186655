"""Lives of programs on their way to the record: a file each, in the order in which they were noticed.

So nothing is lost while the record is away, or when the agent ends between seeing something and telling it.
"""

import json
import time
from contextlib import suppress
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path

from shiftboss.queue.store.processes import Life
from shiftboss.supervisor_conf import places
from shiftboss.supervisor_conf.installation import write_private

MOST_LIVES = 2000
"""More are not remembered; they are counted."""


class Spool:
    """The lives that are still to be noted, in a folder that only its owner can enter."""

    def __init__(self, folder: Path) -> None:
        self._folder = places.private_folder(folder)
        self._waiting = len(self._files())
        self._numbers = count()

    def put(self, life: Life) -> bool:
        """Remember a life; False where there is no room, or none to be had."""
        if self._waiting >= MOST_LIVES:
            return False
        file = self._folder / f"{time.time_ns():020}-{next(self._numbers):06}.json"
        try:
            write_private(file, json.dumps(asdict(life)))
        except OSError:
            return False
        self._waiting += 1
        return True

    def oldest(self, limit: int) -> list[tuple[Path, Life]]:
        """The lives that have waited longest. What cannot be read is removed."""
        found: list[tuple[Path, Life]] = []
        for file in islice(self._files(), limit):
            try:
                found.append((file, Life(**json.loads(file.read_text(encoding="utf-8")))))
            except (OSError, ValueError, TypeError):
                self.drop(file)
        return found

    def drop(self, file: Path) -> None:
        """A life is noted."""
        with suppress(FileNotFoundError):
            file.unlink()
        self._waiting = max(0, self._waiting - 1)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*.json"))
