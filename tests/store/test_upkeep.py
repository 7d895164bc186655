"""The upkeep: stage, reap, tasks that nobody knows."""

from typing import Any

import pytest
from django.db import transaction

from shiftboss import Owner
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.states import State
from shiftboss.queue.store import partitions, upkeep, workers
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    SYSTEM,
    TASK,
    a_worker,
    attempts,
    claimed,
    enqueued,
    execute,
    expired,
    live,
    report,
    rows,
    running,
    says,
    scalar,
    state,
    wait_for_expiry,
    whole,
)
from tests.store.sessions import Ear, together
from tests.waiting import wait_for


def now_due(*job_ids: int) -> None:
    """Time passes until these jobs are due."""
    execute("update shiftboss_job set due_at = now() - interval '1 second' where id = any (%s)", list(job_ids))


@pytest.mark.requirement("L5", "P5")
def test_what_is_due_becomes_available_and_the_rest_waits(perform: Perform, worker: int) -> None:
    due, later = enqueued(2, due_in=3600)
    retry = NOT_HELD["retryable"](worker).job_id
    now_due(due, retry)
    before = {job_id: live(job_id) for job_id in (due, later, retry)}
    assert perform(upkeep.stage(authority=SYSTEM)) == 2
    assert live(later) == before[later]
    for job_id in (due, retry):
        assert live(job_id) == (before[job_id] or {}) | {"state": "available"}
    assert perform(upkeep.stage(authority=SYSTEM)) == 0


@pytest.mark.requirement("P5", "C1")
def test_a_scheduled_job_becomes_available_at_its_time_and_wakes_an_idle_worker(
    ear: Ear, perform: Perform
) -> None:
    a_worker(idle=True)
    [job_id] = enqueued(due_in=0.05, priority=9)
    assert state(job_id) == "scheduled"
    wait_for(lambda: perform(upkeep.stage(authority=SYSTEM)), seconds=20)
    assert ear.heard() == "9 default"
    assert state(job_id) == "available"
    assert [job.id for job in claimed(a_worker())] == [job_id]


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("kind", [kind for kind in NOT_HELD if kind not in {"scheduled", "retryable", "missing"}])
def test_staging_leaves_every_other_state_alone(kind: str, perform: Perform, worker: int) -> None:
    held = NOT_HELD[kind](worker)
    before = whole(held.job_id)
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    assert whole(held.job_id) == before


@pytest.mark.requirement("L5")
def test_staging_takes_the_longest_due_first_and_no_more_than_its_limit(perform: Perform) -> None:
    jobs = enqueued(3, due_in=3600)
    now_due(*jobs)
    now_due(jobs[2])
    execute("update shiftboss_job set due_at = due_at - interval '1 hour' where id = %s", jobs[2])
    assert perform(upkeep.stage(authority=SYSTEM, limit=2)) == 2
    assert [state(job_id) for job_id in jobs] == ["available", "scheduled", "available"]


@pytest.mark.requirement("N14", "L19")
def test_an_expired_lease_is_reaped_as_a_loss(perform: Perform, worker: int) -> None:
    held = expired(worker)
    before = live(held.job_id)
    assert before is not None
    [reaped] = perform(upkeep.reap(authority=SYSTEM))
    assert (reaped.id, reaped.state, reaped.fence, reaped.worker_id) == (held.job_id, State.RETRYABLE, 1, worker)
    after = live(held.job_id)
    assert after == before | {
        "state": "retryable",
        "losses": 1,
        "due_at": after["due_at"],
        "worker_id": None,
        "lease_expires_at": None,
        "error_code": "lease_expired",
        "error_message": "the worker stopped renewing its lease",
    }
    assert scalar("select due_at <= clock_timestamp() from shiftboss_job where id = %s", held.job_id)
    [attempt] = attempts(held.job_id)
    assert (attempt["outcome"], attempt["fence"], attempt["worker_id"]) == ("lost", 1, worker)
    assert attempt["error_code"] == "lease_expired"


@pytest.mark.requirement("L29", "L19")
def test_the_last_loss_that_is_allowed_quarantines(perform: Perform, worker: int) -> None:
    held = expired(worker, loss_limit=2)
    perform(upkeep.reap(authority=SYSTEM))
    perform(upkeep.stage(authority=SYSTEM))
    [again] = claimed(worker, lease_seconds=0.01)
    wait_for_expiry(again.lease)
    [reaped] = perform(upkeep.reap(authority=SYSTEM))
    assert reaped.state is State.QUARANTINED
    row = live(held.job_id)
    assert row is not None
    assert (row["quarantine_reason"], row["losses"], row["failures"]) == ("losses_exhausted", 2, 0)
    assert row["quarantined_at"] is not None


