"""Programs that are held back: by their host's agent alone, one hold at a time, and taken up by the next agent."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from shiftboss import Owner, Scoped
from shiftboss.queue.contract import Lease
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import holds, hosts, operate, processes, upkeep
from shiftboss.queue.store.holds import HoldRow, Looping, OpenHold, Poison
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.statement import Verb, run
from tests.store import making
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, a_worker, execute, running, scalar
from tests.store.sessions import Session, together
from tests.store.test_hosts import NOW, expired, taken
from tests.store.test_plans import plan

pytestmark = pytest.mark.requirement("B2", "L28")

LONG_SECONDS = 3600.0

WEB = Looping(
    host="web-1", program="web", pool=None, step=1, seconds=10.0, evidence={"times": 3, "ends": []}, after=0
)


def held(fence: int, **other: Any) -> int:
    """The id of a hold that the agent has made."""
    hold_id = run(holds.hold(replace(WEB, **other), authority=SYSTEM, fence=fence))
    assert hold_id
    return hold_id


def owed() -> list[OpenHold]:
    """What an agent owes to the programs of the host."""
    return run(holds.open_holds(authority=SYSTEM, host="web-1"))


def newest() -> HoldRow:
    """The newest hold of all."""
    return run(holds.holds(authority=SYSTEM, limit=1))[0]


def over(hold_id: int) -> None:
    """Its time has come."""
    execute("update shiftboss_hold set until = clock_timestamp() where id = %s", hold_id)


def test_a_program_is_held_once_at_a_time_by_what_its_agent_knew(perform: Perform) -> None:
    fence = taken()
    first = perform(holds.hold(WEB, authority=SYSTEM, fence=fence))
    assert first
    assert perform(holds.hold(WEB, authority=SYSTEM, fence=fence)) is None
    assert perform(holds.hold(replace(WEB, after=first), authority=SYSTEM, fence=fence)) is None
    assert held(fence, program="maintainer")
    over(first)
    assert perform(holds.take_up(first, authority=SYSTEM, fence=fence))
    # Nothing is open, but this one was judged by the lives before the hold that is over.
    assert perform(holds.hold(WEB, authority=SYSTEM, fence=fence)) is None
    assert perform(holds.hold(replace(WEB, after=first, step=2), authority=SYSTEM, fence=fence))
    assert [row.step for row in run(holds.holds(authority=SYSTEM, host="web-1", program="web"))] == [2, 1]


def test_an_agent_whose_lease_is_over_holds_nobody(perform: Perform) -> None:
    first = taken()
    hold_id = held(first)
    expired()
    program = replace(WEB, program="maintainer")
    for fence in (first, first + 1):
        assert perform(holds.hold(program, authority=SYSTEM, fence=fence)) is None
        assert not perform(holds.stopped(hold_id, authority=SYSTEM, fence=fence))
        assert not perform(holds.take_up(hold_id, authority=SYSTEM, fence=fence, by_others=True))
    second = taken(pid=12)
    assert not perform(holds.stopped(hold_id, authority=SYSTEM, fence=first))
    assert perform(holds.stopped(hold_id, authority=SYSTEM, fence=second))
    assert not perform(holds.stopped(hold_id, authority=SYSTEM, fence=second))
    assert not perform(holds.take_up(hold_id, authority=SYSTEM, fence=second))
    [row] = perform(holds.open_holds(authority=SYSTEM, host="web-1"))
    assert (row.program, row.is_in_force, row.was_stopped, 0 < row.seconds_left <= 10) == ("web", True, True, True)
    over(hold_id)
    assert [row.is_in_force for row in owed()] == [False]
    assert not perform(holds.take_up(hold_id, authority=SYSTEM, fence=first))
    assert perform(holds.take_up(hold_id, authority=SYSTEM, fence=second))
    assert not perform(holds.take_up(hold_id, authority=SYSTEM, fence=second))
    assert (owed(), newest().released_as, newest().is_in_force) == ([], "time", False)


def test_two_at_once_make_one_hold(connect: Callable[[], Session]) -> None:
    fence, sessions = taken(), [connect(), connect()]
    calls = [partial(one.run, holds.hold(WEB, authority=SYSTEM, fence=fence)) for one in sessions]
    assert sorted(hold_id is not None for hold_id in together(*calls)) == [False, True]


def test_a_person_ends_a_hold_and_the_agent_still_owes_the_start(perform: Perform) -> None:
    fence = taken()
    assert perform(holds.release("web-1", "web", authority=SYSTEM, how="release", by="kim")) is None
    hold_id = held(fence)
    ended = perform(holds.release("web-1", "web", authority=SYSTEM, how="release", by="kim"))
    assert (ended.id, ended.step) == (hold_id, 1)
    assert perform(holds.release("web-1", "web", authority=SYSTEM, how="stop", by="lee")) is None
    assert [row.is_in_force for row in owed()] == [False]
    assert perform(holds.take_up(hold_id, authority=SYSTEM, fence=fence))
    assert (newest().released_as, newest().released_by, owed()) == ("release", "kim", [])


def test_who_stops_a_held_program_wants_no_start_of_it() -> None:
    fence = taken()
    held(fence)
    assert run(holds.release("web-1", "web", authority=SYSTEM, how="stop", by="kim"))
    assert (owed(), newest().released_as) == ([], "stop")
    assert newest().taken_up_at


def test_who_was_started_past_the_agent_is_held_no_more(perform: Perform) -> None:
    fence = taken()
    hold_id = held(fence)
    assert perform(holds.take_up(hold_id, authority=SYSTEM, fence=fence, by_others=True))
    assert (newest().released_as, owed()) == ("others", [])


def dead(job: Lease, worker: int) -> Poison:
    """The job to blame for the death of the worker that had it in hand."""
    return Poison(job_id=job.job_id, fence=job.fence, worker_id=worker, message="its worker died 3 times")


WORKER = replace(WEB, program="worker-default-1", pool="default")


def test_a_job_that_killed_its_workers_is_quarantined_and_nobody_is_held(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    job, beside = running(worker, 2)
    assert perform(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence)) is True
    row = making.live(job.job_id)
    assert row
    assert (row["state"], row["quarantine_reason"], row["losses"]) == ("quarantined", "poison", 1)
    [attempt] = making.attempts(job.job_id)
    assert (attempt["outcome"], json.loads(attempt["evidence"])["times"]) == ("lost", 3)
    [event] = making.events(job.job_id)
    data = json.loads(event["data"])
    assert (event["kind"], data["by"], data["program"]) == (
        "quarantine",
        "the agent of web-1",
        "worker-default-1",
    )
    assert making.state(beside.job_id) == "running"
    assert (newest().released_as, newest().poison_job) == ("poison", job.job_id)
    [start] = owed()
    assert not start.is_in_force
    # Once more by what was known before: nothing.
    assert perform(holds.poison(WORKER, dead(beside, worker), authority=SYSTEM, fence=fence)) is False
    assert making.state(beside.job_id) == "running"


def test_a_job_that_waits_since_the_death_is_quarantined_as_well(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    job = making.expired(worker)
    run(upkeep.reap(authority=SYSTEM))
    assert perform(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence)) is True
    row = making.live(job.job_id)
    assert row
    assert (row["state"], row["losses"], len(making.attempts(job.job_id))) == ("quarantined", 1, 1)


def test_a_job_that_somebody_else_has_or_whose_end_is_asked_for_is_left_alone(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    claimed_again = making.reclaimed(worker)
    ending = making.to_be_cancelled(worker)
    [elsewhere] = running(a_worker())
    done = making.completed(worker)
    for job in (claimed_again, ending, elsewhere, done):
        before = making.state(job.job_id)
        assert perform(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence)) is False
        assert making.state(job.job_id) == before
    assert scalar("select count(*) from shiftboss_hold") == 0


def test_an_agent_whose_lease_is_over_quarantines_nothing(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    [job] = running(worker)
    held(fence, program=WORKER.program)
    assert (
        perform(holds.poison(replace(WORKER, after=newest().id), dead(job, worker), authority=SYSTEM, fence=fence))
        is False
    )
    execute("delete from shiftboss_hold")
    assert perform(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence + 1)) is False
    expired()
    assert perform(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence)) is False
    assert making.state(job.job_id) == "running"


def test_a_quarantined_poison_can_be_reinstated() -> None:
    fence, worker = taken(), a_worker()
    [job] = running(worker)
    assert run(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence))
    limits = operate.Limits(failures=1, losses=1, by_task={})
    assert run(operate.reinstate([job.job_id], authority=SYSTEM, by="kim", limits=limits)).changed
    assert making.state(job.job_id) == "available"


def test_of_each_program_the_newest_holds_are_kept(perform: Perform) -> None:
    fence, last = taken(), 0
    for step in (1, 2, 3):
        last = held(fence, step=step, after=last)
        assert run(holds.take_up(last, authority=SYSTEM, fence=fence, by_others=True))
    held(fence, program="maintainer")
    assert perform(holds.forget_holds(authority=SYSTEM, host="web-1", fence=fence + 1, keep=1)) == 0
    assert perform(holds.forget_holds(authority=SYSTEM, host="web-1", fence=fence, keep=1)) == 2
    left = run(holds.holds(authority=SYSTEM))
    assert [(row.program, row.step) for row in left] == [("maintainer", 1), ("web", 3)]
    assert [row.program for row in run(holds.holds(authority=SYSTEM, only_open=True))] == ["maintainer"]


@pytest.mark.parametrize("authority", [Owner("u"), Scoped(queues=["default"])])
def test_holds_are_for_who_sees_the_whole(authority: Any) -> None:
    for verb in (
        holds.hold(WEB, authority=authority, fence=1),
        holds.poison(WEB, Poison(job_id=1, fence=1, worker_id=1, message=""), authority=authority, fence=1),
        holds.take_back(1, {}, authority=authority, host="web-1", fence=1, worker_id=1, message=""),
        holds.open_holds(authority=authority, host="web-1"),
        holds.stopped(1, authority=authority, fence=1),
        holds.take_up(1, authority=authority, fence=1),
        holds.release("web-1", "web", authority=authority, how="release", by="kim"),
        holds.holds(authority=authority),
        holds.forget_holds(authority=authority, host="web-1", fence=1),
    ):
        with pytest.raises(NotAllowed):
            run(verb)


def noted_death(fence: int, worker: int, *, host: str = "web-1") -> int:
    """The number of the life of the worker's process, which has ended."""
    life = Life(
        program="worker-default-1", pool="default", launcher=1, started=NOW, ended=NOW + 5, ending="unknown"
    )
    assert run(processes.note([life], authority=SYSTEM, host=host, fence=fence))
    execute("update shiftboss_process set ending = 'signal', signal = 9")
    number = int(scalar("select max(id) from shiftboss_process"))
    execute("update shiftboss_process set worker_id = %s", worker)
    return number


