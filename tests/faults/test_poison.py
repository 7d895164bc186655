"""A job that kills its process, and those beside it."""

import pytest

from shiftboss.queue.states import State
from tests.faults.audit import audit
from tests.faults.harm import tasks as harm
from tests.faults.witness import tasks as witness
from tests.runtime.programs import House, attempts, wait_for_state
from tests.waiting import wait_for

APPS = "tests.runtime,tests.faults.witness,tests.faults.harm"
MAX_LOSSES = 3
DEATHS = 1 + MAX_LOSSES
"""One in company, which counts for nobody; from then on it runs alone, and each death counts."""


@pytest.mark.requirement("R6", "L29")
def test_seven_innocents_beside_a_job_that_segfaults_are_run_once_more_and_it_is_held_after_four_deaths(
    house: House,
) -> None:
    # Leases that outlive the test: nothing here is the reaper's work.
    worker = house.worker(
        threads=8, apps=APPS, LEASE_SECONDS=300, HEARTBEAT_SECONDS=1, STAGE_SECONDS=0.02, MAX_LOSSES=MAX_LOSSES
    )
    innocents = [witness.work.enqueue(seconds=600, gate="go").id for _ in range(7)]
    house.wait_for_lines("began", 7)
    poison = harm.segfault.enqueue().id
    wait_for(lambda: attempts(poison), seconds=40)
    (house.folder / "go").touch()
    held = wait_for_state(poison, State.QUARANTINED, seconds=60)
    assert (held.quarantine_reason, held.losses, held.fence) == ("poison", MAX_LOSSES, DEATHS)
    ends = [(attempt.outcome, attempt.error_code, attempt.error_message) for attempt in attempts(poison)]
    assert ends == [("lost", "executor_died", "the executor was killed by SIGSEGV")] * DEATHS
    assert worker.log.read_text().count("executor.died") == DEATHS
    for one in innocents:
        done = wait_for_state(one, State.COMPLETED, seconds=60)
        assert (done.fence, done.losses, done.failures) == (2, 0, 0)
        assert [(attempt.outcome, attempt.error_code) for attempt in attempts(one)] == [("lost", "executor_died")]
    assert audit(house.lines(), house.dsn, [*innocents, poison]) == []
