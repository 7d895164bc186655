"""The agent's duty towards programs that crash in a loop: judge them, hold them back, and start them again.

What is decided stands in the record before anything is done, so that an agent that dies leaves nothing down for
good: the next one goes on, and a supervisord that starts anew starts everything that it has. While the record is
away nobody new is held back, and who is held is still started in time.
"""

import asyncio
import logging
import random
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection
from shiftboss.queue.store import holds, processes
from shiftboss.queue.store.holds import Looping, OpenHold
from shiftboss.queue.store.processes import ProcessRow
from shiftboss.supervisor_conf import control, crash_loops
from shiftboss.supervisor_conf.crash_loops import Rule
from shiftboss.supervisor_conf.orders import UNTOUCHABLE, Orders
from shiftboss.supervisor_conf.programs import FIRST_COMMAND

log = logging.getLogger("shiftboss.listener")

SYSTEM = System()

LOOKED_AT = 50
"""So many of the newest lives of a program are judged by."""

LOOKED_AT_BY_POOL = 200
"""And so many of the newest on all hosts, for what one job did to several workers."""

NEVER_HELD = frozenset({*UNTOUCHABLE, FIRST_COMMAND})
"""Programs that are not held back: who would release them, and what runs once."""

GRACE_SECONDS = 5.0
"""So long past its time a hold is left to the record's clock; then it is away."""

UP = frozenset({"STARTING", "RUNNING", "BACKOFF"})
DOWN = frozenset({"STOPPED", "FATAL", "UNKNOWN"})
"""Where supervisord starts a program by itself no more. EXITED is not among them: it is about to."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A hold as this agent knows it, for when the record is away."""

    program: str
    over_at: float


