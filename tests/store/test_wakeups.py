"""Who is woken: an idle worker when a job becomes available, a waiter when its job has come to rest."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss.queue.authority import System
from shiftboss.queue.contract import Lease
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import awaiting, many, operate, queues, upkeep
from shiftboss.queue.store.enqueue import OnConflict, enqueue, enqueue_many
from shiftboss.queue.store.operate import Limits
from shiftboss.queue.store.statement import Verb, run
from tests.store import making
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    TASK,
    a_worker,
    claim,
    enqueued,
    execute,
    expired,
    new_job,
    report,
    rows,
    running,
    scalar,
    to_be_cancelled,
    wait_for_expiry,
)
from tests.store.sessions import Ear
from tests.store.test_upkeep import hours_pass, now_due

LIMITS = Limits(failures=4, losses=2, by_task={})
LATER = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _running(queue: str, worker: int, **how: Any) -> Lease:
    enqueued(queue=queue, **how)
    [job] = run(claim(worker, queue=queue))
    return job.lease


def _later(queue: str) -> int:
    return enqueued(queue=queue, due_in=3600)[0]


def _stage(queue: str, worker: int) -> Verb[Any]:
    now_due(_later(queue))
    return upkeep.stage(authority=SYSTEM, limit=1)


def _stage_follow_up(queue: str, worker: int) -> Verb[Any]:
    holder = _running(queue, worker, key=queue)
    enqueued(queue=queue, key=queue, follow_up=True)
    run(report("complete", holder, worker))
    return upkeep.stage(authority=SYSTEM, limit=1)


def _reinstate(queue: str, worker: int) -> Verb[Any]:
    held = _running(queue, worker, failure_limit=1)
    run(report("fail", held, worker))
    return operate.reinstate([held.job_id], authority=SYSTEM, by="kim", limits=LIMITS)


def _rerun(queue: str, worker: int) -> Verb[Any]:
    held = _running(queue, worker)
    run(report("complete", held, worker))
    return operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS)


def _rerun_many(queue: str, worker: int) -> Verb[Any]:
    held = _running(queue, worker)
    run(report("complete", held, worker))
    standings = run(many.named([held.job_id], authority=SYSTEM))
    return many.rerun(standings, authority=SYSTEM, limits=LIMITS)


def _edit(queue: str, worker: int) -> Verb[Any]:
    held = _running(queue, worker)
    run(report("complete", held, worker))
    return operate.edit(held.job_id, authority=SYSTEM, args='{"args": [2], "kwargs": {}}', limits=LIMITS)


def _resume(queue: str, worker: int) -> Verb[Any]:
    run(queues.pause(queue, authority=SYSTEM, by="kim", reason="deploy"))
    return queues.resume(queue, authority=SYSTEM)


def _replace(queue: str, worker: int) -> Verb[Any]:
    enqueued(queue=queue, key=queue)
    return enqueue(new_job(queue=queue, key=queue, on_conflict=OnConflict.REPLACE), authority=SYSTEM)


WAKING: dict[str, Callable[[str, int], Verb[Any]]] = {
    "enqueue": lambda queue, worker: enqueue(new_job(queue=queue), authority=SYSTEM),
    "enqueue with a key": lambda queue, worker: enqueue(new_job(queue=queue, key=queue), authority=SYSTEM),
    "enqueue many": lambda queue, worker: enqueue_many([new_job(queue=queue)] * 3, authority=SYSTEM),
    "enqueue many with keys": lambda queue, worker: enqueue_many(
        [new_job(queue=queue, key=f"{queue} {n}") for n in range(3)], authority=SYSTEM
    ),
    "replace": _replace,
    "stage": _stage,
    "stage a follow-up": _stage_follow_up,
    "release": lambda queue, worker: report("release", _running(queue, worker), worker),
    "expedite": lambda queue, worker: operate.expedite([_later(queue)], authority=SYSTEM, by="kim"),
    "reinstate": _reinstate,
    "rerun": _rerun,
    "rerun many": _rerun_many,
    "edit": _edit,
    "reprioritise": lambda queue, worker: operate.reprioritise(
        enqueued(queue=queue), authority=SYSTEM, by="kim", priority=0
    ),
    "resume": _resume,
}


def idle_busy_and_asleep() -> None:
    """A worker of each queue that says of itself what the queue is called."""
    a_worker("idle", idle=True)
    a_worker("busy")
    asleep = a_worker("asleep", idle=True)
    # A worker that has not been heard of for long wakes up for nothing.
    execute("update shiftboss_worker set heartbeat_at = now() - interval '6 minutes' where id = %s", asleep)


@pytest.mark.requirement("C1", "L9")
@pytest.mark.parametrize("verb", WAKING)
def test_what_becomes_available_wakes_idle_workers_of_its_queue_and_nobody_else(
    verb: str, perform: Perform, worker: int, ear: Ear
) -> None:
    acts = [WAKING[verb](queue, worker) for queue in ("busy", "asleep", "unserved", "idle")]
    idle_busy_and_asleep()
    for act in acts:
        perform(act)
    assert ear.heard() == ("100 idle" if verb == "resume" else "0 idle")
    enqueued(queue="idle", priority=99)
    assert ear.heard() == "99 idle"


SLEEPING: dict[str, Callable[[], Verb[Any]]] = {
    "enqueue": lambda: enqueue(new_job(queue="idle", due_in=3600), authority=SYSTEM),
    "enqueue with a key": lambda: enqueue(new_job(queue="idle", due_in=3600, key="a"), authority=SYSTEM),
    "enqueue many": lambda: enqueue_many([new_job(queue="idle", due_in=3600)], authority=SYSTEM),
    "enqueue many with keys": lambda: enqueue_many(
        [new_job(queue="idle", due_in=3600, key="a")], authority=SYSTEM
    ),
    "replace": lambda: enqueue(
        new_job(queue="idle", due_in=3600, key="waits", on_conflict=OnConflict.REPLACE), authority=SYSTEM
    ),
    "reprioritise": lambda: operate.reprioritise([_later("idle")], authority=SYSTEM, by="kim", priority=5),
    "resume what is not paused": lambda: queues.resume("idle", authority=SYSTEM),
    "a follow-up": lambda: enqueue(new_job(queue="idle", key="runs", follow_up=True), authority=SYSTEM),
}


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("verb", SLEEPING)
def test_what_waits_for_its_time_wakes_nobody(verb: str, perform: Perform, worker: int, ear: Ear) -> None:
    _running("other", worker, key="runs")
    enqueued(queue="other", key="waits")
    idle_busy_and_asleep()
    perform(SLEEPING[verb]())
    enqueued(queue="idle", priority=99)
    assert ear.heard() == "99 idle"


Ended = tuple[int, Callable[[], Verb[Any]]]


def _worker_ends(verb: str, make: Callable[..., Any] = running, **how: Any) -> Callable[[int], Ended]:
    def prepare(worker: int) -> Ended:
        made = make(worker, **how)
        held: Lease = made[0] if isinstance(made, list) else made
        return held.job_id, lambda: report(verb, held, worker)

    return prepare


def _person_ends(verb: Callable[..., Verb[Any]], **how: Any) -> Callable[[int], Ended]:
    def prepare(worker: int) -> Ended:
        [job_id] = enqueued()
        return job_id, lambda: verb([job_id], authority=SYSTEM, **how)

    return prepare


def _quarantined(verb: Callable[..., Verb[Any]]) -> Callable[[int], Ended]:
    def prepare(worker: int) -> Ended:
        [held] = running(worker, failure_limit=1)
        run(report("fail", held, worker))
        return held.job_id, lambda: verb([held.job_id], authority=SYSTEM)

    return prepare


def _upkeep_ends(verb: Callable[..., Verb[Any]], make: Callable[..., Lease], **how: Any) -> Callable[[int], Ended]:
    def prepare(worker: int) -> Ended:
        held = make(worker, **how)
        return held.job_id, lambda: verb(authority=SYSTEM)

    return prepare


def _expired_to_be_cancelled(worker: int) -> Lease:
    held = to_be_cancelled(worker, lease_seconds=0.1)
    wait_for_expiry(held)
    return held


def _late(worker: int) -> Lease:
    [job_id] = enqueued(deadline_in=-1)
    return Lease(job_id, 0)


def _superseded(worker: int) -> Ended:
    key = f"k{scalar('select count(*) from shiftboss_job')}"
    [job_id] = enqueued(key=key)
    return job_id, lambda: enqueue(new_job(key=key, on_conflict=OnConflict.REPLACE), authority=SYSTEM)


def _unknown(worker: int) -> Ended:
    [job_id] = enqueued(task="nobody.knows")
    hours_pass()
    return job_id, lambda: upkeep.quarantine_unknown(authority=SYSTEM, seconds=600)


def _dead_worker_ends(verb: Callable[[Lease, int], Verb[Any]]) -> Callable[[int], Ended]:
    def prepare(worker: int) -> Ended:
        [held] = running(worker)
        return held.job_id, lambda: verb(held, worker)

    return prepare


RESTING: dict[str, Callable[[int], Ended]] = {
    "complete": _worker_ends("complete"),
    "discard": _worker_ends("discard"),
    "quarantine": _worker_ends("quarantine"),
    "the last failure": _worker_ends("fail", failure_limit=1),
    "the last death": _worker_ends("reap_own", loss_limit=1),
    "the last loss": _upkeep_ends(upkeep.reap, expired, loss_limit=1),
    **{
        f"{verb}, to be cancelled": _worker_ends(verb, to_be_cancelled)
        for verb in ("fail", "snooze", "release", "discard", "quarantine", "reap_own")
    },
    "reap, to be cancelled": _upkeep_ends(upkeep.reap, _expired_to_be_cancelled),
    "cancel": _person_ends(operate.cancel),
    "operator's quarantine": _person_ends(operate.quarantine, by="kim"),
    "held again": _person_ends(operate.hold_again, by="kim", since=LATER, reason=QuarantineReason.OPERATOR),
    "operator's discard": _quarantined(operate.discard),
    "cancel in quarantine": _quarantined(operate.cancel),
    "deadline": _upkeep_ends(upkeep.expire, _late),
    "superseded": _superseded,
    "unknown task": _unknown,
    "poison": _dead_worker_ends(making.poisoned),
}

GOING_ON: dict[str, Callable[[int], Ended]] = {
    "fail": _worker_ends("fail"),
    "death": _worker_ends("reap_own"),
    "loss": _upkeep_ends(upkeep.reap, expired),
    "taken back": _dead_worker_ends(making.taken_back),
    "snooze": _worker_ends("snooze"),
    "release": _worker_ends("release"),
}


def awaited(job_id: int, seconds: float = 60.0) -> int:
    """Somebody waits for this job."""
    run(awaiting.begin(job_id, authority=System(), seconds=seconds))
    return job_id


def a_sentinel(worker: int) -> int:
    """One more job that is awaited, and ends."""
    [held] = running(worker, queue="default", task=TASK, priority=100)
    awaited(held.job_id)
    run(report("complete", held, worker))
    return held.job_id


@pytest.mark.requirement("R10")
@pytest.mark.parametrize("how", RESTING)
def test_a_job_that_comes_to_rest_wakes_who_awaits_it_and_nobody_else(
    how: str, perform: Perform, worker: int, listen: Callable[[str], Ear]
) -> None:
    ear = listen(awaiting.CHANNEL)
    ended = [RESTING[how](worker) for _ in range(3)]
    (_, _), (given_up, _), (wanted, _) = ended
    awaited(given_up, seconds=-1)
    awaited(wanted)
    for _, verb in ended:
        perform(verb())
    assert ear.heard() == str(wanted)
    last = a_sentinel(worker)
    assert ear.heard() == str(last)


@pytest.mark.requirement("R10")
@pytest.mark.parametrize("how", GOING_ON)
def test_a_job_that_goes_on_wakes_no_waiter(
    how: str, perform: Perform, worker: int, listen: Callable[[str], Ear]
) -> None:
    ear = listen(awaiting.CHANNEL)
    job_id, verb = GOING_ON[how](worker)
    awaited(job_id)
    perform(verb())
    last = a_sentinel(worker)
    assert ear.heard() == str(last)


@pytest.mark.requirement("R10", "N11")
def test_a_cancellation_that_is_only_wanted_wakes_no_waiter(
    perform: Perform, worker: int, listen: Callable[[str], Ear]
) -> None:
    ear = listen(awaiting.CHANNEL)
    [held] = running(worker)
    awaited(held.job_id)
    perform(operate.cancel([held.job_id], authority=SYSTEM))
    last = a_sentinel(worker)
    assert ear.heard() == str(last)


@pytest.mark.requirement("R10")
def test_only_the_wait_that_is_over_is_forgotten(perform: Perform) -> None:
    first, second = enqueued(2)
    waiter = perform(awaiting.begin(first, authority=SYSTEM, seconds=60))
    perform(awaiting.begin(second, authority=SYSTEM, seconds=60))
    perform(awaiting.end(waiter, authority=SYSTEM))
    assert rows("select job_id from shiftboss_waiter") == [(second,)]
    # What nobody ended is dropped a minute after its time.
    perform(awaiting.begin(first, authority=SYSTEM, seconds=-90))
    perform(awaiting.begin(first, authority=SYSTEM, seconds=-30))
    assert len(rows("select from shiftboss_waiter")) == 2


@pytest.mark.requirement("N11", "C4")
def test_a_worker_is_told_that_the_end_of_its_jobs_is_wanted(
    perform: Perform, worker: int, other: int, listen: Callable[[str], Ear]
) -> None:
    mine, yours = listen(f"shiftboss_worker_{worker}"), listen(f"shiftboss_worker_{other}")
    held = running(worker, 3)
    waiting = enqueued(2)
    perform(operate.cancel([one.job_id for one in held] + waiting, authority=SYSTEM))
    assert mine.heard() == "cancel"
    [foreign] = running(other)
    perform(operate.cancel([foreign.job_id], authority=SYSTEM))
    assert yours.heard() == "cancel"
    # Once for all jobs of a worker.
    perform(operate.cancel([held[0].job_id], authority=SYSTEM))
    assert mine.heard() == "cancel"
