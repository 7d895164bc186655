"""Reads: who sees what."""

from datetime import timedelta
from typing import Any

import pytest

from shiftboss import Owner, System
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.states import State, Verb
from shiftboss.queue.store import lease, read, upkeep
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    TASK,
    a_worker,
    claimed,
    enqueued,
    execute,
    expired,
    report,
    running,
    says,
)

KIM, LEE = Owner("kim"), Owner("lee")


def a_life(worker: int, owner: Owner) -> list[int]:
    """Jobs of one owner: one waits, one failed and then was done, one was refused to another worker."""
    done, refused, waits = enqueued(3, authority=owner, failure_limit=2)
    [first, second] = claimed(worker, 2)
    run(report("fail", first.lease, worker))
    run(report("complete", second.lease, worker + 1000))
    execute("update shiftboss_job set due_at = now() where id = %s", done)
    run(upkeep.stage(authority=SYSTEM))
    for job in run(
        lease.claim(authority=SYSTEM, worker_id=worker, queue="default", tasks=[TASK], limit=10, lease_seconds=30)
    ):
        if job.id == done:
            run(report("complete", job.lease, worker))
        else:
            run(report("release", job.lease, worker))
    return [done, refused, waits]


@pytest.mark.requirement("N4", "N6", "C4")
@pytest.mark.parametrize(
    ("authority", "sees"), [(KIM, True), (LEE, False), (Owner("KIM"), False), (System(), True)]
)
def test_an_owner_sees_its_own_jobs_and_no_others(
    authority: Any, sees: bool, perform: Perform, worker: int
) -> None:
    done, refused, waits = a_life(worker, KIM)
    for job_id in (done, refused, waits):
        assert (perform(read.job(authority=authority, job_id=job_id)) is not None) == sees
    assert bool(perform(read.attempts(authority=authority, job_id=done))) == sees
    assert bool(perform(read.events(authority=authority, job_id=refused))) == sees
    assert bool(perform(read.jobs(authority=authority, state=State.COMPLETED))) == sees
    assert bool(perform(read.jobs(authority=authority, state=State.AVAILABLE))) == sees
    assert bool(perform(read.jobs(authority=authority, state=State.RUNNING, after_id=0))) == sees


@pytest.mark.requirement("N6")
def test_a_watcher_sees_what_it_watches(perform: Perform, worker: int) -> None:
    done, refused, _ = a_life(worker, KIM)
    # No verb grants this yet.
    execute("update shiftboss_job set watchers = '{lee,max}' where id = %s", refused)
    execute("update shiftboss_finished set watchers = '{lee}' where id = %s", done)
    for job_id in (done, refused):
        assert perform(read.job(authority=LEE, job_id=job_id)) is not None
    assert perform(read.attempts(authority=LEE, job_id=done))
    assert perform(read.events(authority=LEE, job_id=refused))
    assert [row.id for row in perform(read.jobs(authority=LEE, state=State.COMPLETED))] == [done]


@pytest.mark.requirement("N4")
def test_workers_are_for_the_system() -> None:
    with pytest.raises(NotAllowed):
        run(read.workers(authority=KIM))


@pytest.mark.requirement("N4")
@pytest.mark.parametrize("authority", [None, "kim", 5])
def test_nobody_reads_without_authority(authority: Any) -> None:
    for verb in (
        read.workers(authority=authority),
        read.jobs(authority=authority, state=State.RUNNING),
        read.job(authority=authority, job_id=1),
        read.attempts(authority=authority, job_id=1),
        read.events(authority=authority, job_id=1),
    ):
        with pytest.raises(TypeError, match="authority must be"):
            run(verb)


@pytest.mark.requirement("C4")
def test_a_live_job_is_told_in_full(perform: Perform, worker: int) -> None:
    [held] = running(worker, authority=KIM, priority=4, failure_limit=7, meta='{"m": 1.50}')
    found = perform(read.job(authority=SYSTEM, job_id=held.job_id))
    assert (found.id, found.queue, found.task, found.state) == (held.job_id, "default", TASK, State.RUNNING)
    assert (found.priority, found.owner, found.failure_limit, found.fence) == (4, "kim", 7, 1)
    assert found.args == '{"args": [1], "kwargs": {"to": "kim"}}'
    assert found.meta == '{"m": 1.50}'
    assert 25 < found.lease_seconds_left <= 30
    assert (found.worker_id, found.finished_at, found.result) == (worker, None, None)
    assert Verb.CANCEL in found.legal_verbs
    assert Verb.REINSTATE not in found.legal_verbs