def taken_back(process: int, returning_in: dict[int, float], fence: int, worker: int) -> Verb[list[int]]:
    """The verb by which the agent takes jobs back."""
    return holds.take_back(
        process, returning_in, authority=SYSTEM, host="web-1", fence=fence, worker_id=worker, message="it died"
    )


def test_jobs_of_a_dead_worker_come_back_each_in_its_time_and_it_counts_against_none(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    now, later, beside = (job.job_id for job in running(worker, 3, loss_limit=1))
    ending = making.to_be_cancelled(worker).job_id
    [elsewhere] = running(a_worker())
    process = noted_death(fence, worker)
    wanted = {later: 60.0, now: 0.0, ending: 0.0, elsewhere.job_id: 0.0}
    assert perform(taken_back(process, wanted, fence, worker)) == [now, later]
    run(upkeep.stage(authority=SYSTEM))
    states = {one: making.state(one) for one in (now, later, beside, ending, elsewhere.job_id)}
    assert list(states.values()) == ["available", "retryable", "running", "running", "running"]
    row = making.live(now)
    assert row
    assert (row["losses"], row["error_code"]) == (0, "worker_died")
    assert [attempt["outcome"] for attempt in making.attempts(now)] == ["lost"]
    assert perform(taken_back(process, wanted, fence, worker)) == []


def test_only_the_agent_takes_jobs_back_and_only_after_an_end_that_is_known(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    [job] = running(worker)
    process = noted_death(fence, worker)
    wanted = {job.job_id: 0.0}
    assert perform(taken_back(process, wanted, fence + 1, worker)) == []
    assert perform(taken_back(process + 1, wanted, fence, worker)) == []
    assert perform(taken_back(process, wanted, fence, worker + 1)) == []
    execute("update shiftboss_process set ending = 'unknown', signal = null")
    assert perform(taken_back(process, wanted, fence, worker)) == []
    execute("update shiftboss_process set ending = null, ended_at = null")
    assert perform(taken_back(process, wanted, fence, worker)) == []
    execute("update shiftboss_process set ending = 'signal', signal = 9, ended_at = now(), host = 'web-2'")
    assert perform(taken_back(process, wanted, fence, worker)) == []
    execute("update shiftboss_process set host = 'web-1'")
    expired()
    assert perform(taken_back(process, wanted, fence, worker)) == []
    assert making.state(job.job_id) == "running"


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("open_holds", "shiftboss_hold_open"),
        ("release_hold", "shiftboss_hold_open"),
        ("samples", "shiftboss_hold_open"),
        ("hold_program", "shiftboss_hold_program"),
        ("quarantine_poison", "shiftboss_job_pkey"),
        ("take_back", "shiftboss_job_pkey"),
    ],
)
def test_holds_go_by_their_indexes(name: str, index: str, connect: Callable[[], Session]) -> None:
    assert index in plan(connect(), name)