@pytest.mark.requirement("N14")
@pytest.mark.parametrize("kind", [kind for kind in NOT_HELD if kind not in {"expired", "missing"}])
def test_reaping_leaves_live_leases_and_every_other_state_alone(kind: str, perform: Perform, worker: int) -> None:
    held = NOT_HELD[kind](worker)
    before = whole(held.job_id)
    assert perform(upkeep.reap(authority=SYSTEM)) == []
    assert whole(held.job_id) == before


@pytest.mark.requirement("N14")
def test_a_reap_takes_no_more_than_its_limit_in_the_order_of_ids(perform: Perform, worker: int) -> None:
    leases = running(worker, 5, lease_seconds=0.01)
    wait_for_expiry(leases[-1])
    assert [job.id for job in perform(upkeep.reap(authority=SYSTEM, limit=3))] == [
        one.job_id for one in leases[:3]
    ]


@pytest.mark.requirement("N14", "B4")
def test_each_job_that_is_reaped_is_told_with_the_lease_that_it_had(perform: Perform, worker: int) -> None:
    again = expired(worker)
    run(upkeep.reap(authority=SYSTEM))
    run(upkeep.stage(authority=SYSTEM))
    held: list[tuple[int, int, int]] = []
    for who in (a_worker(), worker, a_worker()):
        enqueued()
        [job] = claimed(who, lease_seconds=0.01)
        held.append((job.id, job.fence, who))
        wait_for_expiry(job.lease)
    assert held[0][:2] == (again.job_id, 2)
    reaped = perform(upkeep.reap(authority=SYSTEM))
    assert [(job.id, job.fence, job.worker_id) for job in reaped] == held
    for job_id, fence, who in held:
        last = attempts(job_id)[-1]
        assert (last["fence"], last["worker_id"]) == (fence, who)


@pytest.mark.requirement("N14", "L5")
def test_locked_jobs_are_passed_over_by_the_upkeep(connect: Any, worker: int) -> None:
    maintainer = connect()
    held = expired(worker)
    [due] = enqueued(due_in=3600)
    now_due(due)
    with transaction.atomic():
        execute("select from shiftboss_job for update")
        # Waiting for a lock would be an error at once.
        maintainer.execute("set lock_timeout = '20ms'")
        assert maintainer.run(upkeep.reap(authority=SYSTEM)) == []
        assert maintainer.run(upkeep.stage(authority=SYSTEM)) == 0
    assert [job.id for job in maintainer.run(upkeep.reap(authority=SYSTEM))] == [held.job_id]
    assert maintainer.run(upkeep.stage(authority=SYSTEM)) == 2


@pytest.mark.requirement("N14", "N2")
def test_two_maintainers_at_one_moment_reap_each_lease_once(connect: Any, worker: int) -> None:
    first, second = connect(), connect()
    leases = running(worker, 60, lease_seconds=0.01)
    wait_for_expiry(leases[-1])

    def reap(session: Any) -> list[int]:
        got: list[int] = []
        while batch := session.run(upkeep.reap(authority=SYSTEM, limit=7)):
            got += [job.id for job in batch]
        return got

    mine, yours = together(lambda: reap(first), lambda: reap(second))
    run(upkeep.reap(authority=SYSTEM))
    assert len(set(mine) | set(yours)) == len(mine) + len(yours)
    assert scalar("select count(*) from shiftboss_attempt") == 60
    assert rows("select distinct losses from shiftboss_job") == [(1,)]


UNKNOWN = "shop.tasks.removed"


def hours_pass() -> None:
    """Jobs have waited and workers have run three hours longer; heartbeats are fresh."""
    execute("update shiftboss_job set due_at = due_at - interval '3 hours'")
    execute("update shiftboss_worker set started_at = started_at - interval '3 hours'")


@pytest.mark.requirement("L1", "L29")
def test_a_task_that_nobody_has_known_for_long_is_held_back(perform: Perform) -> None:
    [unknown] = enqueued(task=UNKNOWN)
    [known] = enqueued()
    a_worker()
    hours_pass()
    assert perform(upkeep.quarantine_unknown(authority=SYSTEM, seconds=600)) == 1
    row = live(unknown)
    assert row is not None
    assert (row["state"], row["quarantine_reason"], row["error_code"]) == ("quarantined", *["unknown_task"] * 2)
    assert UNKNOWN in row["error_message"]
    assert (row["failures"], row["losses"], row["fence"]) == (0, 0, 0)
    assert row["quarantined_at"] is not None
    assert state(known) == "available"
    assert perform(upkeep.quarantine_unknown(authority=SYSTEM, seconds=600)) == 0


