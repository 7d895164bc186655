"""What befalls workers, the database, the network and the jobs. Each fault is a function of the day.

A fault that lasts for a while says to the day when it ends; others may begin meanwhile.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import psycopg

from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.store import operate, queues
from shiftboss.queue.store.queues import Limit
from tests.faults.chaos.kinds import LIMITED, QUEUES, SYSTEM

if TYPE_CHECKING:
    from tests.faults.chaos.day import Day

Fault = Callable[["Day"], None]
LIMITS = (1, 2, 3)
SWEPT = 12
"""Jobs of one bulk cancel."""

DOWN = (psycopg.Error, StoreUnavailable)
"""What another fault may bring upon this one."""

NAMES = ("", "shiftboss work", "shiftboss heartbeat", "shiftboss listen")


def send(number: int, pids: Iterable[int]) -> None:
    """A signal to each that still is there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


# -- processes ---------------------------------------------------------------------------------------------


def keeper_killed(day: "Day") -> None:
    """Its executors die with it."""
    day.any_worker().process.kill()


def executor_killed(day: "Day") -> None:
    """With all that it runs."""
    with suppress(psutil.NoSuchProcess):
        for executor in day.any_worker().executors()[:1]:
            executor.kill()


def keeper_stopped(day: "Day") -> None:
    """It says nothing for longer than a lease, and goes on then."""
    worker = day.any_worker()
    worker.process.send_signal(signal.SIGSTOP)
    day.later(1.5 * day.lease_seconds, lambda: worker.process.send_signal(signal.SIGCONT))


def host_stopped(day: "Day") -> None:
    """A worker with all its processes: nobody can end its handlers in time. The one excuse for an overlap."""
    worker = day.any_worker()
    worker.process.send_signal(signal.SIGSTOP)  # first: it starts no new ones then
    with suppress(psutil.NoSuchProcess):
        executors = [executor.pid for executor in worker.executors()]
        stopped = [worker.pid, *(sentinel.pid for sentinel in worker.children("sentinel")), *executors]
        day.frozen.update(executors)
        send(signal.SIGSTOP, stopped)
        day.later(1.5 * day.lease_seconds, lambda: send(signal.SIGCONT, stopped))


def worker_replaced(day: "Day") -> None:
    """SIGTERM, and another one in its place at once."""
    day.replace(day.any_worker())


def maintainer_killed(day: "Day") -> None:
    """Another one comes in its place."""
    day.maintainer.process.kill()


# -- the database ------------------------------------------------------------------------------------------


def backends_terminated(day: "Day") -> None:
    """Some of those that are there."""
    day.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend'"
        " and pid <> pg_backend_pid() and random() < 0.3"
    )


def all_backends_terminated(day: "Day") -> None:
    """All of them."""
    day.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend'"
        " and pid <> pg_backend_pid()"
    )


def _restarted(number: int) -> Fault:
    def restart(day: "Day") -> None:
        day.stage.end_server(number)
        time.sleep(day.dice.uniform(0.0, 0.75 * day.lease_seconds))  # the length of the outage
        day.stage.serve()

    return restart


def server_stopped(day: "Day") -> None:
    """All its processes stand still, at times for longer than a lease."""
    with day.stage.standing_still():
        time.sleep(day.dice.uniform(0.5, 1.3 * day.lease_seconds))  # the length of the standstill


# -- the network -------------------------------------------------------------------------------------------


def connections_reset(day: "Day") -> None:
    """Those of one kind, or all."""
    day.stage.road.reset(day.dice.choice(NAMES))


def network_slow(day: "Day") -> None:
    """For a while."""
    day.stage.road.delay(day.dice.uniform(0.005, 0.1))
    day.later(day.dice.uniform(1.0, 5.0), lambda: day.stage.road.delay(0))


def half_open(day: "Day") -> None:
    """One side hears nothing any more. After a while the other one is told, as keepalives would do it."""
    name = day.dice.choice(NAMES)
    day.stage.road.half_open(name, direction=day.dice.choice(("to client", "to server")))
    day.later(2.5 * day.lease_seconds, lambda: day.stage.road.reset(name))


def blackhole(day: "Day") -> None:
    """Nothing passes, at times for longer than a lease."""
    day.stage.road.blackhole(day.dice.choice(NAMES))
    day.later(day.dice.uniform(0.5, 1.5 * day.lease_seconds), day.stage.road.lift)


def answer_lost(day: "Day") -> None:
    """Something is committed, and its answer does not arrive."""
    day.stage.road.lose_answer(day.dice.choice(("claim", "complete", "fail", "snooze", "discard", "heartbeat")))


# -- people ------------------------------------------------------------------------------------------------


def bulk_cancel(day: "Day") -> None:
    """A few of all that wait or run, by one act."""
    with suppress(*DOWN), psycopg.connect(day.dsn, autocommit=True) as connection:
        rows = connection.execute(
            "select id from shiftboss_job where state <> 'quarantined' order by random() limit %s", [SWEPT]
        ).fetchall()
        ids = [id for (id,) in rows]
        day.cancelled.update(ids)  # before: the answer may be lost
        day.act(operate.cancel(ids, authority=SYSTEM))


def queue_paused(day: "Day") -> None:
    """For a while."""
    queue = day.dice.choice(QUEUES)
    day.act(queues.pause(queue, authority=SYSTEM, by="chaos", reason="a fault"))
    day.later(day.dice.uniform(0.5, 4.0), lambda: day.act(queues.resume(queue, authority=SYSTEM)))


def limit_changed(day: "Day") -> None:
    """Of the limited queue."""
    day.act(queues.limit(LIMITED, Limit(day.dice.choice(LIMITS)), authority=SYSTEM, by="chaos"))


def rows_locked(day: "Day") -> None:
    """A user's transaction locks rows of jobs that run, at times for longer than a lease."""
    with suppress(*DOWN):
        connection = psycopg.connect(day.dsn)
        with suppress(psycopg.Error):
            connection.execute(
                "select id from shiftboss_job where state = 'running' order by random() limit %s for update",
                [day.dice.randint(1, 8)],
            )
        day.later(day.dice.uniform(0.5, 1.5 * day.lease_seconds), connection.close)


FAULTS: dict[str, tuple[int, Fault]] = {
    "keeper killed": (2, keeper_killed),
    "executor killed": (3, executor_killed),
    "keeper stopped beyond its lease": (2, keeper_stopped),
    "host stopped beyond its lease": (1, host_stopped),
    "worker told to end and replaced": (2, worker_replaced),
    "maintainer killed": (1, maintainer_killed),
    "some backends terminated": (4, backends_terminated),
    "all backends terminated": (2, all_backends_terminated),
    "server restarted fast": (1, _restarted(signal.SIGINT)),
    "server restarted immediately": (1, _restarted(signal.SIGQUIT)),
    "server killed": (1, _restarted(signal.SIGKILL)),
    "server stood still": (1, server_stopped),
    "connections reset": (4, connections_reset),
    "network slow": (2, network_slow),
    "connections half-open": (3, half_open),
    "network lets nothing pass": (2, blackhole),
    "answer of a commit lost": (3, answer_lost),
    "bulk cancel": (3, bulk_cancel),
    "queue paused": (3, queue_paused),
    "limit changed": (4, limit_changed),
    "running rows locked": (3, rows_locked),
}
"""By name: how often each is in the deck that is dealt, and what it does."""
