"""Notes of a keeper's executors in the run folder, so that the next keeper can end what outlived this one.

Executors die with their keeper (PR_SET_PDEATHSIG), and its sentinel ends what they have started; this is for the
rest: a kernel without it, a sentinel that was killed too, a machine that lost the signal.
"""

import json
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path

from shiftboss.queue.runtime import ending
from shiftboss.queue.runtime.ending import start_time

log = logging.getLogger("shiftboss.leftovers")


def private_folder(path: Path) -> Path:
    """The folder, made where it is missing, and only this user's. PermissionError where somebody else has it.

    What the notes name is killed, so nobody else may write them.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(
            f"{path} is not a folder of this user alone: remove it, or set SHIFTBOSS_RUN_FOLDER to a private one"
        )
    return path


class Notes:
    """The notes of one keeper, in a file `keeper-POOL-PID.json`: its mark, its start time and its executors'."""

    def __init__(self, folder: str, *, pool: str, mark: str) -> None:
        safe = "".join(c if c.isalnum() else "_" for c in pool)
        self._folder = private_folder(Path(folder))
        self._path = self._folder / f"keeper-{safe}-{os.getpid()}.json"
        self._prefix = f"keeper-{safe}-"
        self._mark = mark
        self._executors: dict[int, int | None] = {}

    def add(self, pid: int) -> None:
        """Note an executor. Notes are a second net: one that cannot be written stops nothing."""
        self._executors[pid] = start_time(pid)
        self._write()

    def remove(self, pid: int) -> None:
        """Forget an executor that has ended."""
        self._executors.pop(pid, None)
        self._write()

    def clear(self) -> None:
        """All have ended."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        keeper = {"pid": os.getpid(), "started": start_time(os.getpid())}
        fresh = self._path.with_suffix(".new")
        try:
            private_folder(self._folder)
            fresh.write_text(
                json.dumps({"keeper": keeper, "mark": self._mark, "executors": list(self._executors.items())})
            )
            fresh.replace(self._path)
        except OSError as error:
            log.warning("leftovers.not_noted", extra={"error": str(error)})

    def kill_leftovers(self) -> list[int]:
        """End executors of keepers of this pool that are gone, and what these have started; answers the pids."""
        killed: list[int] = []
        for path in self._folder.glob(f"{self._prefix}*.json"):
            try:
                notes = json.loads(path.read_text())
                keeper, mark = notes["keeper"], str(notes.get("mark", ""))
                if keeper["started"] is None or start_time(keeper["pid"]) == keeper["started"]:
                    continue
                alive = [(pid, started) for pid, started in notes["executors"] if started]
                alive = [(pid, started) for pid, started in alive if start_time(pid) == started]
            except (OSError, ValueError, KeyError, TypeError):
                continue  # half-written or not ours; nothing is killed on a guess
            for pid, started in alive:
                ending.end(pid, started=started, mark=None)
            found = [*(pid for pid, _ in alive), *(ending.end_marked(mark) if mark else ())]
            for pid in found:
                log.warning("leftover.killed", extra={"pid": pid})
            killed += found
            path.unlink(missing_ok=True)
        return killed
