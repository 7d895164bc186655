"""A limited and a sequential queue under workers that are killed, stopped and continued, looked at all the time.

What is counted is what the database finds valid: running under a lease that has not expired.
"""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psycopg

from shiftboss.queue.authority import System
from shiftboss.queue.store import enqueue, queues
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.statement import run
from tests.runtime.programs import House, Program
from tests.waiting import wait_for

SYSTEM = System()
LIMITED, SEQUENTIAL = "limited", "line"
SETTINGS: dict[str, Any] = {
    "LEASE_SECONDS": 1.5,
    "HEARTBEAT_SECONDS": 0.5,
    "REAP_SECONDS": 0.3,
    "STAGE_SECONDS": 0.1,
}
LOOK_SECONDS = 0.02
ENOUGH = 1_000_000
"""Losses and failures are nobody's fault here: nothing is to end in the quarantine."""

VALID = """
select count(*) filter (where lease_expires_at > clock_timestamp()), count(*)
from shiftboss_job where state = 'running' and queue = %s
"""

LINE = """
select (f.args -> 'args' ->> 0)::integer, r.began, r.ended
from shiftboss_finished f
cross join lateral (
    select f.started_at, f.finished_at
    union all
    select a.started_at, a.ended_at from shiftboss_attempt a where a.job_id = f.id
) r (began, ended)
where f.queue = %s
order by r.began
"""
"""Every run of the line, by the database's clock."""


def put(queue: str, task: str, *args: Any, count: int = 1) -> None:
    """Enqueue jobs of a task of these tests."""
    new = enqueue.NewJob(
        queue=queue,
        task=f"tests.runtime.tasks.{task}",
        args=json.dumps({"args": args, "kwargs": {}}),
        failure_limit=ENOUGH,
        loss_limit=ENOUGH,
    )
    run(enqueue.enqueue_many([new] * count, authority=SYSTEM))


class Look(threading.Thread):
    """Asks the database every 20 ms how many leases of a queue are valid."""

    def __init__(self, dsn: str, queue: str) -> None:
        super().__init__(daemon=True)
        self.counts: Counter[int] = Counter()
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._queue = queue
        self._over = threading.Event()

    def run(self) -> None:
        """Until `end`."""
        due = time.monotonic()
        while not self._over.is_set():
            [valid, _] = self._connection.execute(VALID, [self._queue]).fetchone() or (0, 0)
            self.counts[valid] += 1
            due += LOOK_SECONDS
            self._over.wait(max(0.0, due - time.monotonic()))
        self._connection.close()

    def end(self) -> Counter[int]:
        """Stop; how often so many were valid."""
        self._over.set()
        self.join(30)
        return self.counts


@dataclass(slots=True)
class Pressure:
    """Workers on both queues, and what happens to them."""

    house: House
    workers: int
    concurrency: int = 3
    line: int = 50
    happened: Counter[str] = field(default_factory=Counter)
    _programs: list[Program] = field(default_factory=list)
    _dice: random.Random = field(default_factory=lambda: random.Random(7))

    def run(self, *, blows: int, pause: float) -> dict[str, Any]:
        """Let so many blows fall, wait for all jobs, look for full use; the figures."""
        self._set_up()
        looks = [Look(self.house.dsn, queue) for queue in (LIMITED, SEQUENTIAL)]
        for look in looks:
            look.start()
        began = time.monotonic()
        try:
            for _ in range(blows):
                if self._waiting() < 40:
                    put(LIMITED, "nap", 0, 0.15, count=60)
                self._strike()
                time.sleep(pause)
            struck = time.monotonic() - began
            self._mend()
            wait_for(lambda: not self._left(), seconds=300)
            # Nothing has kept a slot: all are used again, and by jobs that run at the same time.
            put(LIMITED, "nap", 1, 0.5, count=4 * self.concurrency)
            wait_for(lambda: self._taken() == self._valid() == self.concurrency, seconds=60)
            wait_for(lambda: not self._left(), seconds=60)
        finally:
            limited, line = (look.end() for look in looks)
        return {
            "seconds": round(struck),
            "happened": dict(self.happened),
            "looks": sum(limited.values()),
            "valid_leases": dict(sorted(limited.items())),
            "valid_leases_in_line": dict(sorted(line.items())),
            "slots": self._slots(),
            "order": self._order(),
        }

    def _set_up(self) -> None:
        run(queues.limit(LIMITED, Limit(self.concurrency), authority=SYSTEM, by="test"))
        run(queues.limit(SEQUENTIAL, Limit(1, sequential=True), authority=SYSTEM, by="test"))
        for number in range(self.line):
            put(SEQUENTIAL, "in_line", number)
        put(LIMITED, "nap", 0, 0.15, count=60)
        self.house.maintainer(**SETTINGS)
        self._programs = [self._worker() for _ in range(self.workers)]
        wait_for(lambda: all(program.says("executor.ready") for program in self._programs), seconds=180)

    def _worker(self) -> Program:
        return self.house.worker(threads=2, queues=(LIMITED, SEQUENTIAL), wait=False, **SETTINGS)

    def _strike(self) -> None:
        """One blow: a keeper or an executor dies, or a keeper is stopped until its leases have been reaped."""
        place = self._dice.randrange(self.workers)
        program = self._programs[place]
        match self._dice.choice(("keeper", "executor", "stop", "stop")):
            case "keeper":
                program.kill(signal.SIGKILL)
                program.process.wait(30)
                self._programs[place] = self._worker()
                self.happened["keepers killed"] += 1
            case "executor":
                for executor in program.executors()[:1]:
                    os.kill(executor.pid, signal.SIGKILL)
                    self.happened["executors killed"] += 1
            case _:
                # Its handlers end meanwhile: it reports them late.
                program.kill(signal.SIGSTOP)
                threading.Timer(3.5, self._continue, [program]).start()
                self.happened["keepers stopped past their leases"] += 1

    @staticmethod
    def _continue(program: Program) -> None:
        if program.process.poll() is None:
            program.kill(signal.SIGCONT)

    def _mend(self) -> None:
        for place, program in enumerate(self._programs):
            self._continue(program)
            if program.process.poll() is not None:
                self._programs[place] = self._worker()

    def _ask(self, question: str, *params: Any) -> Any:
        with psycopg.connect(self.house.dsn, autocommit=True) as connection:
            [[answer]] = connection.execute(question, params).fetchall()
            return answer

    def _left(self) -> int:
        return int(self._ask("select count(*) from shiftboss_job"))

    def _waiting(self) -> int:
        return int(
            self._ask("select count(*) from shiftboss_job where queue = %s and state = 'available'", LIMITED)
        )

    def _valid(self) -> int:
        return int(self._ask(f"select n from ({VALID}) v (n, m)", LIMITED))

    def _slots(self) -> int:
        return int(self._ask("select count(*) from shiftboss_slot where queue = %s", LIMITED))

    def _taken(self) -> int:
        return int(
            self._ask("select count(*) from shiftboss_slot where queue = %s and job_id is not null", LIMITED)
        )

    def _order(self) -> list[int]:
        """The numbers of the line as their runs began, each once; -1 where two runs were at the same time."""
        order: list[int] = []
        over = None
        with psycopg.connect(self.house.dsn, autocommit=True) as connection:
            for number, began, ended in connection.execute(LINE, [SEQUENTIAL]):
                if over is not None and began < over:
                    order.append(-1)
                if not order or order[-1] != number:
                    order.append(number)
                over = ended
        return order