@pytest.mark.requirement("L1")
def test_a_rolling_deploy_holds_nothing_back(perform: Perform) -> None:
    [job_id] = enqueued(task=UNKNOWN)
    ask = upkeep.quarantine_unknown

    # Nobody serves the queue at all.
    a_worker("other")
    hours_pass()
    assert perform(ask(authority=SYSTEM, seconds=600)) == 0

    # Workers serve it for less than the time.
    a_worker()
    assert perform(ask(authority=SYSTEM, seconds=600)) == 0

    # A worker that knows it has stopped a moment ago.
    leaving = a_worker(tasks=[UNKNOWN])
    hours_pass()
    says(leaving, state="stopped", tasks=[UNKNOWN])
    assert perform(ask(authority=SYSTEM, seconds=600)) == 0

    # It has been gone for long.
    execute("update shiftboss_worker set heartbeat_at = now() - interval '20 minutes' where id = %s", leaving)
    assert perform(ask(authority=SYSTEM, seconds=600)) == 1
    assert state(job_id) == "quarantined"


@pytest.mark.requirement("L1")
@pytest.mark.parametrize("how", ["draining", "stopped", "not heard of for longer than a lease"])
def test_a_worker_that_serves_no_more_says_nothing_of_what_is_unknown(how: str, perform: Perform) -> None:
    [job_id] = enqueued(task=UNKNOWN)
    leaving = a_worker()
    hours_pass()
    if how in {"draining", "stopped"}:
        says(leaving, state=how)
    else:
        execute("update shiftboss_worker set heartbeat_at = heartbeat_at - interval '31 seconds'")
    assert perform(upkeep.quarantine_unknown(authority=SYSTEM, seconds=600)) == 0
    assert state(job_id) == "available"


@pytest.mark.requirement("L1")
def test_a_job_that_has_waited_for_less_than_the_time_is_not_held_back(perform: Perform) -> None:
    a_worker()
    hours_pass()
    enqueued(task=UNKNOWN)
    assert perform(upkeep.quarantine_unknown(authority=SYSTEM, seconds=600)) == 0


@pytest.mark.requirement("L1")
@pytest.mark.parametrize("kind", [kind for kind in NOT_HELD if kind not in {"available", "missing"}])
def test_only_available_jobs_are_held_back_for_their_task(kind: str, perform: Perform, worker: int) -> None:
    held = NOT_HELD[kind](worker)
    execute("update shiftboss_job set task = %s", UNKNOWN)
    hours_pass()
    before = whole(held.job_id)
    assert perform(upkeep.quarantine_unknown(authority=SYSTEM, seconds=600)) == 0
    assert whole(held.job_id) == before


@pytest.mark.requirement("N4")
def test_owners_do_no_upkeep() -> None:
    owner = Owner("kim")
    for verb in (
        upkeep.stage(authority=owner),
        upkeep.reap(authority=owner),
        upkeep.quarantine_unknown(authority=owner, seconds=1),
        partitions.make_partitions(authority=owner, days_ahead=1),
        workers.forget_workers(authority=owner),
        workers.waiting_tasks(authority=owner, queues=["default"], tasks=[]),
    ):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)


@pytest.mark.requirement("L1")
def test_tasks_that_wait_and_are_not_known_are_named(perform: Perform, worker: int) -> None:
    enqueued(2, task=UNKNOWN)
    enqueued()
    enqueued(task="shop.tasks.elsewhere", queue="other")
    enqueued(task="shop.tasks.later", due_in=3600)
    run(report("release", running(worker), worker))

    def ask(queues: list[str], tasks: list[str]) -> list[str]:
        return sorted(perform(workers.waiting_tasks(authority=SYSTEM, queues=queues, tasks=tasks)))

    assert ask(["default"], [TASK]) == [UNKNOWN]
    assert ask(["default"], []) == sorted([TASK, UNKNOWN])
    assert ask(["default", "other"], [TASK, UNKNOWN]) == ["shop.tasks.elsewhere"]
    assert ask([], []) == []


@pytest.mark.requirement("L1", "P9")
def test_only_the_first_jobs_of_a_queue_are_looked_at_for_tasks_that_nobody_knows(perform: Perform) -> None:
    execute(
        "insert into shiftboss_job (queue, task, args, state, due_at, failure_limit, loss_limit) "
        "select 'default', case when n in (200, 201) then 'nobody.knows_' || n else %s end, '{}', 'available', "
        "now() + n * interval '1 second', 5, 3 from generate_series(1, 400) n",
        TASK,
    )
    assert perform(workers.waiting_tasks(authority=SYSTEM, queues=["default"], tasks=[TASK])) == [
        "nobody.knows_200"
    ]
