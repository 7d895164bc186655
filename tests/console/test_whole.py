"""The whole as pages read it: what was seen, how old that is, and what it costs."""

import pytest

from shiftboss.console.whole import whole
from shiftboss.queue.states import State
from tests.console import scenes

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B7", "B8")]


def test_counts_workers_quarantine_and_flow_are_what_verbs_have_made() -> None:
    worker = scenes.worker("default", "mail")
    scenes.heartbeat(worker, in_use=3, lag_ms=40)
    scenes.completed_job(worker)
    scenes.quarantined_job(worker)
    scenes.job(queue="mail")
    scenes.job(queue="mail")
    scenes.claimed(worker, queue="mail")
    seen = whole()
    counts = {(one.queue, one.state): one.jobs for one in seen.counts}
    assert counts == {
        ("default", State.COMPLETED): 1,
        ("default", State.QUARANTINED): 1,
        ("mail", State.AVAILABLE): 1,
        ("mail", State.RUNNING): 1,
    }
    assert (seen.workers.live, seen.workers.slots, seen.workers.in_use) == (1, 8, 3)
    assert seen.workers.lag
    assert seen.workers.lag.lease_seconds == 30.0
    assert seen.workers.queues["mail"].live == 1
    assert (seen.held, seen.held_fresh) == (1, 1)
    assert (seen.flow.came, seen.flow.completed) == (4.0, 1)
    assert [(rate.queue, rate.completed) for rate in seen.rates] == [("default", 1)]
    assert seen.age_seconds is not None
    assert seen.overdue_seconds is None
    assert seen.stuck == 0