def test_a_job_that_is_held_back_already_stays_so(perform: Perform) -> None:
    worker = a_worker()
    job = making.quarantined(worker)
    assert perform(making.poisoned(job, worker)) is False
    row = making.live(job.job_id)
    assert row
    assert row["quarantine_reason"] == "failures_exhausted"


@pytest.mark.parametrize("verb", [making.poisoned, making.taken_back])
def test_nobody_waits_for_the_lock_of_a_job(
    verb: Callable[[Lease, int], Verb[Any]], connect: Callable[[], Session]
) -> None:
    worker = a_worker()
    [job] = running(worker)
    other, agent = connect(), connect()
    asked = verb(job, worker)
    other.execute("begin")
    other.execute("select from shiftboss_job where id = %s for no key update", [job.job_id])
    agent.execute("set statement_timeout = '5s'")
    assert not agent.run(asked)
    other.execute("rollback")
    assert making.state(job.job_id) == "running"


def agents() -> tuple[int, int]:
    """The fences of the agents of two hosts with equal programs; the first host has had two."""
    taken(name="web-2", lease_seconds=LONG_SECONDS)
    run(hosts.leave("web-1", authority=SYSTEM, fence=taken()))
    return taken(lease_seconds=LONG_SECONDS), 1


def of_both() -> list[tuple[str, str, bool]]:
    """All holds, and whether each is open."""
    return [(row.host, row.program, row.taken_up_at is None) for row in run(holds.holds(authority=SYSTEM))]


