"""Two workers and one queue."""

from collections import Counter

import pytest
from django.db import connection, transaction

from shiftboss.queue.models import Finished, Worker
from shiftboss.queue.states import State
from tests.runtime import tasks
from tests.runtime.programs import House, copies_of, totals
from tests.waiting import wait_for

JOBS = 5_000
ROUNDS = 20


@pytest.mark.requirement("C1", "L2", "L27")
def test_two_workers_share_5000_jobs_in_each_of_20_rounds_and_none_runs_twice(house: House) -> None:
    """Acceptance: each job claimed once, each process wins at least a fifth, log and record agree."""
    house.worker(), house.worker()
    first, second = Worker.objects.values_list("id", flat=True)
    for number in range(ROUNDS):
        wait_for(lambda: Worker.objects.filter(idle=True).count() == 2, seconds=20)
        with transaction.atomic():  # the barrier: all become available, and both are woken, at one commit
            copies_of(tasks.note.enqueue(0).id, JOBS - 1)
        wait_for(lambda: totals() == {State.COMPLETED: JOBS}, seconds=60)
        record = Counter(Finished.objects.values_list("worker_id", flat=True))
        assert set(record) == {first, second}
        assert min(record.values()) >= JOBS / 5, (number, record)
        assert Finished.objects.filter(fence=1).count() == JOBS
        ran = house.wrote("ran")
        assert len(ran) == JOBS
        assert set(ran.values()) == {number + 1}
        with connection.cursor() as cursor:
            cursor.execute("truncate shiftboss_finished")
