"""A bulk act while workers run. SHIFTBOSS_FAULTS=13 and more: on 100,000 jobs."""

import os

import pytest
from django.db import connection

from shiftboss import enqueue_many
from shiftboss.acts import cancel_matching
from shiftboss.permissions import Person
from shiftboss.queue.authority import System
from shiftboss.queue.states import LIVE, State
from shiftboss.queue.store import audit
from shiftboss.queue.store.operate import Matching
from shiftboss.queue.store.statement import run
from tests.runtime import tasks
from tests.runtime.programs import House, totals
from tests.waiting import wait_for

MORE = int(os.environ.get("SHIFTBOSS_FAULTS", "1"))
JOBS = min(8_000 * MORE, 100_000)


@pytest.mark.requirement("L30", "C4", "B6")
def test_a_bulk_cancel_beside_two_workers_ends_each_job_once_and_is_counted_exactly(house: House) -> None:
    for first in range(0, JOBS, 8_000):
        enqueue_many(
            tasks.nap.with_arguments(number, seconds=0.002) for number in range(first, min(first + 8_000, JOBS))
        )
    with connection.cursor() as cursor:
        cursor.execute("select deadlocks from pg_stat_database where datname = current_database()")
        [deadlocks_before] = cursor.fetchone()
    for _ in range(2):
        house.worker()
    wait_for(lambda: totals()[State.COMPLETED] > 100, seconds=20)
    which = Matching(states=LIVE - {State.QUARANTINED}, queue="default")
    *_, swept = cancel_matching(which, by=Person.of_shell(), reason="a wrong deploy")
    wait_for(lambda: not any(totals()[state] for state in LIVE), seconds=40)
    cancelled, completed = totals()[State.CANCELLED], totals()[State.COMPLETED]
    assert cancelled + completed == JOBS
    assert swept.ended <= cancelled <= swept.ended + swept.requested
    assert run(audit.total(swept.operation, authority=System())) == swept.ended + swept.requested
    # What was cancelled before it began never ran.
    assert sum(house.wrote("began").values()) <= completed + swept.requested
    with connection.cursor() as cursor:
        cursor.execute("select deadlocks from pg_stat_database where datname = current_database()")
        assert cursor.fetchone() == (deadlocks_before,)