def test_what_is_held_on_one_host_is_nothing_to_another() -> None:
    first, second = agents()
    theirs = held(second, host="web-2")
    assert run(holds.hold(WEB, authority=SYSTEM, fence=second)) is None
    ours = held(first)
    assert of_both() == [("web-1", "web", True), ("web-2", "web", True)]
    beside = held(first, program="maintainer")
    for verb in (holds.stopped, partial(holds.take_up, by_others=True)):
        assert not run(verb(ours, authority=SYSTEM, fence=second))
        assert run(verb(theirs, authority=SYSTEM, fence=second))
    assert not run(holds.stopped(theirs, authority=SYSTEM, fence=second))
    assert run(holds.release("web-1", "web", authority=SYSTEM, how="release", by="kim"))
    assert run(holds.stopped(ours, authority=SYSTEM, fence=first))
    assert run(holds.take_up(ours, authority=SYSTEM, fence=first))
    [left] = run(holds.holds(authority=SYSTEM, only_open=True))
    assert (left.id, left.stopped_at, left.released_at) == (beside, None, None)
    assert run(holds.forget_holds(authority=SYSTEM, host="web-1", fence=first, keep=0)) == 1
    assert of_both() == [("web-1", "maintainer", True), ("web-2", "web", False)]


def test_who_has_left_the_host_does_nothing_there() -> None:
    fence, worker = taken(), a_worker()
    [job] = running(worker)
    ours, done = held(fence), held(fence, program="maintainer")
    assert run(holds.take_up(done, authority=SYSTEM, fence=fence, by_others=True))
    process = noted_death(fence, worker)
    assert run(hosts.leave("web-1", authority=SYSTEM, fence=fence))
    assert run(holds.hold(WORKER, authority=SYSTEM, fence=fence)) is None
    assert run(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence)) is False
    assert run(taken_back(process, {job.job_id: 0.0}, fence, worker)) == []
    assert not run(holds.stopped(ours, authority=SYSTEM, fence=fence))
    assert not run(holds.take_up(ours, authority=SYSTEM, fence=fence, by_others=True))
    assert run(holds.forget_holds(authority=SYSTEM, host="web-1", fence=fence, keep=0)) == 0