class Holds:
    """Judges and holds back the programs of one host. `run_once()` goes on the one Loop."""

    def __init__(self, connection: Connection, *, host: str, orders: Orders, rule: Rule) -> None:
        self._connection = connection
        self._host = host
        self._orders = orders
        self._rule = rule
        self._to_judge: set[str] = set()
        self._known: dict[int, _Known] = {}
        self._read_under: int | None = None

    @property
    def held(self) -> frozenset[str]:
        """Programs that are held back now, as far as this agent knows: nobody else is to start them."""
        return frozenset(known.program for known in self._known.values())

    def knows(self, fence: int | None) -> bool:
        """Whether it is known under this lease who is held back."""
        return fence is not None and fence == self._read_under

    def judge(self, programs: Collection[str]) -> None:
        """Look at these programs the next time: one of their lives has ended, or this agent is new."""
        names = {name for name in programs if name.removeprefix(self._orders.prefix) not in NEVER_HELD}
        self._to_judge |= names

    def forget(self) -> None:
        """Another one is the host's agent."""
        self._known.clear()

    async def run_once(self, fence: int | None) -> None:
        """Judge what has ended, and see to who is held. Raises StoreUnavailable."""
        await asyncio.to_thread(self._start_in_time)
        if fence is None:
            return
        for program in sorted(self._to_judge):
            await self._judge(program, fence)
            self._to_judge.discard(program)
        rows = await self._connection.run(holds.open_holds(authority=SYSTEM, host=self._host))
        now = time.monotonic()
        self._known = {row.id: _Known(row.program, now + row.seconds_left) for row in rows if row.is_in_force}
        self._read_under = fence
        if rows:
            for row, what in await asyncio.to_thread(self._see_to, rows):
                await self._tell(row, what, fence)

    async def _judge(self, program: str, fence: int) -> None:
        lives = await self._lives(program, limit=LOOKED_AT)
        deaths = [life for life in lives if crash_loops.is_unexpected(life)]
        if not deaths:
            return
        found = await self._connection.run(
            holds.holds(authority=SYSTEM, host=self._host, program=program, limit=1)
        )
        last = found[0] if found else None
        newest = deaths[0]
        ended = await self._lives_of_pool(newest)
        if await self._quarantine(newest, ended, 0 if last is None else last.id, fence):
            return
        looping = crash_loops.loop(lives, last, rule=self._rule, now=datetime.now(UTC))
        await self._take_back(newest, ended, looping.seconds if looping else 0.0, fence)
        if looping is None:
            return
        looping = await self._with_last_words(looping)
        if await self._connection.run(holds.hold(looping, authority=SYSTEM, fence=fence)):
            fields = {"program": program, "ends": looping.evidence["times"], "seconds": looping.seconds}
            log.error("program.held", extra=fields)

    async def _lives_of_pool(self, newest: ProcessRow) -> list[ProcessRow]:
        """Those that have ended of the pool of one that had jobs in hand at its end; else none."""
        if not newest.jobs or not newest.pool:
            return []
        return await self._connection.run(
            processes.lives(authority=SYSTEM, pool=newest.pool, ended=True, logs=False, limit=LOOKED_AT_BY_POOL)
        )

    async def _take_back(
        self, newest: ProcessRow, ended: list[ProcessRow], held_seconds: float, fence: int
    ) -> None:
        """Take jobs back that several deaths had in common, so that they do not all meet again."""
        returning_in = crash_loops.apart(
            newest, ended, rule=self._rule, held_seconds=held_seconds, order=random.shuffle
        )
        if not returning_in or newest.worker_id is None:
            return
        taken = await self._connection.run(
            holds.take_back(
                newest.id,
                returning_in,
                authority=SYSTEM,
                host=self._host,
                fence=fence,
                worker_id=newest.worker_id,
                message="its worker died, as before, with several jobs in hand: it counts against none of them",
            )
        )
        log.warning("jobs.taken_back", extra={"program": newest.program, "jobs": len(taken)})

    async def _quarantine(self, newest: ProcessRow, ended: list[ProcessRow], after: int, fence: int) -> bool:
        """Whether one job was to blame for the newest death and those before, and is quarantined for it."""
        blamed = crash_loops.poison(newest, ended, rule=self._rule)
        if blamed is None:
            return False
        why = await self._with_last_words(crash_loops.to_blame(newest, ended, blamed.job_id, after=after))
        if not await self._connection.run(holds.poison(why, blamed, authority=SYSTEM, fence=fence)):
            return False
        fields = {"job": blamed.job_id, "why": blamed.message, "program": newest.program}
        log.error("job.quarantined", extra=fields)
        return True

    async def _with_last_words(self, looping: Looping) -> Looping:
        told = await self._lives(looping.program, limit=crash_loops.SHOWN_ENDS, logs=True)
        return crash_loops.with_last_words(looping, told)

    async def _lives(self, program: str, *, limit: int, logs: bool = False) -> list[ProcessRow]:
        """The newest of a program that have ended."""
        return await self._connection.run(
            processes.lives(authority=SYSTEM, host=self._host, program=program, ended=True, logs=logs, limit=limit)
        )

    def _see_to(self, rows: list[OpenHold]) -> list[tuple[OpenHold, str]]:
        """Bring programs to where their holds want them; what is to be told of which."""
        try:
            infos = control.programs(self._orders.socket, self._orders.prefix)
            return [
                (row, what)
                for row in rows
                if (what := self._bring(row, infos[row.program]["statename"] if row.program in infos else None))
            ]
        except (control.SupervisorUnreachable, control.SupervisorRefused):
            return []  # it starts everything once it is there again

    def _bring(self, row: OpenHold, state: str | None) -> str | None:
        if not row.is_in_force:
            if state == "STOPPING":
                return None
            if state is not None and state not in UP:
                self._orders.begin_start(row.program)
            return "taken_up"
        if row.was_stopped:
            return "by_others" if state in UP else None
        if state in UP:
            self._orders.begin_stop(row.program)
        return "stopped" if state is None or state in DOWN else None

    async def _tell(self, row: OpenHold, what: str, fence: int) -> None:
        if what == "stopped":
            await self._connection.run(holds.stopped(row.id, authority=SYSTEM, fence=fence))
            return
        by_others = what == "by_others"
        if await self._connection.run(holds.take_up(row.id, authority=SYSTEM, fence=fence, by_others=by_others)):
            self._known.pop(row.id, None)
            log.info("program.let_go", extra={"program": row.program, "by_others": by_others})

    def _start_in_time(self) -> None:
        """Start who is held no more by the clock: the record may be away, and is told once it is there."""
        now = time.monotonic()
        for hold_id, known in list(self._known.items()):
            if known.over_at + GRACE_SECONDS <= now:
                try:
                    self._orders.begin_start(known.program)
                except (control.SupervisorUnreachable, control.SupervisorRefused):
                    continue
                self._known.pop(hold_id, None)
