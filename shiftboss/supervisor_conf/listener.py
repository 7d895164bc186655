"""The host's agent: sees what supervisord runs here, and tells the record.

It looks each second, and at once where supervisord says that something happened, and remembers what it saw in the
home; telling is another loop, so that a record that is away stops no looking. One agent tells of a host at a time:
the one who holds its lease.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg

from shiftboss.conf import Pool
from shiftboss.queue.authority import System
from shiftboss.queue.clients.local import Connection
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.runtime.loop import Loop, wait_for_event
from shiftboss.queue.store import commands, holds, hosts, processes, rolls
from shiftboss.queue.store.commands import Claim
from shiftboss.queue.store.hosts import Agent
from shiftboss.queue.store.schema import check_schema
from shiftboss.supervisor_conf import incarnations
from shiftboss.supervisor_conf.crash_loops import Rule
from shiftboss.supervisor_conf.events import Events
from shiftboss.supervisor_conf.holds import Holds
from shiftboss.supervisor_conf.orders import OrderFailed, Orders, Say
from shiftboss.supervisor_conf.resources import Resources
from shiftboss.supervisor_conf.rolls import Rolls
from shiftboss.supervisor_conf.scaling import PACE, Scaling
from shiftboss.supervisor_conf.spool import Spool
from shiftboss.supervisor_conf.watch import LOG_SECONDS, Seen, Watch

log = logging.getLogger("shiftboss.listener")

SYSTEM = System()
SESSION = "set timezone = 'UTC'; set jit = off;"
LOOK_SECONDS = 1.0
HINT_SECONDS = 0.1
"""One look is for all events that come within this time."""

WEDGED_SECONDS = 60.0
"""An agent that does not come to look for so long says where it hangs, and ends, to be started anew."""

OBEY_SECONDS = 0.5
LEASE_SECONDS = 10.0
STATEMENT_SECONDS = 3.0
FORGET_SECONDS = 60.0
FAREWELL_SECONDS = 4.0
BATCH = 50

FRESH_SECONDS = 10.0
"""For so long after its end the leases of a worker are believed to tell what it had in hand."""


class Listener:
    """The agent of the host `name`. Each duty is a `run_once()` on the one Loop."""

    def __init__(
        self,
        name: str,
        *,
        hostname: str,
        home: str,
        code_version: str | None,
        dsn: str,
        watch: Watch,
        spool: Spool,
        orders: Orders,
        resources: Resources,
        rule: Rule,
        pools: Mapping[str, Pool],
        takes_events: bool = False,
    ) -> None:
        self._agent = Agent(
            name=name,
            hostname=hostname,
            pid=os.getpid(),
            home=home,
            code_version=code_version,
            lease_seconds=LEASE_SECONDS,
        )
        self._connection = Connection(dsn, name="listener", statement_seconds=STATEMENT_SECONDS, session=SESSION)
        self._watch = watch
        self._spool = spool
        self._orders = orders
        self._holds = Holds(self._connection, host=name, orders=orders, rule=rule)
        self._judged: int | None = None
        self._rolls = Rolls(self._connection, host=name, orders=orders)
        self._scaling = Scaling(self._connection, host=name, orders=orders, pools=pools)
        self._resources = resources
        self._left: dict[str, Any] | None = None
        self._working: dict[asyncio.Task[None], Claim] = {}
        self._said: dict[int, tuple[int, str]] = {}
        self._ended: deque[tuple[int, int, bool, dict[str, Any]]] = deque()
        self._seen = Seen([], "nobody has looked yet")
        self._takes_events = takes_events
        self._stop = asyncio.Event()
        self._look_now, self._tell_now = asyncio.Event(), asyncio.Event()
        self._fence: int | None = None
        self._dropped = 0
        self._has_said_that_it_waits = False

    async def look(self) -> None:
        """See what runs, and remember what is to be told."""
        self._seen = await asyncio.to_thread(self._look)
        if self._seen.lives:
            self._tell_now.set()
        if self._seen.has_more:
            self._look_in(LOG_SECONDS)

    def _look_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._look_now.set)

    def _look(self) -> Seen:
        seen = self._watch.look()
        self._left = self._resources.measure(
            {one["name"]: one["pid"] for one in seen.programs if one["pid"]},
            launcher=next((one["launcher"] for one in seen.programs if one["launcher"]), None),
        )
        for life, note in seen.lives:
            if self._spool.put(life):
                self._watch.told(life)
            else:
                self._dropped += 1
                log.error("life.dropped", extra={"program": life.program, "ending": life.ending})
            if note:
                incarnations.forget(note)
            if life.ended is not None:
                fields = {"program": life.program, "code": life.code, "signal": life.signal, "asked": life.asked}
                log.info("program.ended", extra=fields)
        return seen

    async def tell(self) -> bool:
        """Say that the host lives and what it runs, and note what is remembered."""
        if self._fence is None and not await self._take():
            return False
        fence, name, dropped = self._fence or 0, self._agent.name, self._dropped
        beat = hosts.beat(
            name,
            authority=SYSTEM,
            fence=fence,
            programs=self._seen.programs,
            trouble=self._seen.trouble,
            resources=self._left,
            dropped=dropped,
        )
        if not await self._connection.run(beat):
            return self._lost()
        self._dropped -= dropped
        return await self._note(fence)

    async def _take(self) -> bool:
        self._fence = await self._connection.run(hosts.take(self._agent, authority=SYSTEM))
        if self._fence is None:
            if not self._has_said_that_it_waits:
                self._has_said_that_it_waits = True
                text = "another agent tells of this host; where that is another machine, set SHIFTBOSS_HOST"
                log.warning("listener.waits", extra={"host": self._agent.name, "why": text})
            return False
        self._has_said_that_it_waits = False
        log.info("listener.agent", extra={"host": self._agent.name, "fence": self._fence})
        return True

    def _lost(self) -> bool:
        log.warning("listener.lost", extra={"host": self._agent.name, "fence": self._fence})
        self._fence = None
        self._holds.forget()
        return False

    async def _note(self, fence: int) -> bool:
        """Note what has waited longest; True where more waits."""
        batch = self._spool.oldest(BATCH)
        if not batch:
            return False
        now = time.time()
        lives = [replace(life, is_fresh=now - (life.ended or 0) < FRESH_SECONDS) for _, life in batch]
        try:
            if not await self._note_lives(lives, fence):
                return self._lost()
        except StoreUnavailable:
            raise
        except psycopg.DataError:
            # One of them cannot be held. Rather one less than none any more.
            for life in lives:
                try:
                    await self._note_lives([life], fence)
                except psycopg.DataError as problem:
                    self._dropped += 1
                    log.error("life.refused", extra={"program": life.program, "error": str(problem)[:500]})
        for file, _ in batch:
            self._spool.drop(file)
        self._holds.judge({life.program for life in lives if life.ended is not None})
        return len(batch) == BATCH

    async def _note_lives(self, lives: "list[processes.Life]", fence: int) -> bool:
        noting = processes.note(lives, authority=SYSTEM, host=self._agent.name, fence=fence)
        return await self._connection.run(noting)

    async def obey(self) -> None:
        """Answer, then take what is asked of the host and begin with it: nothing waits for what takes its time."""
        await self._answer()
        room = commands.MOST_AT_ONCE - len(self._working)
        if self._fence is None or room <= 0:
            return
        taking = commands.claim(authority=SYSTEM, host=self._agent.name, fence=self._fence, limit=room)
        for claim in await self._connection.run(taking):
            fields = {"command": claim.id, "verb": claim.verb, "of": claim.program or claim.pool}
            log.info("command.claimed", extra=fields)
            self._begin(claim, self._fence, is_a_persons=True)

    def _begin(self, claim: Claim, fence: int, *, is_a_persons: bool) -> None:
        task = asyncio.create_task(self._carry_out(claim, fence, is_a_persons=is_a_persons))
        self._working[task] = claim
        task.add_done_callback(self._working.pop)

    async def _carry_out(self, claim: Claim, fence: int, *, is_a_persons: bool) -> None:
        def say(text: str) -> None:
            self._said[claim.id] = (fence, text)

        try:
            failed, answer = False, await self._do(claim, fence, say, is_a_persons=is_a_persons)
        except OrderFailed as problem:
            failed, answer = True, {"error": str(problem)}
        except Exception as problem:
            log.exception("command.broken", extra={"command": claim.id})
            failed, answer = True, {"error": f"the agent failed: {type(problem).__name__}"}
        log.info("command.ended", extra={"command": claim.id, "failed": failed})
        self._ended.append((claim.id, fence, failed, answer))

    async def _do(self, claim: Claim, fence: int, say: Say, *, is_a_persons: bool) -> dict[str, Any]:
        """Do it, and what to answer. Raises OrderFailed."""
        name = claim.program or ""
        if self._takes_events and (name, claim.verb) == (f"{self._orders.prefix}listener", "restart"):
            # It ends, and supervisord, which sends it events and so runs it, starts its successor.
            self._stop.set()
            return {"states": {name: "STARTING"}}
        if is_a_persons and claim.verb == "scale":
            await self._keep_count(claim, fence)
        return await asyncio.to_thread(self._orders.carry_out, claim, say)

    async def _answer(self) -> None:
        """Tell how far commands are, and what became of those that have ended."""
        for number, (fence, text) in list(self._said.items()):
            await self._connection.run(commands.say(number, authority=SYSTEM, fence=fence, progress=text))
            self._said.pop(number, None)
        while self._ended:
            number, fence, failed, answer = self._ended[0]
            ending = commands.end(number, authority=SYSTEM, fence=fence, failed=failed, result=answer)
            await self._connection.run(ending)
            self._ended.popleft()

    async def hold(self) -> None:
        """Hold back programs that crash in a loop, and start them again in time."""
        if self._fence is not None and self._fence != self._judged and self._seen.programs:
            # What the agent before this one has noted, it may not have judged.
            self._holds.judge({program["name"] for program in self._seen.programs})
            self._judged = self._fence
        await self._holds.run_once(self._fence)

    async def _keep_count(self, claim: Claim, fence: int) -> None:
        """Keep the count of workers that a person asks for, before anything is done for it."""
        self._orders.check_count(claim.pool or "", claim.count or 0)
        if not await self._scaling.keep(claim, fence):
            raise OrderFailed("another agent has this host by now")

    async def roll(self) -> bool:
        """Do what is next for a rolling restart."""
        return await self._rolls.run_once(self._fence)

    async def scale(self) -> None:
        """Keep pools at their counts, and change these where jobs wait for too long, or none does."""
        fence = self._fence
        if fence is not None and not self._holds.knows(fence):
            await self._holds.run_once(fence)  # else it might start who is held back
        scaled = {claim.pool for claim in self._working.values() if claim.pool}
        for claim in await self._scaling.run_once(fence, held=self._holds.held, scaled=scaled):
            self._begin(claim, fence or 0, is_a_persons=False)

    async def forget(self) -> None:
        """Drop the oldest lives of programs that have had many, their oldest holds, and old commands."""
        if self._fence is not None:
            host, fence = self._agent.name, self._fence
            await self._connection.run(processes.forget(authority=SYSTEM, host=host, fence=fence))
            await self._connection.run(holds.forget_holds(authority=SYSTEM, host=host, fence=fence))
            await self._connection.run(rolls.forget_rolls(authority=SYSTEM, host=host, fence=fence))
            await self._connection.run(commands.forget_commands(authority=SYSTEM, host=host, fence=fence))

    async def run(self) -> None:
        """Do all duties until SIGTERM or SIGINT, or until somebody asks for a successor.

        Raises SchemaTooOld, UnsupportedDatabase.
        """
        stop = self._stop
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        log.info("listener.started", extra={"host": self._agent.name})
        looks = Loop("look", self._look_or_end, every_seconds=LOOK_SECONDS, hint=self._look_now)
        looking = asyncio.create_task(looks.run(stop))
        events = Events(lambda: self._look_in(HINT_SECONDS))
        hinting = [asyncio.create_task(events.run())] if self._takes_events else []
        await self._open(stop)
        loops = (
            Loop("tell", self.tell, every_seconds=LOOK_SECONDS, hint=self._tell_now),
            Loop("obey", self.obey, every_seconds=OBEY_SECONDS),
            Loop("hold", self.hold, every_seconds=LOOK_SECONDS),
            Loop("roll", self.roll, every_seconds=OBEY_SECONDS),
            Loop("scale", self.scale, every_seconds=PACE.look_seconds),
            Loop("forget", self.forget, every_seconds=FORGET_SECONDS),
        )
        tasks = [looking, *(asyncio.create_task(loop.run(stop)) for loop in loops)]
        await stop.wait()
        self._orders.leaving.set()
        await asyncio.wait([*tasks, *self._working], timeout=FAREWELL_SECONDS)
        for task in (*hinting, *tasks):
            task.cancel()
        faulthandler.cancel_dump_traceback_later()
        await self._farewell()
        log.info("listener.stopped")

    async def _look_or_end(self) -> None:
        faulthandler.dump_traceback_later(WEDGED_SECONDS, exit=True)
        await self.look()

    async def _open(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                return await self._connection.run(check_schema())
            except StoreUnavailable as error:
                log.warning("listener.store_unavailable", extra={"error": str(error)})
                await wait_for_event(stop, 2.0)
        return None

    async def _farewell(self) -> None:
        """Tell what has ended meanwhile, and leave the host to the next one. What is not told is remembered."""

        async def leave() -> None:
            await self.look()
            while await self.tell():
                pass
            await self._answer()
            if self._fence is not None:
                await self._connection.run(hosts.leave(self._agent.name, authority=SYSTEM, fence=self._fence))

        try:
            await asyncio.wait_for(leave(), FAREWELL_SECONDS)
        except (StoreUnavailable, TimeoutError, psycopg.Error) as problem:
            log.warning("listener.left_untold", extra={"error": str(problem)})
        await self._connection.close()
