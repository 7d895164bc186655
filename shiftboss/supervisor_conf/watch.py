"""Looking at the programs of a host: what supervisord says of them now, and what their launchers have noted.

Every look reads everything. So nothing depends on word of an event: what happened between two looks stands in the
launchers' notes. What nobody has noted, and supervisord shows gone, has ended in a way that is not known.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shiftboss.queue.store.processes import Life
from shiftboss.supervisor_conf import control, incarnations, launcher
from shiftboss.supervisor_conf.incarnations import Incarnation
from shiftboss.supervisor_conf.taken import NOTHING, Taken

SETTLE_SECONDS = 5.0
"""A program without a note is believed to have no launcher that can write once it has lived so long."""

LOG_SECONDS = 0.3
"""A program's last words are in its log so long after its end at the latest: supervisord writes them there."""

ASKED = frozenset({"STOPPING", "STOPPED"})

Key = tuple[str, int, float]


@dataclass(frozen=True, slots=True)
class Seen:
    """One look: the programs as they are, why supervisord said nothing (None: it did), and what is to be told.

    Beside each life stands the note that is taken once the life is remembered. `has_more` says that one has ended
    so lately that the last words may not be in its log yet.
    """

    programs: list[dict[str, Any]]
    trouble: str | None
    lives: list[tuple[Life, Incarnation | None]] = field(default_factory=list)
    has_more: bool = False


