"""Carrying out what was asked of this host: each order is checked against the host's own settings and programs.

Nothing in an order is a path or a command line: a verb of a few, and a name that is looked up here.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiftboss.queue.errors import ShiftbossError
from shiftboss.queue.store.commands import Claim
from shiftboss.supervisor_conf import control
from shiftboss.supervisor_conf.killing import kill_below
from shiftboss.supervisor_conf.watch import is_launcher

POLL_SECONDS = 0.1
REMEMBERED = 1000
START_SECONDS = 60.0
"""A program is given so long to be running; most wait at the gate, which counts as running."""

KILL_SECONDS = 20.0
"""What is killed is gone at once, but where the kernel holds it, as in a read of a disk that does not answer."""

UNTOUCHABLE = {
    "listener": "it is the one that does what is asked here: restart it on its host",
    "postgres": "it holds the record itself: stop it on its host, with all that needs it",
}
"""Programs that are neither drained, stopped, killed nor restarted from afar, and why."""

Say = Callable[[str], None]


class OrderFailed(ShiftbossError):
    """What was asked cannot be done, or did not come about; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """Carries out orders over a supervisord's socket, in any thread and several at once.

    `counts` is how many workers each pool may have at most, `stop_seconds` how long a program may take to stop,
    `log_of` gives the last lines of a log, `prefix` is what the names of our programs begin with.
    """

    socket: Path
    home: Path
    counts: Mapping[str, int]
    stop_seconds: float
    log_of: Callable[[Path], str | None]
    prefix: str = ""
    stopped: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Programs, with the pids that supervisord knows, that were stopped because somebody had asked for it."""
    leaving: threading.Event = field(default_factory=threading.Event)
    """Once it is set nobody waits any more for what takes its time; what was begun goes on without us."""

    def carry_out(self, claim: Claim, say: Say) -> dict[str, Any]:
        """Do it, saying how far it is; what to answer. Raises OrderFailed."""
        try:
            return self._carry_out(claim, say)
        except (control.SupervisorUnreachable, control.SupervisorRefused) as problem:
            raise OrderFailed(str(problem)) from None

    def _carry_out(self, claim: Claim, say: Say) -> dict[str, Any]:
        if claim.verb == "scale":
            return self._scale(claim.pool or "", claim.count or 0, say)
        name = claim.program or ""
        self._known(name)
        why = UNTOUCHABLE.get(name.removeprefix(self.prefix))
        if why and claim.verb in ("drain", "stop", "kill", "restart"):
            raise OrderFailed(f"{name} cannot be asked to {claim.verb}: {why}")
        match claim.verb:
            case "start":
                return self._start([name], say)
            case "drain":
                return self._stop([name], say)
            case "stop":
                return self._stop([name], say, at_once=True)
            case "kill":
                return self._kill(name, say)
            case "restart":
                self._stop([name], say)
                return self._start([name], say)
            case "tail":
                return self._tail(name)
        raise OrderFailed(f"{claim.verb!r} is nothing that this agent can do")

    def check_count(self, pool: str, count: int) -> None:
        """Raise OrderFailed where a pool of this host may not have so many workers."""
        if pool not in self.counts:
            raise OrderFailed(f"there is no pool {pool!r} in the settings of this host")
        if not 0 <= count <= self.counts[pool]:
            raise OrderFailed(
                f"the pool {pool} may have 0 to {self.counts[pool]} workers here, not {count}: raise its "
                '"max_workers" in SHIFTBOSS["POOLS"]'
            )

    def _scale(self, pool: str, count: int, say: Say) -> dict[str, Any]:
        self.check_count(pool, count)
        known = self._infos()
        wanted = [f"{self.prefix}worker-{pool}-{n}" for n in range(1, self.counts[pool] + 1)]
        if missing := [name for name in wanted[:count] if name not in known]:
            raise OrderFailed(
                f"supervisord does not know {', '.join(missing)} yet: it has to read the new settings"
            )
        more = [name for name in wanted[:count] if known[name]["statename"] not in ("RUNNING", "STARTING")]
        fewer = [name for name in wanted[count:] if name in known and known[name]["pid"]]
        # All at once: who drains takes as long as its runs do.
        for name in more:
            self.begin_start(name)
        states = self._stop(fewer, say)["states"] | self._started(more, say)["states"]
        return {"started": more, "stopped": fewer, "states": states}

    def _start(self, names: Sequence[str], say: Say) -> dict[str, Any]:
        for name in names:
            self.begin_start(name)
        return self._started(names, say)

    def _started(self, names: Sequence[str], say: Say) -> dict[str, Any]:
        def running(infos: Mapping[str, Mapping[str, Any]]) -> bool:
            states = {name: infos[name]["statename"] for name in names}
            for name, state in states.items():
                if state in ("FATAL", "BACKOFF") or (state == "EXITED" and infos[name]["exitstatus"]):
                    raise OrderFailed(f"{name} does not stay up: see its log")
            return all(state in ("RUNNING", "EXITED") for state in states.values())

        return self._until(running, names, say, "start", START_SECONDS)

    def _stop(self, names: Sequence[str], say: Say, *, at_once: bool = False) -> dict[str, Any]:
        """Stop programs and leave them down. A worker finishes what it runs; `at_once` it gives that back."""
        infos = self._infos()
        for name in names:
            self._begin_stop(name, int(infos[name]["pid"]))
        if at_once:
            # A second signal shortens a worker's wait; supervisord itself sends no more than one.
            for name in names:
                launcher = int(self._infos()[name]["pid"])
                if launcher and is_launcher(launcher):
                    with suppress(ProcessLookupError):
                        os.kill(launcher, signal.SIGTERM)

        def down(infos: Mapping[str, Mapping[str, Any]]) -> bool:
            return not any(infos[name]["pid"] for name in names)

        return self._until(down, names, say, "stop", self.stop_seconds)

    def _kill(self, name: str, say: Say) -> dict[str, Any]:
        """End a program at once that was asked to stop and has not yet."""
        info = self._known(name)
        if info["statename"] != "STOPPING":
            raise OrderFailed(
                f"{name} is {info['statename'].lower()}: only what is asked to stop, and does not, is killed"
            )
        launcher = int(info["pid"])
        # Before anything is looked up below it: below a wrong pid are the programs of others.
        if not launcher or not is_launcher(launcher):
            raise OrderFailed(f"{name} has no launcher that could be seen: what it has started is not known")
        self.stopped.append((name, launcher))

        def is_gone(infos: Mapping[str, Mapping[str, Any]]) -> bool:
            if infos[name]["pid"] != launcher:
                return True
            try:
                kill_below(launcher)
            except PermissionError:
                raise OrderFailed(f"{name} runs as a user whose programs this agent may not kill") from None
            return False

        return self._until(is_gone, [name], say, "end", KILL_SECONDS)

    def _until(
        self,
        condition: Callable[[Mapping[str, Mapping[str, Any]]], bool],
        names: Sequence[str],
        say: Say,
        what: str,
        seconds: float,
    ) -> dict[str, Any]:
        deadline, said = time.monotonic() + seconds, ""
        while True:
            infos = self._infos()
            if gone := [name for name in names if name not in infos]:
                raise OrderFailed(f"{', '.join(gone)} is not among the programs any more")
            if condition(infos):
                return {"states": {name: infos[name]["statename"] for name in names}}
            states = ", ".join(f"{name} is {infos[name]['statename'].lower()}" for name in names)
            if states != said:
                said = states
                say(states)
            if time.monotonic() > deadline:
                raise OrderFailed(f"it did not {what} within {seconds:g} seconds: {states}")
            if self.leaving.wait(POLL_SECONDS):
                raise OrderFailed(f"the agent ends before it is done; what was begun goes on: {states}")

    def _tail(self, name: str) -> dict[str, Any]:
        log = self.log_of(self.home / str(self._known(name)["logfile"]))
        if log is None:
            raise OrderFailed(f"{name} has no log that can be read")
        return {"lines": log.splitlines()}

    def begin_start(self, name: str) -> None:
        """Have supervisord start a program, and do not wait. Raises SupervisorUnreachable, SupervisorRefused."""
        self._call("startProcess", name, may_say="ALREADY_STARTED")

    def begin_stop(self, name: str) -> None:
        """Have it stop a program in order, so that this is an end which was asked for; as `begin_start`."""
        self._begin_stop(name, int(self._known(name)["pid"]))

    def _begin_stop(self, name: str, launcher: int) -> None:
        self.stopped.append((name, launcher))
        self._call("stopProcess", name, may_say="NOT_RUNNING")

    def _call(self, method: str, name: str, *, may_say: str) -> None:
        """Ask without waiting; that it is so already is no error."""
        try:
            control.call(self.socket, method, name, False)
        except control.SupervisorRefused as problem:
            if may_say not in str(problem):
                raise

    def _known(self, name: str) -> Mapping[str, Any]:
        infos = self._infos()
        if name not in infos:
            raise OrderFailed(f"there is no program {name!r} here: there is {', '.join(sorted(infos))}")
        return infos[name]

    def _infos(self) -> dict[str, dict[str, Any]]:
        return control.programs(self.socket, self.prefix)