@pytest.mark.requirement("C4", "R10")
def test_a_finished_job_is_told_in_full(perform: Perform, worker: int) -> None:
    held = NOT_HELD["completed"](worker)
    found = perform(read.job(authority=SYSTEM, job_id=held.job_id))
    assert (found.state, found.result, found.run_ms) == (State.COMPLETED, '{"sum": 3}', 12)
    assert (found.fence, found.worker_id, found.lease_seconds_left) == (1, worker, None)
    assert found.finished_at >= found.started_at >= found.enqueued_at
    assert found.legal_verbs == frozenset()


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("job_id", [0, -1, 2**62])
def test_a_job_that_never_was_is_nothing(job_id: int, perform: Perform) -> None:
    assert perform(read.job(authority=SYSTEM, job_id=job_id)) is None
    assert perform(read.attempts(authority=SYSTEM, job_id=job_id)) == []
    assert perform(read.events(authority=SYSTEM, job_id=job_id)) == []


@pytest.mark.requirement("C4", "L29")
def test_attempts_come_in_the_order_of_their_fences(perform: Perform, worker: int) -> None:
    [job_id] = enqueued()
    for verb in ("fail", "release", "reap_own"):
        execute("update shiftboss_job set state = 'available' where id = %s", job_id)
        [job] = claimed(worker)
        run(report(verb, job.lease, worker))
    found = perform(read.attempts(authority=SYSTEM, job_id=job_id))
    assert [(one.fence, one.outcome) for one in found] == [(1, "failed"), (2, "released"), (3, "lost")]
    assert (found[0].traceback, found[0].error_type, found[2].evidence) == (
        "Traceback…",
        "ValueError",
        '{"signal": 9}',
    )
    assert all(one.worker_id == worker and one.started_at <= one.ended_at for one in found)


@pytest.mark.requirement("B4", "L17")
def test_a_rejected_write_is_told(perform: Perform, worker: int, other: int) -> None:
    [held] = running(worker)
    run(report("complete", held, other))
    [event] = perform(read.events(authority=SYSTEM, job_id=held.job_id))
    assert (event.kind, event.seq, event.worker_id, event.fence) == ("write_rejected", 1, other, 1)
    assert '"verb": "complete"' in event.data


@pytest.mark.requirement("C4", "B8")
def test_pages_hold_every_job_once_while_newer_ones_come(perform: Perform) -> None:
    jobs = enqueued(7)
    seen: list[int] = []
    for _ in range(3):
        before_id = seen[-1] if seen else None
        page = perform(read.jobs(authority=SYSTEM, state=State.AVAILABLE, before_id=before_id, limit=3))
        seen += [row.id for row in page]
        enqueued(2)
    assert seen == jobs[::-1]
    back = perform(read.jobs(authority=SYSTEM, state=State.AVAILABLE, after_id=jobs[3], limit=3))
    assert [row.id for row in back] == jobs[6:3:-1]
    assert perform(read.jobs(authority=SYSTEM, state=State.AVAILABLE, before_id=jobs[0])) == []


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("kind", [kind for kind in NOT_HELD if kind not in {"missing", "expired"}])
def test_a_list_holds_jobs_of_its_state_and_queue_only(kind: str, perform: Perform, worker: int) -> None:
    held = NOT_HELD[kind](worker)
    state = State(kind.partition(" ")[0])
    for wanted in State:
        found = perform(read.jobs(authority=SYSTEM, state=wanted))
        assert [row.id for row in found] == ([held.job_id] if wanted is state else [])
    assert perform(read.jobs(authority=SYSTEM, state=state, queue="other")) == []
    [row] = perform(read.jobs(authority=SYSTEM, state=state, queue="default"))
    assert (row.state, row.task) == (state, TASK)


@pytest.mark.requirement("C3", "L7")
def test_workers_are_told_with_the_age_of_their_heartbeat(perform: Perform) -> None:
    alive, late, stopped, long_gone = a_worker("default", "mail"), a_worker(), a_worker(), a_worker()
    says(alive, in_use=3, lag_ms=7)
    says(stopped, state="stopped")
    execute("update shiftboss_worker set heartbeat_at = now() - interval '40 seconds' where id = %s", late)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '61 minutes' where id = %s", long_gone)
    found = {row.id: row for row in perform(read.workers(authority=SYSTEM))}
    assert list(found) == [alive, late, stopped]
    assert [row.alive for row in found.values()] == [True, False, False]
    row = found[alive]
    assert (row.queues, row.tasks, row.slots, row.in_use, row.lag_ms) == (["default", "mail"], 1, 16, 3, 7)
    assert found[late].heartbeat_age_seconds == pytest.approx(40, abs=5)


@pytest.mark.requirement("B3", "L28")
def test_an_expired_lease_shows_how_late_it_is(perform: Perform, worker: int) -> None:
    held = expired(worker)
    found = perform(read.job(authority=SYSTEM, job_id=held.job_id))
    assert found.lease_seconds_left < 0
    assert found.due_at - found.enqueued_at == timedelta(0)
