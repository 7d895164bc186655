"""What has cost queues jobs before: stale looks, passes that break off, full counters, jobs that push in."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shiftboss.queue.contract import Lease, Settlement
from shiftboss.queue.jobs import Limits
from shiftboss.queue.states import State
from shiftboss.queue.store import lease, operate, upkeep
from shiftboss.queue.store.enqueue import enqueue
from shiftboss.queue.store.statement import sql_text
from tests.store.conftest import Perform
from tests.store.making import (
    FAILED,
    REPORTS,
    SYSTEM,
    a_worker,
    attempts,
    claim,
    claimed,
    enqueued,
    execute,
    expired,
    live,
    new_job,
    report,
    rows,
    running,
    scalar,
    state,
    wait_for_expiry,
    whole,
)
from tests.store.sessions import Ear, Session
from tests.store.test_locks import locked
from tests.waiting import wait_for

GATE = 47114711


def renewed(held: Lease, keeper: Session, worker: int) -> None:
    """The lease is prolonged."""
    beat = lease.heartbeat([held], authority=SYSTEM, worker_id=worker, lease_seconds=3600)
    assert keeper.run(beat).renewed == {held}


def completed(held: Lease, keeper: Session, worker: int) -> None:
    """The job is done."""
    assert keeper.run(report("complete", held, worker)) == Settlement(settled={held})


def cancelled(held: Lease, keeper: Session, worker: int) -> None:
    """Somebody wants its end, and has it."""
    keeper.run(operate.cancel([held.job_id], authority=SYSTEM))
    assert keeper.run(report("release", held, worker)) == Settlement(settled={held})


def claimed_again(held: Lease, keeper: Session, worker: int) -> None:
    """The job is given back, and another worker's."""
    assert keeper.run(report("release", held, worker)) == Settlement(settled={held})
    [again] = keeper.run(claim(a_worker(), lease_seconds=3600))
    assert again.id == held.job_id


@pytest.mark.requirement("L5", "N14", "L30")
@pytest.mark.parametrize("meanwhile", [renewed, completed, cancelled, claimed_again])
def test_a_reap_that_looked_before_something_happened_does_nothing_after_it(
    meanwhile: Callable[[Lease, Session, int], None], connect: Any, worker: int
) -> None:
    """The reaper's statement is stopped between its snapshot and its first row, where the lease seems expired."""
    gatekeeper, maintainer, keeper = connect(), connect(), connect()
    text = sql_text("reap")
    for plain, stopped in (
        ("limit %(limit)s", f"limit (select 500 from (select pg_advisory_xact_lock({GATE})) gate)"),
        ("lease_expires_at <= clock_timestamp()", "lease_expires_at <= clock_timestamp() + interval '10 minutes'"),
    ):
        assert text.count(plain) == 1
        text = text.replace(plain, stopped)
    maintainer.execute("set lock_timeout = '60s'")
    [held] = running(worker)
    gatekeeper.execute("select pg_advisory_lock(%s)", [GATE])
    reaped: list[Any] = []
    reaper = threading.Thread(target=lambda: reaped.append(maintainer.execute(text)))
    reaper.start()
    try:
        waits = "select count(*) from pg_stat_activity where pid = %s and wait_event = 'advisory'"
        wait_for(lambda: scalar(waits, maintainer.pid) == 1, seconds=20, every=0.005)
        meanwhile(held, keeper, worker)
        before = whole(held.job_id)
    finally:
        gatekeeper.execute("select pg_advisory_unlock(%s)", [GATE])
        reaper.join(30)
    assert reaped == [[]]
    assert whole(held.job_id) == before


@pytest.mark.requirement("N14", "L30")
def test_a_reap_that_breaks_off_leaves_all_to_the_next(connect: Any, worker: int) -> None:
    first, second = connect(), connect()
    lost = [expired(worker) for _ in range(3)]
    first.execute("begin")
    assert len(first.run(upkeep.reap(authority=SYSTEM))) == 3
    # Nobody waits for it, and it leaves nothing behind: no row, no key, no lock.
    assert second.run(upkeep.reap(authority=SYSTEM)) == []
    execute("select pg_terminate_backend(%s)", first.pid)
    found: list[int] = []

    def all_found() -> bool:
        found.extend(job.id for job in second.run(upkeep.reap(authority=SYSTEM)))
        return len(found) == 3

    wait_for(all_found, seconds=20)
    assert sorted(found) == [one.job_id for one in lost]
    assert [len(attempts(job_id)) for job_id in found] == [1, 1, 1]


@pytest.mark.requirement("N14", "L2")
def test_jobs_of_a_worker_that_the_record_has_forgotten_are_reaped_like_others(
    perform: Perform, worker: int, other: int
) -> None:
    mine, yours = expired(worker), expired(other)
    execute("delete from shiftboss_worker where id = %s", worker)
    assert [job.id for job in perform(upkeep.reap(authority=SYSTEM))] == [mine.job_id, yours.job_id]


@pytest.mark.requirement("L1")
def test_no_number_of_the_record_ends_with_31_bits() -> None:
    narrow = (
        "select sequencename from pg_sequences"
        " where sequencename like 'shiftboss%%' and data_type::text <> 'bigint'"
        " union all "
        "select table_name || '.' || column_name from information_schema.columns"
        " where table_name like 'shiftboss%%' and (column_name = 'id' or column_name like '%%\\_id' or"
        " column_name = 'fence') and data_type in ('integer', 'smallint')"
        # People are numbered by the project's own model.
        " and column_name <> 'user_id'"
    )
    assert rows(narrow) == []


