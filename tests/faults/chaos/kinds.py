"""Jobs of all kinds, how each may end, and the client that enqueues them whatever the database does."""

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg

from shiftboss.queue.authority import System
from shiftboss.queue.errors import Busy, KeyHeld, StoreUnavailable
from shiftboss.queue.jobs import OnConflict
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.store.enqueue import Enqueued, NewJob, enqueue, enqueue_many
from shiftboss.queue.store.statement import arun

SYSTEM = System()
ENOUGH = 1_000_000
FEW = 3
WITNESS, CHAOS = "tests.faults.witness.tasks.", "tests.faults.chaos.tasks."
DEFAULT, SIDE, LIMITED, LINE = "default", "side", "limited", "line"
QUEUES = (DEFAULT, SIDE, LIMITED, LINE)
KEYS = 12
BATCH = 8


class Kind(NamedTuple):
    """`share` of all jobs; `ends`: states in which a job ends that nobody has cancelled; `fails` with these codes,
    whatever the faults. As long as `failures` and `losses` may be many, faults are nobody's fault."""

    task: str
    share: float
    arguments: Callable[[random.Random], Sequence[Any]] = lambda dice: ()
    queue: str = DEFAULT
    ends: Collection[str] = ("completed",)
    fails: Collection[str] = ()
    failures: int = ENOUGH
    losses: int = ENOUGH
    timeout: float | None = None


def _short(dice: random.Random) -> Sequence[Any]:
    return [round(dice.uniform(0.0, 0.1), 3)]


def _long(dice: random.Random) -> Sequence[Any]:
    return [round(dice.uniform(0.3, 2.0), 2)]


KINDS = {
    "quick": Kind(WITNESS + "work", 0.44),
    "quick on the side": Kind(WITNESS + "work", 0.15, queue=SIDE),
    "slow": Kind(WITNESS + "work", 0.01, _long),
    "coroutine": Kind(WITNESS + "work_in_loop", 0.05, _short),
    "alone": Kind(WITNESS + "work_alone", 0.002),
    "fails at first": Kind(
        WITNESS + "fail_at_first", 0.05, lambda dice: [dice.choice((1, 2))], fails=["handler_raised"]
    ),
    "fails always": Kind(
        CHAOS + "fail_always", 0.01, ends=("quarantined",), fails=["handler_raised"], failures=FEW
    ),
    "puts off": Kind(WITNESS + "put_off_at_first", 0.05, queue=SIDE),
    "gives up": Kind(CHAOS + "give_up", 0.03, ends=("discarded",)),
    "dies once": Kind(CHAOS + "die_once", 0.0006),
    "dies always": Kind(CHAOS + "die_always", 0.0002, ends=("quarantined",), losses=FEW),
    "deaf": Kind(
        CHAOS + "be_deaf", 0.0002, queue=SIDE, ends=("quarantined",), fails=["timeout"], failures=2, timeout=0.7
    ),
    "keyed": Kind(WITNESS + "work", 0.04, _short),
    "limited": Kind(WITNESS + "work", 0.05, _short, LIMITED),
    "in line": Kind(WITNESS + "work", 0.02, queue=LINE),
    "in line, fails at first": Kind(WITNESS + "fail_at_first", 0.003, queue=LINE, fails=["handler_raised"]),
    "goes on": Kind(CHAOS + "go_on", 0.02, fails=["handler_raised", "timeout"], timeout=20),
    "transaction": Kind(CHAOS + "enter", 0.07, fails=["handler_raised", "timeout"], timeout=20),
    "deadline": Kind(WITNESS + "work", 0.01, queue=SIDE, ends=("completed", "cancelled")),
}
ALONE = ("keyed", "deadline")
"""Not enqueued in batches."""


COSTLY = ("alone", "dies always", "deaf")
"""Each job of these takes a process or more."""


def plan(jobs: int, dice: random.Random, *, without: Collection[str] = ()) -> list[str]:
    """So many kinds in an order of chance, each at least once but for those that are left out."""
    among = {name: kind.share for name, kind in KINDS.items() if name not in without}
    whole = sum(among.values())
    kinds = [name for name, share in among.items() for _ in range(max(1, round(jobs * share / whole)))]
    kinds += ["quick"] * (jobs - len(kinds))
    dice.shuffle(kinds)
    return kinds


def made(name: str, dice: random.Random) -> NewJob:
    """A job of this kind; its tag says which."""
    kind = KINDS[name]
    more: dict[str, Any] = {}
    if name == "keyed":
        more["key"] = f"key-{dice.randrange(KEYS)}"
        more["on_conflict"] = dice.choice(list(OnConflict))
    if name == "deadline":
        more["deadline"] = datetime.now(UTC) + timedelta(seconds=dice.uniform(0.5, 10))
    if kind.timeout is not None:
        # A keeper knows it from the revision alone.
        more["revision"] = TaskConfig(
            task=kind.task, isolation="thread", timeout_seconds=kind.timeout, backoff=0.1
        )
    return NewJob(
        queue=kind.queue,
        task=kind.task,
        args=json.dumps({"args": [*kind.arguments(dice)], "kwargs": {}}),
        failure_limit=kind.failures,
        loss_limit=kind.losses,
        tags=(name,),
        **more,
    )


class Client:
    """Enqueues the plan within so many seconds, by a road that may break, and knows what was committed.

    `committed`: in the order of the answers. What a client did not hear the answer of may be there as well, and is
    enqueued once more.
    """

    def __init__(self, dsn: str, kinds: Sequence[str], *, seconds: float, dice: random.Random) -> None:
        self._dsn, self._kinds, self._seconds, self._dice = dsn, kinds, seconds, dice
        self._place = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.committed: list[int] = []
        self.met: Counter[str] = Counter()

    @property
    def done(self) -> bool:
        """Whether all of the plan has been enqueued."""
        return self._place >= len(self._kinds)

    @contextmanager
    def going_on(self) -> Iterator["Client"]:
        """Enqueue for the length of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(60)

    def _work(self) -> None:
        began = time.monotonic()
        while not self.done and not self._stop.is_set():
            try:
                asyncio.run(self._connected(began))
            except (psycopg.Error, StoreUnavailable, TimeoutError) as error:
                self.met[type(error).__name__] += 1
                self._stop.wait(0.1)

    async def _connected(self, began: float) -> None:
        async with await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, connect_timeout=2, application_name="load"
        ) as connection:
            while not self.done and not self._stop.is_set():
                batch = self._kinds[self._place : self._place + BATCH]
                await self._enqueue([name for name in batch if name not in ALONE], connection)
                for name in batch:
                    if name in ALONE:
                        await self._enqueue_alone(name, connection)
                self._place += len(batch)
                ahead = self._place * self._seconds / len(self._kinds) - (time.monotonic() - began)
                if ahead > 0:
                    await asyncio.sleep(min(ahead, 1.0))

    async def _enqueue(self, names: Sequence[str], connection: Any) -> None:
        if names:
            verb = enqueue_many([made(name, self._dice) for name in names], authority=SYSTEM)
            self._note(await asyncio.wait_for(arun(verb, connection), 5))

    async def _enqueue_alone(self, name: str, connection: Any) -> None:
        try:
            verb = enqueue(made(name, self._dice), authority=SYSTEM)
            self._note([await asyncio.wait_for(arun(verb, connection), 5)])
        except (KeyHeld, Busy) as error:
            self.met[type(error).__name__] += 1

    def _note(self, enqueued: Sequence[Enqueued]) -> None:
        for one in enqueued:
            if one.existing:
                self.met["existing"] += 1
            else:
                self.committed.append(one.id)
