"""The whole as pages read it: what was seen, how old that is, and what it costs."""

import pytest

from shiftboss.console.whole import whole
from shiftboss.queue.states import State
from shiftboss.queue.store import samples
from shiftboss.queue.store.samples import Part
from shiftboss.queue.store.statement import run
from tests.console import scenes
from tests.store.making import execute

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


def test_of_many_available_jobs_the_full_count_tells_and_before_it_there_are_at_least_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "WAITS_CAP", 2)
    for _ in range(3):
        scenes.job()
    scenes.job(queue="mail")
    with scenes.maintained():
        counts = {one.queue: one for one in whole().counts}
        assert (counts["default"].jobs, counts["default"].capped) == (3, False)
        assert (counts["mail"].jobs, counts["mail"].capped) == (1, False)
        execute("delete from shiftboss_sample where part = 'counts'")
        [default, _mail] = whole().counts
        assert (default.jobs, default.capped) == (2, True)
        assert default.oldest_seconds


def test_what_is_seen_apart_is_fresher_than_the_full_count() -> None:
    worker = scenes.worker()
    scenes.job()
    scenes.job(queue="mail")
    with scenes.maintained():
        scenes.claimed(worker)
        execute("delete from shiftboss_job where queue = 'mail'")
        execute("update shiftboss_sample set at = 'epoch' where part in ('waits', 'leases')")
        for part in (Part.WAITS, Part.LEASES):
            assert run(samples.look(part, authority=scenes.SYSTEM))
        assert [(one.queue, one.state, one.jobs) for one in whole().counts] == [("default", State.RUNNING, 1)]
