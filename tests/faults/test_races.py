"""Two workers and one queue; one worker and two leases of one job."""

from collections import Counter

import pytest
from django.db import connection, transaction

from shiftboss.queue.authority import System
from shiftboss.queue.contract import Lease
from shiftboss.queue.models import Finished, Worker
from shiftboss.queue.states import State
from shiftboss.queue.store import lease, upkeep
from shiftboss.queue.store.statement import run
from tests.faults.harm import tasks as harm
from tests.runtime import tasks
from tests.runtime.programs import House, copies_of, job, totals, wait_for_state
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


def take_lease(job_id: int) -> None:
    """Let the lease of a job in its first run end, though its worker renews it, and make the job available."""
    worker = job(job_id).worker_id
    assert worker is not None

    def is_out() -> bool:
        answer = run(lease.heartbeat([Lease(job_id, 1)], authority=System(), worker_id=worker, lease_seconds=0.0))
        return bool(answer.renewed)

    wait_for(is_out, seconds=20)
    wait_for(lambda: run(upkeep.reap(authority=System())), seconds=20)
    wait_for(lambda: run(upkeep.stage(authority=System())), seconds=20)


@pytest.mark.requirement("L2", "L4", "N11")
def test_a_worker_that_gets_a_job_again_which_it_still_runs_hears_that_it_has_lost_the_first_lease(
    house: House,
) -> None:
    house.worker(
        threads=2, LEASE_SECONDS=600, HEARTBEAT_SECONDS=2, apps="tests.runtime,tests.faults.harm", REAP_SECONDS=600
    )
    first = int(harm.listen_at_first.enqueue().id)
    house.wait_for_lines("began", 1)
    take_lease(first)
    done = wait_for_state(first, State.COMPLETED)
    assert (done.fence, done.losses) == (2, 1)
    wait_for(lambda: house.wrote("heard-lease_lost") == {f"{first}.1": 1}, seconds=20)
