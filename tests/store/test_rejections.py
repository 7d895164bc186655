"""Writes under a lease that is not held: they change nothing, and are recorded."""

import json
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.contract import Heartbeat, Lease, Settlement
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import lease, upkeep
from shiftboss.queue.store.statement import Verb, run
from tests.store.conftest import Perform
from tests.store.making import (
    NOT_HELD,
    REPORTS,
    SYSTEM,
    TASK,
    a_worker,
    claimed,
    events,
    expired,
    finished,
    live,
    report,
    running,
    scalar,
    state,
    whole,
)
from tests.store.sessions import Session, together

VERBS = [*REPORTS, "heartbeat"]


def offer(verb: str, held: Lease, worker: int) -> Verb[Any]:
    """A write under a lease."""
    if verb == "heartbeat":
        return lease.heartbeat([held], authority=SYSTEM, worker_id=worker, lease_seconds=30)
    return report(verb, held, worker)


def is_lost(answer: Settlement | Heartbeat, held: Lease) -> bool:
    """Whether the answer says that the lease is lost, and nothing else."""
    rest = answer.renewed if isinstance(answer, Heartbeat) else answer.settled
    return (set(answer.lost), set(answer.busy), set(rest)) == ({held}, set(), set())


@pytest.mark.requirement("L4", "L27", "B4")
@pytest.mark.parametrize("kind", NOT_HELD)
@pytest.mark.parametrize("verb", VERBS)
def test_a_stranger_changes_nothing_and_is_recorded(
    verb: str, kind: str, perform: Perform, worker: int, other: int
) -> None:
    held = NOT_HELD[kind](worker)
    before = whole(held.job_id)
    assert is_lost(perform(offer(verb, held, other)), held)
    assert whole(held.job_id) == before
    [event] = events(held.job_id)
    assert (event["seq"], event["kind"], event["worker_id"], event["fence"]) == (
        1,
        "write_rejected",
        other,
        held.fence,
    )
    row = live(held.job_id) or finished(held.job_id) or {"fence": None, "worker_id": None, "state": None}
    assert json.loads(event["data"]) == {
        "verb": verb,
        "fence_offered": held.fence,
        "fence_held": row["fence"],
        "worker_held": row["worker_id"],
        "state": row["state"],
    }


@pytest.mark.requirement("L4", "N9")
@pytest.mark.parametrize("verb", VERBS)
def test_a_stranger_cannot_write_for_a_running_job(verb: str, perform: Perform, worker: int, other: int) -> None:
    [held] = running(worker)
    before = whole(held.job_id)
    assert is_lost(perform(offer(verb, held, other)), held)
    assert whole(held.job_id) == before


@pytest.mark.requirement("L4", "N9")
@pytest.mark.parametrize("fence", [-1, 0, 2, 2**62])
@pytest.mark.parametrize("verb", VERBS)
def test_a_fence_that_is_not_the_jobs_own_is_refused(verb: str, fence: int, perform: Perform, worker: int) -> None:
    [held] = running(worker)
    before = whole(held.job_id)
    other = held._replace(fence=fence)
    assert is_lost(perform(offer(verb, other, worker)), other)
    assert whole(held.job_id) == before


@pytest.mark.requirement("L4", "S13")
@pytest.mark.parametrize("verb", VERBS)
def test_an_expired_lease_is_lost_though_nobody_has_reaped_it(verb: str, perform: Perform, worker: int) -> None:
    held = expired(worker)
    before = whole(held.job_id)
    assert is_lost(perform(offer(verb, held, worker)), held)
    assert whole(held.job_id) == before
    [event] = events(held.job_id)
    assert json.loads(event["data"])["state"] == "running"


@pytest.mark.requirement("L4", "L30", "B4")
@pytest.mark.parametrize("verb", VERBS)
def test_a_late_worker_cannot_write_for_a_reaped_job(verb: str, perform: Perform, worker: int) -> None:
    held = expired(worker)
    [reaped] = run(upkeep.reap(authority=SYSTEM))
    assert (reaped.id, reaped.fence, reaped.worker_id) == (held.job_id, held.fence, worker)
    before = whole(held.job_id)
    answer = perform(offer(verb, held, worker))
    assert whole(held.job_id) == before
    if verb == "reap_own":
        # The loss that the keeper reports is in the record already.
        assert answer == Settlement(settled={held})
    else:
        assert is_lost(answer, held)
        assert [event["kind"] for event in events(held.job_id)] == ["write_rejected"]


@pytest.mark.requirement("L4", "L30")
@pytest.mark.parametrize("verb", VERBS)
def test_a_late_worker_cannot_write_for_a_job_that_runs_again(
    verb: str, perform: Perform, worker: int, other: int
) -> None:
    held = expired(worker)
    run(upkeep.reap(authority=SYSTEM))
    run(upkeep.stage(authority=SYSTEM))
    [again] = claimed(other)
    before = whole(held.job_id)
    perform(offer(verb, held, worker))
    assert whole(held.job_id) == before
    assert run(report("complete", again.lease, other)) == Settlement(settled={again.lease})