def test_the_lease_of_one_host_is_none_on_another() -> None:
    _, second = agents()
    worker = a_worker()
    [job] = running(worker)
    assert run(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=second)) is False
    process = noted_death(second, worker, host="web-2")
    assert run(taken_back(process, {job.job_id: 0.0}, second, worker)) == []
    assert making.state(job.job_id) == "running"


def test_jobs_are_taken_back_from_the_worker_that_has_died_alone() -> None:
    fence, worker = taken(), a_worker()
    [job] = running(worker)
    process = noted_death(fence, a_worker())
    assert run(taken_back(process, {job.job_id: 0.0}, fence, worker)) == []


def test_a_job_is_blamed_by_what_was_known_of_its_program_and_of_no_other(perform: Perform) -> None:
    fence, worker = taken(), a_worker()
    job, second = running(worker, 2)
    run(operate.quarantine(making.enqueued(), authority=SYSTEM, by="kim"))
    last = held(fence, program=WORKER.program)
    assert run(holds.take_up(last, authority=SYSTEM, fence=fence, by_others=True))
    held(fence)
    other = held(fence, program="maintainer")
    assert run(holds.take_up(other, authority=SYSTEM, fence=fence, by_others=True))
    assert perform(holds.poison(WORKER, dead(job, worker), authority=SYSTEM, fence=fence)) is False
    now = replace(WORKER, after=last)
    assert perform(holds.poison(now, dead(job, worker), authority=SYSTEM, fence=fence)) is True
    [event] = making.events(job.job_id)
    assert event["seq"] == 1
    assert perform(holds.poison(now, dead(second, worker), authority=SYSTEM, fence=fence)) is False
    assert making.state(second.job_id) == "running"


def test_agents_with_equal_fences_are_told_apart_by_their_hosts() -> None:
    assert (taken(name="web-2"), taken()) == (1, 1)
    done = held(1, host="web-2", program="maintainer")
    assert run(holds.take_up(done, authority=SYSTEM, fence=1, by_others=True))
    assert not run(holds.stopped(done, authority=SYSTEM, fence=1))
    held(1, host="web-2")
    held(1)
    assert of_both() == [("web-1", "web", True), ("web-2", "web", True), ("web-2", "maintainer", False)]
    assert run(holds.release("web-1", "web", authority=SYSTEM, how="release", by="kim"))
    assert [row.released_as for row in run(holds.holds(authority=SYSTEM))] == ["release", None, "others"]
    assert run(holds.forget_holds(authority=SYSTEM, host="web-1", fence=1, keep=0)) == 0
