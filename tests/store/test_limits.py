"""Limited and sequential queues: never more runs than slots, slots freed by those who took them, the order kept."""

import random
import threading
from typing import Any

import pytest

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.outcomes import Failed
from shiftboss.queue.store import lease as leases
from shiftboss.queue.store import operate, queues, upkeep
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    TASK,
    a_worker,
    claim,
    claimed,
    enqueued,
    execute,
    report,
    rows,
    running,
    scalar,
    state,
    wait_for_expiry,
)
from tests.store.sessions import Session, together
from tests.store.test_upkeep import now_due

pytestmark = pytest.mark.requirement("L6")

SEQUENTIAL = Limit(1, sequential=True)


def limited(concurrency: int | None, queue: str = "default", *, sequential: bool = False) -> None:
    """A queue with a limit that a person has set."""
    run(queues.limit(queue, Limit(concurrency, sequential), authority=SYSTEM, by="kim"))


def slots(queue: str = "default") -> list[tuple[int | None, int | None]]:
    """Who has the slots of a queue: job and fence of each, in order; None and None where it is free."""
    return [
        tuple(row)
        for row in rows("select job_id, fence from shiftboss_slot where queue = %s order by 1, 2", queue)
    ]


def free(n: int) -> list[tuple[None, None]]:
    """So many free slots."""
    return [(None, None)] * n


def ids(jobs: list[Any]) -> list[int]:
    """Their ids, in order."""
    return [job.id for job in jobs]


def test_no_more_jobs_of_a_queue_run_than_its_limit_says(perform: Perform, worker: int, other: int) -> None:
    limited(3)
    jobs = enqueued(5)
    first = perform(claim(worker, n=2))
    second = perform(claim(other, n=5))
    assert (ids(first), ids(second)) == (jobs[:2], jobs[2:3])
    assert perform(claim(worker, n=5)) == []
    assert slots() == [(job.id, job.fence) for job in first + second]
    assert perform(report("complete", first[0].lease, worker)) == Settlement(settled={first[0].lease})
    assert ids(perform(claim(other, n=5))) == jobs[3:4]