@pytest.mark.requirement("L4")
def test_one_worker_with_two_leases_of_a_job_writes_under_the_newer_only(perform: Perform, worker: int) -> None:
    old = NOT_HELD["running under a newer fence"](worker)
    new = old._replace(fence=old.fence + 1)
    assert is_lost(perform(report("complete", old, worker)), old)
    assert state(old.job_id) == "running"
    assert perform(report("complete", new, worker)) == Settlement(settled={new})
    assert state(old.job_id) == "completed"


@pytest.mark.requirement("L4", "S8")
@pytest.mark.parametrize("verb", [verb for verb in REPORTS if verb != "reap_own"])
def test_the_end_of_a_later_run_does_not_speak_for_an_earlier_one(
    verb: str, perform: Perform, worker: int
) -> None:
    old = NOT_HELD["running under a newer fence"](worker)
    new = old._replace(fence=old.fence + 1)
    assert perform(report(verb, new, worker)) == Settlement(settled={new})
    before = whole(old.job_id)
    assert is_lost(perform(report(verb, old, worker)), old)
    assert whole(old.job_id) == before


@pytest.mark.requirement("L4", "L17")
@pytest.mark.parametrize("verb", REPORTS)
def test_a_heartbeat_after_the_workers_own_end_is_lost_and_no_rejection(
    verb: str, perform: Perform, worker: int, other: int
) -> None:
    held, foreign = [*running(worker), *running(other)]
    run(report(verb, held, worker))
    answer = perform(lease.heartbeat([held, foreign], authority=SYSTEM, worker_id=worker, lease_seconds=30))
    assert (answer.renewed, answer.busy, answer.lost) == (frozenset(), frozenset(), {held, foreign})
    assert events(held.job_id) == []
    assert [event["kind"] for event in events(foreign.job_id)] == ["write_rejected"]


@pytest.mark.requirement("L4", "L17")
@pytest.mark.parametrize("verb", REPORTS)
def test_a_heartbeat_after_the_end_of_another_run_is_a_rejection(
    verb: str, perform: Perform, worker: int, other: int
) -> None:
    old = NOT_HELD["running under a newer fence"](worker)
    run(report(verb, old._replace(fence=old.fence + 1), worker))
    assert is_lost(perform(offer("heartbeat", old, worker)), old)
    assert [event["fence"] for event in events(old.job_id)] == [old.fence]
    assert is_lost(perform(offer("heartbeat", old._replace(fence=old.fence + 1), other)), old._replace(fence=2))
    assert [event["worker_id"] for event in events(old.job_id)] == [worker, other]


@pytest.mark.requirement("L17", "L4")
def test_rejections_of_a_job_are_numbered(perform: Perform, worker: int, other: int) -> None:
    [held] = running(worker)
    for verb in VERBS:
        perform(offer(verb, held, other))
    assert [event["seq"] for event in events(held.job_id)] == list(range(1, len(VERBS) + 1))
    assert [json.loads(event["data"])["verb"] for event in events(held.job_id)] == VERBS


@pytest.mark.requirement("L17")
def test_numbers_go_on_from_the_jobs_own(perform: Perform, worker: int, other: int) -> None:
    [held] = running(worker)
    assert scalar("update shiftboss_job set event_seq = 41 where id = %s returning event_seq", held.job_id) == 41
    perform(report("complete", held, other))
    assert [event["seq"] for event in events(held.job_id)] == [42]


@pytest.mark.requirement("L17")
def test_rejections_at_one_moment_get_different_numbers(connect: Any, worker: int, other: int) -> None:
    held = running(worker, 5)
    sessions: list[Session] = [connect(), connect(), connect()]

    def reject(session: Session) -> None:
        for _ in range(5):
            session.run(report("fail", held, other))

    together(*[lambda session=session: reject(session) for session in sessions])
    for one in held:
        assert [event["seq"] for event in events(one.job_id)] == list(range(1, 16))


@pytest.mark.requirement("N4")
@pytest.mark.parametrize("verb", [*VERBS, "claim"])
def test_owners_do_not_work(verb: str, worker: int) -> None:
    [held] = running(worker)
    before = whole(held.job_id)
    owner = Owner("kim")
    functions: dict[str, Verb[Any]] = {
        "claim": lease.claim(
            authority=owner, worker_id=worker, queue="default", tasks=[TASK], limit=1, lease_seconds=1
        ),
        "heartbeat": lease.heartbeat([held], authority=owner, worker_id=worker, lease_seconds=1),
    }
    if verb in REPORTS:
        function, outcome = REPORTS[verb]
        functions[verb] = function([(held, outcome)], authority=owner, worker_id=worker)
    with pytest.raises(NotAllowed, match="is for System"):
        run(functions[verb])
    assert whole(held.job_id) == before
    assert a_worker() > worker