class Watch:
    """Looks at one supervisord.

    `user_of` says as which user a program runs, `pool_of` which pool it is a worker of, `log_of` gives the last
    lines of a log, `stopped` are programs, by name and launcher, that were asked to stop though they may run anew.
    `prefix` is what the names of our programs begin with.
    A look takes a few milliseconds and may be made in any thread, but not in two at once.
    """

    def __init__(
        self,
        socket: Path,
        home: Path,
        *,
        user_of: Callable[[str], str | None],
        pool_of: Callable[[str], str | None],
        log_of: Callable[[Path], str | None],
        stopped: Collection[tuple[str, int]] = (),
        prefix: str = "",
    ) -> None:
        self._socket = socket
        self._home = home
        self._user_of = user_of
        self._pool_of = pool_of
        self._log_of = log_of
        self._stopped = stopped
        self._prefix = prefix
        self._infos: dict[str, dict[str, Any]] = {}
        self._begun: set[Key] = set()
        self._bare: dict[str, Life] = {}
        self._taken = Taken()
        self._pictures: list[dict[str, Any]] = []

    def look(self) -> Seen:
        """What is to be seen now."""
        trouble, is_stopping = None, False
        try:
            self._infos = control.programs(self._socket, self._prefix)
        except control.SupervisorRefused:
            trouble, is_stopping = "supervisord is stopping its programs", True
        except control.SupervisorUnreachable as problem:
            trouble = f"{problem}; what it runs may go on running. Is it up, and may this user open the socket?"
        now = time.time()
        # Read after supervisord was asked, so a launcher that it does not show may have come since.
        notes = self._notes()
        later: set[str] = set()
        told = self._of_notes(notes, now, is_stopping=is_stopping, later=later)
        lives = [one for one in told if one is not None]
        if trouble is None:
            lives += [(life, None) for life in self._of_bare(notes, now)]
            self._pictures = list(self._draw(notes))
        return Seen(self._pictures, trouble, lives, has_more=bool(later))

    def told(self, life: Life) -> None:
        """A life is remembered, and need not be told again."""
        key = _key(life)
        if life.ended is None:
            self._begun.add(key)
        else:
            self._begun.discard(key)

    def _notes(self) -> list[Incarnation]:
        by_user: dict[str | None, list[str]] = {}
        for name in self._infos:
            by_user.setdefault(self._user_of(name), []).append(name)
        return [
            one
            for user, names in by_user.items()
            for one in incarnations.noted(incarnations.folder(self._home, user), names)
        ]

    def _of_notes(
        self, notes: list[Incarnation], now: float, *, is_stopping: bool, later: set[str]
    ) -> Iterable[tuple[Life, Incarnation | None] | None]:
        ended = {(one.program, one.launcher, one.started) for one in notes if one.ended is not None}
        for note in notes:
            if note.program in later:
                continue  # its lives are told in their order
            life = Life(
                program=note.program,
                launcher=note.launcher,
                started=note.started,
                pool=self._pool_of(note.program),
                pid=note.pid,
            )
            if note.ended is not None:
                if not is_stopping and 0 <= now - note.ended < LOG_SECONDS:
                    later.add(note.program)
                    continue
                ending = "signal" if note.signal is not None else "code" if note.code is not None else "unknown"
                yield self._ended(life, note.ended, ending, note, is_stopping=is_stopping), note
            elif _key(life) in ended:
                incarnations.forget(note)
            elif is_launcher(note.launcher):
                yield (life, None) if _key(life) not in self._begun else None
            elif note.file.exists():
                # Its launcher is gone, and would have taken this note away had it lived to the end.
                yield self._ended(life, now, "unknown", note, is_stopping=is_stopping), note

    def _of_bare(self, notes: list[Incarnation], now: float) -> Iterable[Life]:
        """Lives of programs whose launchers cannot write; only what supervisord says is known of them."""
        noted = {(one.program, one.launcher) for one in notes}
        for name, info in self._infos.items():
            pid, before = int(info["pid"]), self._bare.get(name)
            if before and before.launcher != pid:
                del self._bare[name]
                is_known = info["statename"] == "EXITED" and info["exitstatus"] > 0 and not pid
                ended = self._ended(before, now, "unknown", None, is_stopping=False)
                yield replace(ended, ending="code", code=info["exitstatus"]) if is_known else ended
            if (
                pid
                and (name, pid) not in noted
                and now - info["start"] > SETTLE_SECONDS
                and name not in self._bare
            ):
                life = Life(program=name, launcher=pid, started=float(info["start"]), pool=self._pool_of(name))
                self._bare[name] = life
                yield life

    def _ended(self, life: Life, at: float, ending: str, note: Incarnation | None, *, is_stopping: bool) -> Life:
        info = self._infos.get(life.program, {})
        log = self._home / str(info["logfile"]) if info.get("logfile") else None
        return replace(
            life,
            ended=at,
            ending=ending,
            code=note.code if note else None,
            signal=note.signal if note else None,
            asked=is_stopping
            or info.get("statename") in ASKED
            or (life.program, life.launcher) in tuple(self._stopped),
            uptime_seconds=note.uptime_seconds if note and note.ended is not None else max(0.0, at - life.started),
            peak_memory_kb=note.peak_memory_kb if note else None,
            cpu_seconds=note.cpu_seconds if note else None,
            log=self._log_of(log) if log else None,
        )

    def _draw(self, notes: list[Incarnation]) -> Iterator[dict[str, Any]]:
        launchers = {int(info["pid"]) for info in self._infos.values()} - {0}
        own = {
            one.launcher: one.pid for one in notes if one.ended is None and one.pid and one.launcher in launchers
        }
        taken = self._taken.look(own.values())
        for info in self._infos.values():
            launched = int(info["pid"])
            pid = own.get(launched)
            share = taken[pid] if pid else NOTHING
            yield {
                "name": info["name"],
                "state": info["statename"],
                "pid": pid,
                "launcher": launched or None,
                "since": info["start"] if launched else info["stop"] or None,
                "pool": self._pool_of(info["name"]),
                "memory_kb": share.memory_kb,
                "cores": share.cores and round(share.cores, 3),
                "trouble": info["spawnerr"] or None,
            }


def _key(life: Life) -> Key:
    return life.program, life.launcher, life.started


def is_launcher(pid: int) -> bool:
    """Whether this process is a launcher; without /proc, whether there is one of this pid at all."""
    try:
        return os.path.basename(launcher.__file__).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        if Path("/proc/self").exists():
            return False
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False