@pytest.mark.requirement("L5", "L29")
def test_a_job_whose_counters_are_full_holds_nobody_up(perform: Perform, worker: int) -> None:
    most = 2**31 - 1

    def full(due: str) -> int:
        [job_id] = enqueued(failure_limit=most, loss_limit=most)
        set_to = "set failures = %s, losses = %s, event_seq = %s, due_at = now() - %s::interval where id = %s"
        execute(f"update shiftboss_job {set_to}", most - 1, most - 1, most - 1, due, job_id)
        return job_id

    first = full("1 hour")
    others = enqueued(3)
    jobs = perform(claim(worker, n=10))
    assert [job.id for job in jobs] == [first, *others]
    leases = [job.lease for job in jobs]
    assert perform(report("fail", leases, worker)) == Settlement(settled=set(leases))
    assert [state(job_id) for job_id in (first, *others)] == ["quarantined", *["retryable"] * 3]
    second = full("1 hour")
    late = [one.lease for one in claimed(worker, lease_seconds=0.01)]
    late += running(worker, 3, lease_seconds=0.01)
    assert late[0].job_id == second
    for one in late:
        wait_for_expiry(one)
    assert len(perform(upkeep.reap(authority=SYSTEM))) == 4
    assert [state(one.job_id) for one in late] == ["quarantined", *["retryable"] * 3]


@pytest.mark.requirement("P2", "L30")
def test_who_asks_for_a_key_does_not_wait_for_a_transaction_that_locks_its_holder(
    connect: Any, worker: int
) -> None:
    producer = connect()
    producer.execute("set lock_timeout = '300ms'")
    [held] = running(worker, key="report")
    with locked(held.job_id):
        answer = producer.run(enqueue(new_job(key="report"), authority=SYSTEM))
    assert (answer.id, answer.existing) == (held.job_id, True)


@pytest.mark.requirement("L5", "N14")
def test_urgent_jobs_of_a_dead_worker_are_the_next_to_run(perform: Perform, worker: int, other: int) -> None:
    urgent = running(worker, 5, priority=100, lease_seconds=0.01)
    enqueued(20)
    for one in urgent:
        wait_for_expiry(one)
    perform(upkeep.reap(authority=SYSTEM))
    perform(upkeep.stage(authority=SYSTEM))
    assert [job.id for job in perform(claim(other, n=5))] == [one.job_id for one in urgent]


@pytest.mark.requirement("L5", "N14")
def test_jobs_that_fail_at_once_go_behind_those_that_were_due_before(perform: Perform, worker: int) -> None:
    failing = running(worker, 8)
    fresh = enqueued(20)
    at_once = [(one, replace(FAILED, backoff_seconds=0.0)) for one in failing]
    perform(lease.fail(at_once, authority=SYSTEM, worker_id=worker))
    perform(upkeep.stage(authority=SYSTEM))
    order = [job.id for job in perform(claim(worker, n=28))]
    assert order == [*fresh, *(one.job_id for one in failing)]


@pytest.mark.requirement("L29", "B5")
def test_acts_on_many_look_at_neither_tasks_nor_arguments(perform: Perform, worker: int) -> None:
    """One job of a task that is gone, one whose arguments nobody can read: the others do not mind."""
    held = running(worker, 5, failure_limit=1)
    ids = [one.job_id for one in held]
    execute("update shiftboss_job set task = 'gone.for.good' where id = %s", ids[1])
    execute("""update shiftboss_job set args = '"no arguments at all"' where id = %s""", ids[3])
    perform(report("fail", held, worker))
    limits = Limits(failures=3, losses=3, by_task={})
    reinstated = perform(operate.reinstate(ids, authority=SYSTEM, by="kim", limits=limits))
    assert [one.id for one in reinstated.changed] == ids
    perform(operate.quarantine(ids, authority=SYSTEM, by="kim"))
    assert [one.id for one in perform(operate.discard(ids, authority=SYSTEM)).changed] == ids


@pytest.mark.requirement("C1", "P9")
def test_the_longest_name_of_a_queue_fits_into_a_notification(ear: Ear, perform: Perform) -> None:
    queue = "\N{PARTY POPPER}" * 100
    a_worker(queue, idle=True)
    perform(enqueue(new_job(queue=queue, args=f'{{"args": ["{"x" * 9000}"], "kwargs": {{}}}}'), authority=SYSTEM))
    assert ear.heard() == f"0 {queue}"


@pytest.mark.requirement("L19", "L29")
@pytest.mark.parametrize("verb", [verb for verb in REPORTS if verb != "complete"])
def test_every_end_but_a_completion_leaves_one_attempt_that_says_how(
    verb: str, perform: Perform, worker: int
) -> None:
    [held] = running(worker)
    perform(report(verb, held, worker))
    [attempt] = attempts(held.job_id)
    words = {"fail": "failed", "reap_own": "lost"}
    assert attempt["outcome"] == words.get(verb, f"{verb.rstrip('e')}ed")
    assert (attempt["fence"], attempt["worker_id"]) == (held.fence, worker)
    row = live(held.job_id)
    assert row is None or State(row["state"]) is not State.RUNNING
