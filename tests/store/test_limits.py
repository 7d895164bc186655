"""Limited and sequential queues: never more runs than slots, each slot freed by who took it, the order kept."""

from collections.abc import Callable
from typing import Any

import pytest

from shiftboss.queue.authority import Owner
from shiftboss.queue.contract import Claimed, Lease, Settlement
from shiftboss.queue.errors import InvalidJob, NotAllowed
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store import operate, queues, upkeep
from shiftboss.queue.store.enqueue import OnConflict, enqueue
from shiftboss.queue.store.queues import Limit, Limited
from shiftboss.queue.store.statement import Call, Verb, run
from tests.store import making
from tests.store.conftest import Perform
from tests.store.making import (
    REPORTS,
    SYSTEM,
    TASK,
    a_worker,
    claim,
    claimed,
    enqueued,
    execute,
    new_job,
    report,
    rows,
    scalar,
    state,
    wait_for_expiry,
)
from tests.store.sessions import Ear, Session, together
from tests.store.test_claim import mark_of
from tests.store.test_upkeep import now_due
from tests.store.test_wakeups import LATER, idle_busy_and_asleep
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("L6")

Slot = tuple[int | None, int | None]
LIMITS = operate.Limits(failures=4, losses=2, by_task={})


def limited(concurrency: int | None, queue: str = "default", *, sequential: bool = False) -> Limit | None:
    """What the limit of a queue was before somebody set it."""
    return run(queues.limit(queue, Limit(concurrency, sequential), authority=SYSTEM, by="kim"))


def sequential(queue: str = "default") -> None:
    """A queue whose jobs run in strict order."""
    limited(1, queue, sequential=True)


def slots(queue: str = "default") -> list[Slot]:
    """Who has the slots of a queue: job and fence of each; None and None where it is free."""
    question = "select job_id, fence from shiftboss_slot where queue = %s order by job_id, fence"
    return [(job_id, fence) for job_id, fence in rows(question, queue)]


def free(n: int) -> list[Slot]:
    """So many free slots."""
    return [(None, None)] * n


def ids(jobs: list[Claimed]) -> list[int]:
    """Their ids, in order."""
    return [job.id for job in jobs]


def held(worker: int, n: int = 1, **how: Any) -> list[Lease]:
    """Leases of the next jobs of the queue."""
    return [job.lease for job in claimed(worker, n, **how)]


def reaped(lease: Lease) -> None:
    """Wait for the end of a lease, and have it reaped."""
    wait_for_expiry(lease)
    assert [job.id for job in run(upkeep.reap(authority=SYSTEM))] == [lease.job_id]


# -- a limit -------------------------------------------------------------------------------------------------


def test_no_more_jobs_of_a_queue_run_than_its_limit_says(perform: Perform, worker: int, other: int) -> None:
    limited(3)
    jobs = enqueued(6)
    first = perform(claim(worker, n=2))
    second = perform(claim(other, n=5))
    assert (ids(first), ids(second)) == (jobs[:2], jobs[2:3])
    assert perform(claim(worker, n=5)) == []
    assert slots() == [(job.id, job.fence) for job in first + second]
    assert perform(report("complete", first[0].lease, worker)) == Settlement(settled={first[0].lease})
    # A mark of the worker's changes nothing: the queue is claimed from its bottom.
    assert ids(perform(claim(other, n=5, after=mark_of(jobs[4])))) == jobs[3:4]


def test_only_the_slots_and_jobs_of_the_queue_itself_are_taken(perform: Perform, worker: int) -> None:
    limited(2, "mail")
    limited(1)
    [theirs] = enqueued(queue="mail")
    [late] = enqueued(deadline_in=-1)
    [strange] = enqueued(task="shop.tasks.unknown")
    first, second = enqueued(2)
    assert ids(perform(claim(worker, n=5))) == [first]
    assert ids(perform(claim(worker, n=5, queue="mail"))) == [theirs]
    assert [state(job_id) for job_id in (late, strange, second)] == ["available"] * 3
    assert slots("mail") == [(theirs, 1), (None, None)]


def test_a_limited_queue_that_is_paused_is_not_claimed_from(perform: Perform, worker: int) -> None:
    limited(2)
    [job] = enqueued()
    run(queues.pause("default", authority=SYSTEM, by="kim", reason="deploy"))
    assert perform(claim(worker)) == []
    run(queues.resume("default", authority=SYSTEM))
    assert ids(perform(claim(worker))) == [job]


@pytest.mark.parametrize("verb", sorted(REPORTS))
def test_every_end_of_a_run_frees_its_slot_once(verb: str, perform: Perform, worker: int) -> None:
    limited(2)
    enqueued(2)
    mine, others = held(worker, 2)
    assert perform(report(verb, mine, worker)) == Settlement(settled={mine})
    assert slots() == [others, *free(1)]
    # Told again it is settled, and frees nothing.
    [next_job] = enqueued(priority=9)
    [taken] = held(worker)
    assert taken.job_id == next_job
    assert perform(report(verb, mine, worker)) == Settlement(settled={mine})
    assert slots() == [others, taken]


@pytest.mark.parametrize("verb", sorted(set(REPORTS) - {"complete"}))
def test_a_run_whose_end_was_asked_for_frees_its_slot(verb: str, perform: Perform, worker: int) -> None:
    limited(1)
    enqueued()
    [mine] = held(worker)
    run(operate.cancel([mine.job_id], authority=SYSTEM))
    assert slots() == [mine]
    perform(report(verb, mine, worker))
    assert (state(mine.job_id), slots()) == ("completed" if verb == "complete" else "cancelled", free(1))


@pytest.mark.parametrize("cancel", [False, True])
def test_a_reaped_run_frees_its_slot_and_its_late_end_none(
    cancel: bool, perform: Perform, worker: int, other: int
) -> None:
    limited(1)
    first, second = enqueued(2)
    [late] = held(worker, lease_seconds=0.01)
    if cancel:
        run(operate.cancel([late.job_id], authority=SYSTEM))
    reaped(late)
    assert slots() == free(1)
    [taken] = held(other)
    assert taken.job_id == second
    for verb in REPORTS:
        # That it was lost the record holds already.
        assert perform(report(verb, late, worker)) == (
            Settlement(settled={late}) if verb == "reap_own" else Settlement(lost={late})
        )
    assert slots() == [taken]
    assert perform(claim(other)) == []
    assert first == late.job_id


def test_a_run_frees_a_slot_of_its_own_fence_only(perform: Perform, worker: int) -> None:
    limited(1)
    [job] = enqueued()
    [first] = held(worker)
    run(report("release", first, worker))
    [again] = held(worker)
    assert slots() == [(job, 2)]
    assert perform(report("complete", first, worker)).settled == set()
    assert slots() == [(job, 2)]
    assert perform(report("complete", again, worker)).settled == {again}
    assert slots() == free(1)


def test_a_job_of_a_limited_queue_runs_without_a_slot_once_there_is_no_limit(worker: int) -> None:
    limited(1)
    [job] = enqueued()
    [first] = held(worker)
    run(report("release", first, worker))
    limited(None)
    limited(1, "mail")
    execute("update shiftboss_slot set id = (select slot_id from shiftboss_job)")  # another's slot has its number
    [second] = held(worker)
    run(report("complete", second, worker))
    assert (state(job), slots("mail"), slots()) == ("completed", free(1), [])


@pytest.mark.parametrize("end", ["complete", "fail", "snooze", "discard", "quarantine", "release", "reap_own"])
def test_who_waits_for_a_slot_is_woken_when_one_is_free(end: str, perform: Perform, ear: Ear) -> None:
    worker = a_worker("mail", idle=True)
    limited(1, "mail")
    assert ear.heard() == "100 mail"
    enqueued(queue="mail", priority=7)
    assert ear.heard() == "7 mail"
    [mine] = held(worker, queue="mail")
    perform(report(end, mine, worker))
    assert ear.heard() == "100 mail"


def test_who_waits_for_a_slot_is_woken_by_what_is_reaped(ear: Ear) -> None:
    worker = a_worker("mail", idle=True)
    limited(1, "mail")
    assert ear.heard() == "100 mail"
    enqueued(queue="mail")
    assert ear.heard() == "0 mail"
    [mine] = held(worker, queue="mail", lease_seconds=0.01)
    reaped(mine)
    assert ear.heard() == "100 mail"


def test_a_limited_queue_is_drained_by_notifications_alone(ear: Ear, worker: int) -> None:
    worker = a_worker(idle=True)
    limited(2)
    jobs = enqueued(30)
    ended: list[int] = []
    while len(ended) < len(jobs):
        # Whoever is told claims once, as often as there is something, and never looks by itself.
        ear.heard()
        while leases := run(claim(worker, n=5)):
            assert len(leases) <= 2
            run(report("complete", [job.lease for job in leases], worker))
            ended += ids(leases)
    assert ended == jobs


Ending = Callable[[str, int], tuple[Lease, Verb[Any]]]


def of_a_run(verb: str, **how: Any) -> Ending:
    """A worker's own word on a run in a limited queue."""

    def prepare(queue: str, worker: int) -> tuple[Lease, Verb[Any]]:
        limited(1, queue)
        enqueued(queue=queue, **how)
        [lease] = held(worker, queue=queue)
        return lease, report(verb, lease, worker)

    return prepare


def of_a_lost_run(queue: str, worker: int) -> tuple[Lease, Verb[Any]]:
    """The reaper's word on a run in a limited queue."""
    limited(1, queue)
    enqueued(queue=queue)
    [lease] = held(worker, queue=queue, lease_seconds=0.01)
    wait_for_expiry(lease)
    return lease, upkeep.reap(authority=SYSTEM)


def of_a_dead_worker(verb: Callable[[Lease, int], Verb[Any]]) -> Ending:
    """An agent's word on a run in a limited queue."""

    def prepare(queue: str, worker: int) -> tuple[Lease, Verb[Any]]:
        limited(1, queue)
        enqueued(queue=queue)
        [lease] = held(worker, queue=queue)
        return lease, verb(lease, worker)

    return prepare


def of_a_waiting_job(verb: Callable[[int], Verb[Any]], change: str = "priority = 0") -> Ending:
    """The end of a job that holds the line of a sequential queue."""

    def prepare(queue: str, worker: int) -> tuple[Lease, Verb[Any]]:
        sequential(queue)
        [job] = enqueued(queue=queue, key=queue)
        [lease] = held(worker, queue=queue)
        run(report("release", lease, worker))
        execute(f"update shiftboss_job set {change} where id = %s", job)
        return lease, verb(job)

    return prepare


ENDINGS: dict[str, Ending] = {
    **{verb: of_a_run(verb) for verb in REPORTS},
    "reap": of_a_lost_run,
    "poison": of_a_dead_worker(making.poisoned),
    "taken back": of_a_dead_worker(making.taken_back),
    "cancel": of_a_waiting_job(lambda job: operate.cancel([job], authority=SYSTEM)),
    "operator's quarantine": of_a_waiting_job(lambda job: operate.quarantine([job], authority=SYSTEM, by="kim")),
    "held again": of_a_waiting_job(
        lambda job: operate.hold_again(
            [job], authority=SYSTEM, by="kim", since=LATER, reason=QuarantineReason.OPERATOR
        )
    ),
    "deadline": of_a_waiting_job(lambda job: upkeep.expire(authority=SYSTEM), "deadline = now() - interval '1 s'"),
    "unknown task": of_a_waiting_job(
        lambda job: upkeep.quarantine_unknown(authority=SYSTEM, seconds=0), "task = 'nobody.knows'"
    ),
    "superseded": of_a_waiting_job(
        lambda job: enqueue(
            new_job(
                queue="elsewhere",
                due_in=3600,
                key=scalar("select queue from shiftboss_job where id = %s", job),
                on_conflict=OnConflict.REPLACE,
            ),
            authority=SYSTEM,
        )
    ),
}
"""Every way in which a job leaves its slot."""


@pytest.mark.parametrize("how", ENDINGS)
def test_a_slot_that_is_free_wakes_idle_workers_of_its_queue_and_nobody_else(
    how: str, perform: Perform, ear: Ear
) -> None:
    worker = a_worker("busy", "asleep", "unserved", "idle")
    execute("update shiftboss_worker set started_at = now() - interval '1 hour'")
    ends = {queue: ENDINGS[how](queue, worker) for queue in ("busy", "asleep", "unserved", "idle")}
    idle_busy_and_asleep()
    for queue in ends:
        perform(ends[queue][1])
    assert [slots(queue) for queue in ends] == [free(1)] * 4
    assert ear.heard() == "100 idle"
    enqueued(queue="idle", priority=99)
    assert ear.heard() == "99 idle"


@pytest.mark.parametrize("how", ["a limit", "settling"])
def test_a_slot_that_is_made_wakes_idle_workers_of_its_queue_and_nobody_else(
    how: str, perform: Perform, ear: Ear
) -> None:
    names = ("busy", "asleep", "unserved", "idle")
    if how == "settling":
        for name in names:
            limited(1, name)
        execute("delete from shiftboss_slot")
    idle_busy_and_asleep()
    if how == "settling":
        perform(upkeep.reap(authority=SYSTEM))
    else:
        for name in names:
            perform(queues.limit(name, Limit(1), authority=SYSTEM, by="kim"))
    assert ear.heard() == "100 idle"
    enqueued(queue="idle", priority=99)
    assert ear.heard() == "99 idle"


@pytest.mark.parametrize("how", ENDINGS)
def test_an_end_frees_no_slot_of_another_job_or_of_another_run(how: str, perform: Perform) -> None:
    worker = a_worker("first", "second", "third")
    execute("update shiftboss_worker set started_at = now() - interval '1 hour'")
    enqueued(queue="third", priority=1)
    [another] = held(worker, queue="third")
    ends = {queue: ENDINGS[how](queue, worker) for queue in ("first", "second")}
    (first, end_first), (second, end_second) = ends.values()
    assert another.fence == first.fence == second.fence == 1
    # What no verb leaves behind: their slots have others' numbers.
    execute("update shiftboss_slot set job_id = %s where job_id = %s", another.job_id, first.job_id)
    execute("update shiftboss_slot set fence = 7 where job_id = %s", second.job_id)
    perform(end_first)
    if how != "reap":
        perform(end_second)
        assert slots("second") == [(second.job_id, 7)]
    assert slots("first") == [another]


# -- its changes ---------------------------------------------------------------------------------------------


def test_what_a_person_says_stands_against_the_settings_until_it_is_reset(perform: Perform) -> None:
    def set_by(by: str | None, concurrency: int | None, **how: Any) -> Limit | None:
        return perform(queues.limit("mail", Limit(concurrency), authority=SYSTEM, by=by, **how))

    def now() -> list[Limited]:
        return perform(queues.limits(authority=SYSTEM))

    assert set_by(None, 3) == Limit(None)
    assert set_by(None, 3) is None
    assert now() == [Limited("mail", Limit(3), None, 0)]
    assert set_by("kim", 5) == Limit(3)
    assert set_by(None, 3) is None
    assert now() == [Limited("mail", Limit(5), "kim", 0)]
    assert set_by("lee", 5) == Limit(5)
    assert set_by("lee", None) == Limit(5)
    assert now() == [Limited("mail", Limit(None), "lee", 0)]
    assert set_by(None, 3) is None
    assert set_by(None, 3, reset=True) == Limit(None)
    assert now() == [Limited("mail", Limit(3), None, 0)]
    assert set_by(None, 2) == Limit(3)
    assert now() == [Limited("mail", Limit(2), None, 0)]


def test_the_settings_are_applied_to_all_queues_of_which_nobody_has_said_otherwise(perform: Perform) -> None:
    def apply(**limits: Limit) -> list[str]:
        return sorted(perform(queues.apply_settings(limits, authority=SYSTEM)))

    def now() -> dict[str, tuple[Limit, str | None]]:
        return {one.queue: (one.limit, one.by) for one in perform(queues.limits(authority=SYSTEM))}

    limited(4, "orders")
    limited(None, "reports")
    run(queues.pause("mail", authority=SYSTEM, by="kim", reason="deploy"))
    said = {"mail": Limit(2), "orders": Limit(9), "reports": Limit(9), "audit": Limit(1, True), "free": Limit()}
    assert apply(**said) == ["audit", "mail"]
    assert now() == {
        "audit": (Limit(1, True), None),
        "mail": (Limit(2), None),
        "orders": (Limit(4), "kim"),
        "reports": (Limit(None), "kim"),
    }
    assert (slots("mail"), slots("orders"), slots("audit")) == (free(2), free(4), free(1))
    assert apply(**said) == []
    # What they name no more has no limit.
    assert apply(mail=Limit(3)) == ["audit", "mail"]
    assert now() == {"mail": (Limit(3), None), "orders": (Limit(4), "kim"), "reports": (Limit(None), "kim")}
    assert (slots("mail"), slots("audit")) == (free(3), [])
    assert [pause.queue for pause in run(queues.pauses(authority=SYSTEM))] == ["mail"]


def test_a_higher_limit_holds_at_once_and_wakes_who_waits(perform: Perform, worker: int, ear: Ear) -> None:
    limited(1)
    enqueued(4)
    [first] = held(worker)
    a_worker(idle=True)
    assert perform(queues.limit("default", Limit(3), authority=SYSTEM, by="kim")) == Limit(1)
    assert ear.heard() == "100 default"
    assert len(perform(claim(worker, n=5))) == 2
    assert first in slots()
    # And one for no queue that anybody waits for wakes nobody.
    limited(3, "mail")
    limited(None)
    assert ear.heard() == "100 default"


def test_above_a_limit_that_was_lowered_nothing_is_claimed(perform: Perform, worker: int, other: int) -> None:
    limited(3)
    enqueued(6)
    first, second, third = held(worker, 3)
    limited(2)
    assert slots() == [first, second, third]
    for lease, left in ((first, 2), (second, 1)):
        assert perform(claim(other, n=5)) == []
        run(report("complete", lease, worker))
        assert len([slot for slot in slots() if slot != (None, None)]) == left
    [fourth] = perform(claim(other, n=5))
    assert slots() == [third, fourth.lease]


def test_a_lower_limit_takes_free_slots_away_at_once(worker: int) -> None:
    limited(5)
    enqueued(2)
    mine = held(worker, 2)
    limited(3)
    assert slots() == [*mine, *free(1)]
    limited(1)
    assert slots() == mine


def test_without_a_limit_all_run_and_slots_go_as_their_runs_end(perform: Perform, worker: int) -> None:
    limited(2)
    jobs = enqueued(6)
    first, second = held(worker, 2)
    assert limited(None) == Limit(2)
    assert slots() == [first, second]
    assert ids(perform(claim(worker, n=9))) == jobs[2:]
    run(report("complete", first, worker))
    perform(upkeep.reap(authority=SYSTEM))
    assert slots() == [second]
    # A new limit counts what still runs, with a slot or without.
    limited(2)
    assert len(slots()) == 5


def test_what_runs_when_its_queue_gets_a_limit_counts(perform: Perform, worker: int) -> None:
    enqueued(2, queue="mail")
    claimed(worker, 2, queue="mail")
    enqueued(5)
    leases = held(worker, 4)
    limited(3)
    assert slots() == leases
    assert slots("mail") == []
    run(report("complete", leases[:2], worker))
    assert slots() == [*leases[2:], *free(2)]
    [next_job] = perform(claim(worker, n=5))
    assert slots() == [*leases[2:], next_job.lease]


def test_what_runs_in_a_queue_that_is_only_paused_gets_no_slot(worker: int) -> None:
    enqueued(queue="mail")
    claimed(worker, queue="mail")
    run(queues.pause("mail", authority=SYSTEM, by="kim", reason="deploy"))
    limited(1)
    assert (slots(), slots("mail")) == (free(1), [])


def test_what_runs_counts_though_another_has_the_slot_of_an_earlier_run(worker: int) -> None:
    limited(1)
    [mine] = enqueued()
    run(report("release", *held(worker), worker))
    [other] = enqueued(priority=9)
    run(report("release", *held(worker), worker))
    held(worker)
    limited(None)
    held(worker)
    limited(2)
    assert slots() == [(mine, 2), (other, 2)]


def test_what_runs_counts_though_a_slot_has_an_earlier_run_of_it(worker: int) -> None:
    limited(2)
    enqueued()
    [mine] = held(worker)
    execute("update shiftboss_slot set fence = 7 where job_id is not null")  # what no verb leaves behind
    limited(3)
    assert slots() == [mine, *free(2)]


def test_a_claim_under_way_when_its_queue_gets_a_limit_is_counted_soon(worker: int) -> None:
    # As if it had begun before the limit: it is committed after it.
    enqueued(2)
    leases = held(worker, 2)
    execute("insert into shiftboss_queue (name, concurrency) values ('default', 1)")
    run(upkeep.reap(authority=SYSTEM))
    assert set(leases) <= set(slots())
    enqueued()
    assert run(claim(worker)) == []


SAYS: dict[str, Callable[[], Verb[Any]]] = {
    "a person": lambda: queues.limit("default", Limit(1), authority=SYSTEM, by="kim"),
    "the settings": lambda: queues.apply_settings({"default": Limit(1)}, authority=SYSTEM),
}


@pytest.mark.parametrize("who", SAYS)
@pytest.mark.parametrize("marked", [False, True])
def test_a_first_limit_counts_what_claims_under_way_bring(
    marked: bool, who: str, connect: Any, worker: int, other: int
) -> None:
    claiming: Session = connect()
    limiting: Session = connect()
    limiting.execute("set lock_timeout = '60s'")
    jobs = enqueued(4)
    claiming.execute("begin")
    after = mark_of(jobs[0]) if marked else None
    brought = claiming.run(claim(worker, n=2, after=after))

    def commit() -> None:
        waits = "select cardinality(pg_blocking_pids(%s)) > 0"
        wait_for(lambda: claiming.execute(waits, [limiting.pid])[0][0], seconds=30)
        claiming.execute("commit")

    together(lambda: limiting.run(SAYS[who]()), commit)
    assert slots() == [(job.id, job.fence) for job in brought]
    assert run(claim(other, n=5)) == []


@pytest.mark.parametrize("marked", [False, True])
def test_while_a_first_limit_is_being_set_nothing_is_claimed_and_nobody_waits(
    marked: bool, connect: Any, perform: Perform, worker: int
) -> None:
    jobs = enqueued(3)
    [elsewhere] = enqueued(queue="other")
    operator: Session = connect()
    operator.execute("begin")
    operator.run(queues.limit("default", Limit(1), authority=SYSTEM, by="kim"))
    after = mark_of(jobs[0]) if marked else None
    assert perform(claim(worker, n=5, after=after)) == []
    assert ids(perform(claim(worker, n=5, queue="other"))) == [elsewhere]
    operator.execute("rollback")
    assert len(perform(claim(worker, n=5, after=after))) == (2 if marked else 3)


def test_a_slot_whose_run_is_over_is_free_again_and_one_of_a_live_run_never(perform: Perform, worker: int) -> None:
    limited(4)
    enqueued(3)
    leases = held(worker, 3)
    run(report("complete", leases[0], worker))
    run(report("release", leases[1], worker))
    # What no verb leaves behind: slots of runs that are over.
    first_free = "(select min(id) from shiftboss_slot where job_id is null)"
    for over in leases[:2]:
        execute(f"update shiftboss_slot set job_id = %s, fence = %s where id = {first_free}", *over)
    perform(upkeep.reap(authority=SYSTEM))
    assert slots() == [leases[2], *free(3)]


def test_missing_slots_come_back_and_those_above_the_limit_go(perform: Perform) -> None:
    limited(3)
    limited(2, "mail")
    execute(
        "delete from shiftboss_slot where id in (select id from shiftboss_slot where queue = 'default' limit 2)"
    )
    execute("insert into shiftboss_slot (queue) values ('mail'), ('mail'), ('orders')")
    run(queues.pause("orders", authority=SYSTEM, by="kim", reason="deploy"))
    perform(upkeep.reap(authority=SYSTEM))
    assert (slots(), slots("mail"), slots("orders")) == (free(3), free(2), [])


@pytest.mark.parametrize("given", [(0, False), (10_001, False), (2, True), (None, True)])
def test_a_limit_that_cannot_be_is_refused(given: tuple[int | None, bool]) -> None:
    with pytest.raises(InvalidJob, match="limit is"):
        Limit(*given)


@pytest.mark.requirement("N4")
def test_owners_limit_nothing_and_no_queue_that_cannot_be_has_a_limit() -> None:
    owner = Owner("kim")
    for verb in (
        queues.limit("default", Limit(3), authority=owner, by="kim"),
        queues.apply_settings({}, authority=owner),
        queues.limits(authority=owner),
    ):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)
    with pytest.raises(InvalidJob, match="queue"):
        run(queues.limit("a\x00", Limit(3), authority=SYSTEM, by="kim"))


# -- a sequential queue --------------------------------------------------------------------------------------


@pytest.mark.requirement("N16")
def test_a_sequential_queue_runs_one_job_at_a_time_in_its_order(perform: Perform, worker: int, other: int) -> None:
    sequential()
    last, *rest = enqueued(3)
    [urgent] = enqueued(priority=5)
    execute("update shiftboss_job set due_at = due_at + interval '1 hour' where id = %s", last)
    order = []
    while leases := perform(claim(worker, n=5)):
        assert perform(claim(other, n=5)) == []
        order += ids(leases)
        perform(report("complete", [job.lease for job in leases], worker))
    assert order == [urgent, *rest, last]
    assert slots() == free(1)


WAITING_AGAIN: dict[str, Callable[[Lease, int], Any]] = {
    "fail": lambda lease, worker: run(report("fail", lease, worker)),
    "snooze": lambda lease, worker: run(report("snooze", lease, worker)),
    "release": lambda lease, worker: run(report("release", lease, worker)),
    "reap_own": lambda lease, worker: run(report("reap_own", lease, worker)),
    "reap": lambda lease, worker: reaped(lease),
    "take_back": lambda lease, worker: run(making.taken_back(lease, worker)),
}
RESTING: dict[str, Callable[[int], Verb[Any]]] = {
    "cancel": lambda job_id: operate.cancel([job_id], authority=SYSTEM),
    "quarantine": lambda job_id: operate.quarantine([job_id], authority=SYSTEM, by="kim"),
    "deadline": lambda job_id: upkeep.expire(authority=SYSTEM),
    "unknown task": lambda job_id: upkeep.quarantine_unknown(authority=SYSTEM, seconds=0),
    "superseded": lambda job_id: enqueue(
        new_job(key="k", on_conflict=OnConflict.REPLACE, queue="mail"), authority=SYSTEM
    ),
}


@pytest.mark.requirement("N16")
@pytest.mark.parametrize("way", sorted(WAITING_AGAIN))
def test_a_job_that_waits_for_its_next_run_holds_the_line(
    way: str, perform: Perform, worker: int, other: int
) -> None:
    sequential()
    [first] = enqueued()
    [urgent] = enqueued(priority=9, due_in=3600)
    enqueued()
    [lease] = held(worker, lease_seconds=0.01 if way == "reap" else 30.0)
    now_due(urgent)
    run(upkeep.stage(authority=SYSTEM))
    WAITING_AGAIN[way](lease, worker)
    assert slots() == [lease]
    perform(upkeep.reap(authority=SYSTEM))
    if way != "release":
        assert perform(claim(other, n=5)) == []
        now_due(first)
        run(upkeep.stage(authority=SYSTEM))
    assert ids(perform(claim(other, n=5))) == [first]
    assert slots() == [(first, 2)]
    assert perform(report("complete", lease, worker)).settled == set()
    assert slots() == [(first, 2)]
    run(report("complete", Lease(first, 2), other))
    assert ids(perform(claim(worker, n=5))) == [urgent]


@pytest.mark.requirement("N16")
@pytest.mark.parametrize("way", sorted(RESTING))
def test_when_the_job_that_holds_the_line_rests_the_line_goes_on(
    way: str, perform: Perform, worker: int, ear: Ear
) -> None:
    a_worker(idle=True)
    sequential()
    assert ear.heard() == "100 default"
    [first] = enqueued(key="k")
    assert ear.heard() == "0 default"
    [lease] = held(worker)
    run(report("release", lease, worker))
    assert ear.heard() == "0 default"
    [second] = enqueued()
    assert ear.heard() == "0 default"
    if way == "deadline":
        execute("update shiftboss_job set deadline = now() - interval '1 s' where id = %s", first)
    if way == "unknown task":
        execute("update shiftboss_job set task = 'gone' where id = %s", first)
        execute("update shiftboss_worker set started_at = now() - interval '1 s'")
        execute("update shiftboss_job set due_at = now() + interval '1 hour' where id = %s", second)
    perform(RESTING[way](first))
    assert slots() == free(1)
    assert ear.heard() == "100 default"
    assert ids(perform(claim(worker, n=5))) == [second]


@pytest.mark.requirement("N16")
@pytest.mark.parametrize("verb", ["fail", "reap_own", "quarantine", "discard", "complete"])
def test_a_run_after_which_its_job_rests_lets_the_line_go_on(verb: str, perform: Perform, worker: int) -> None:
    sequential()
    enqueued(failure_limit=1, loss_limit=1)
    [second] = enqueued()
    [lease] = held(worker)
    perform(report(verb, lease, worker))
    assert slots() == free(1)
    assert ids(perform(claim(worker, n=5))) == [second]


@pytest.mark.requirement("N16")
@pytest.mark.parametrize("cancel", [False, True])
def test_a_job_that_was_lost_for_the_last_time_lets_the_line_go_on(
    cancel: bool, perform: Perform, worker: int
) -> None:
    sequential()
    enqueued(loss_limit=2 if cancel else 1)
    [second] = enqueued()
    [lease] = held(worker, lease_seconds=0.01)
    if cancel:
        run(operate.cancel([lease.job_id], authority=SYSTEM))
    reaped(lease)
    assert slots() == free(1)
    assert ids(perform(claim(worker))) == [second]


@pytest.mark.requirement("N16")
def test_a_job_of_later_that_has_never_run_does_not_hold_the_line(perform: Perform, worker: int) -> None:
    sequential()
    [later] = enqueued(due_in=3600, priority=9)
    [now] = enqueued()
    assert ids(perform(claim(worker, n=5))) == [now]
    assert state(later) == "scheduled"


@pytest.mark.requirement("N16")
def test_the_head_of_the_line_is_never_passed(perform: Perform, worker: int, connect: Any) -> None:
    sequential()
    [strange] = enqueued(task="shop.tasks.unknown")
    [second] = enqueued()
    # Not by who does not know its task, nor by who finds it in somebody's hands.
    assert perform(claim(worker, n=5)) == []
    operator: Session = connect()
    operator.execute("begin")
    operator.execute("select from shiftboss_job where id = %s for update", [strange])
    assert perform(claim(worker, n=5, tasks=[TASK, "shop.tasks.unknown"])) == []
    operator.execute("rollback")
    assert ids(perform(claim(worker, n=5, tasks=[TASK, "shop.tasks.unknown"]))) == [strange]
    run(report("complete", Lease(strange, 1), worker))
    # What will not run any more is passed.
    [late] = enqueued(deadline_in=-1, priority=3)
    assert ids(perform(claim(worker, n=5))) == [second]
    assert state(late) == "available"


@pytest.mark.requirement("N16")
def test_who_holds_the_line_is_not_claimed_after_its_deadline_nor_while_the_queue_is_paused(
    perform: Perform, worker: int
) -> None:
    sequential()
    [job] = enqueued()
    [lease] = held(worker)
    run(report("release", lease, worker))
    run(queues.pause("default", authority=SYSTEM, by="kim", reason="deploy"))
    assert perform(claim(worker)) == []
    run(queues.resume("default", authority=SYSTEM))
    execute("update shiftboss_job set deadline = now() - interval '1 s' where id = %s", job)
    assert perform(claim(worker)) == []


@pytest.mark.requirement("N16")
def test_a_queue_that_becomes_sequential_waits_for_all_that_runs(perform: Perform, worker: int) -> None:
    limited(3)
    enqueued(5)
    first, second, third = held(worker, 3)
    sequential()
    # Retries of several: only one of them can hold the line, the others go back into it.
    run(report("release", [first, second], worker))
    assert perform(claim(worker, n=5)) == []
    run(report("complete", third, worker))
    [next_job] = perform(claim(worker, n=5))
    assert next_job.id in (first.job_id, second.job_id)
    assert slots() == [next_job.lease]


def test_a_queue_that_is_sequential_no_longer_lets_its_line_go(perform: Perform, worker: int) -> None:
    sequential()
    jobs = enqueued(3)
    [lease] = held(worker)
    run(report("release", lease, worker))
    assert slots() == [lease]
    limited(2)
    assert slots() == free(2)
    assert ids(perform(claim(worker, n=5))) == jobs[:2]


def test_who_limits_after_somebody_else_hears_what_that_one_said(connect: Any) -> None:
    first: Session = connect()
    second: Session = connect()
    second.execute("set lock_timeout = '60s'")
    limited(3)
    first.execute("begin")
    first.run(queues.limit("default", Limit(5), authority=SYSTEM, by="kim"))

    def commit() -> None:
        waits = "select cardinality(pg_blocking_pids(%s)) > 0"
        wait_for(lambda: first.execute(waits, [second.pid])[0][0], seconds=30)
        first.execute("commit")

    before, _ = together(lambda: second.run(queues.limit("default", Limit(7), authority=SYSTEM, by="lee")), commit)
    assert before == Limit(5)


# -- between the question and the claim -------------------------------------------------------------------------


def amid(verb: Verb[Any], name: str, change: Callable[[], Any]) -> Verb[Any]:
    """The verb, and a change just before its statement of this name."""
    wish = next(verb)
    try:
        while True:
            if isinstance(wish, Call) and wish.statement.name == name:
                change()
            wish = verb.send((yield wish))
    except StopIteration as stop:
        return stop.value


def lowered(worker: int) -> None:
    """The limit of the queue is one lower than what ran in it, and all but one have ended."""
    leases = [Lease(*slot) for slot in slots() if slot != (None, None)]
    limited(2)
    run(report("complete", leases[:2], worker))


CHANGES: dict[str, Callable[[int], Any]] = {
    "paused": lambda worker: run(queues.pause("default", authority=SYSTEM, by="kim", reason="deploy")),
    "sequential": lambda worker: sequential(),
    "lowered": lowered,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_limited_queue_that_changes_amid_a_claim_is_claimed_by_what_holds_then(change: str, worker: int) -> None:
    limited(5, "mail")
    limited(3)
    enqueued(6)
    if change == "lowered":
        held(worker, 3)
    assert run(amid(claim(worker, n=5), "claim_limited", lambda: CHANGES[change](worker))) == []


@pytest.mark.requirement("N16")
@pytest.mark.parametrize("change", ["paused", "limited", "lowered"])
def test_a_sequential_queue_that_changes_amid_a_claim_is_claimed_by_what_holds_then(
    change: str, worker: int
) -> None:
    sequential("mail")
    sequential()
    enqueued(6)
    if change == "lowered":
        held(worker)
    changes: dict[str, Callable[[int], Any]] = {
        "paused": CHANGES["paused"],
        "limited": lambda _: limited(1),
        # As after a limit of two.
        "lowered": lambda _: execute("insert into shiftboss_slot (queue) values ('default')"),
    }
    assert run(amid(claim(worker, n=5), "claim_sequential", lambda: changes[change](worker))) == []


@pytest.mark.requirement("N16")
def test_a_free_slot_of_another_queue_is_none_of_this_one(perform: Perform, worker: int) -> None:
    sequential("mail")
    sequential()
    enqueued(3)
    held(worker)
    assert perform(claim(worker, n=5)) == []
    assert slots("mail") == free(1)


# -- locks -------------------------------------------------------------------------------------------------------


def test_neither_slots_nor_jobs_that_others_have_locked_are_waited_for(connect: Any, worker: int) -> None:
    keeper: Session = connect()
    stranger: Session = connect()
    limited(3)
    first, second, third, fourth = enqueued(4)
    stranger.execute("begin")
    stranger.execute("select from shiftboss_slot where id = (select min(id) from shiftboss_slot) for update")
    stranger.execute("select from shiftboss_job where id = %s for update", [second])
    assert ids(keeper.run(claim(worker, n=5))) == [first, third]
    stranger.execute("rollback")
    assert ids(keeper.run(claim(worker, n=5))) == [second]
    assert fourth


@pytest.mark.requirement("N16")
@pytest.mark.parametrize("table", ["slot", "job"])
def test_a_sequential_claim_waits_for_no_lock(table: str, connect: Any, worker: int) -> None:
    keeper: Session = connect()
    stranger: Session = connect()
    sequential()
    enqueued(2)
    stranger.execute("begin")
    stranger.execute(
        f"select from shiftboss_{table} where id = (select min(id) from shiftboss_{table}) for update"
    )
    assert keeper.run(claim(worker, n=5)) == []


@pytest.mark.parametrize("lock", ["queue", "slot", "job"])
def test_the_upkeep_of_slots_waits_for_no_lock(lock: str, connect: Any, worker: int) -> None:
    keeper: Session = connect()
    stranger: Session = connect()
    enqueued(2)
    first, second = held(worker, 2)
    execute("insert into shiftboss_queue (name, concurrency) values ('default', 2), ('mail', 2)")
    execute("insert into shiftboss_slot (queue, job_id, fence) values ('default', 99, 1), ('mail', 98, 1)")
    which = {
        "queue": "select from shiftboss_queue where name = 'default' for update",
        "slot": "select from shiftboss_slot where job_id = 99 for update",
        "job": f"select from shiftboss_job where id = {first.job_id} for update",
    }[lock]
    stranger.execute("begin")
    stranger.execute(which)
    keeper.run(upkeep.reap(authority=SYSTEM))
    assert slots("mail") == free(2)
    assert ((99, 1) in slots()) == (lock != "job")
    assert (first in slots(), second in slots()) == (lock != "job", True)


# -- races ---------------------------------------------------------------------------------------------------


def test_claims_of_many_workers_never_take_more_than_the_slots(connect: Any) -> None:
    limited(3)
    sessions: list[tuple[Session, int]] = [(connect(), a_worker()) for _ in range(3)]
    for _ in range(40):
        enqueued(5)
        answers = together(*(lambda s=s, w=w: s.run(claim(w, n=2)) for s, w in sessions))
        leases = [job.lease for jobs in answers for job in jobs]
        assert len(leases) <= 3
        assert [slot for slot in slots() if slot != (None, None)] == sorted(leases)
        assert run(claim(sessions[0][1], n=5)) or len(leases) == 3
        ends = [
            lambda s=s, w=w, jobs=jobs: s.run(report("complete", [job.lease for job in jobs], w))
            for (s, w), jobs in zip(sessions, answers, strict=True)
        ]
        together(*ends)
        execute("delete from shiftboss_job")
        run(upkeep.reap(authority=SYSTEM))
        assert slots() == free(3)


def running_with_slots() -> tuple[int, int]:
    """How many jobs run, and how many of them hold the slot that they say."""
    [[n, with_slots]] = rows(
        "select count(*), count(s.id) from shiftboss_job j left join shiftboss_slot s"
        " on s.id = j.slot_id and s.job_id = j.id and s.fence = j.fence where j.state = 'running'"
    )
    return n, with_slots


@pytest.mark.requirement("P6")
def test_a_limit_that_changes_amid_claims_and_ends_is_never_exceeded(connect: Any) -> None:
    sessions: list[tuple[Session, int]] = [(connect(), a_worker()) for _ in range(2)]
    operator: Session = connect()
    keeper: Session = connect()
    limited(3)
    have: dict[int, list[Lease]] = {0: [], 1: []}

    def work(index: int) -> None:
        session, worker = sessions[index]
        have[index] += [job.lease for job in session.run(claim(worker, n=2))]
        if have[index]:
            settled = session.run(report("complete", have[index].pop(0), worker))
            assert settled.settled
        have[index] += [job.lease for job in session.run(claim(worker, n=1))]

    sizes, n_before = [1, 3, 2, 4, 1, 2], 0
    for turn in range(100):
        enqueued(3)
        size, before = sizes[turn % len(sizes)], sizes[(turn - 1) % len(sizes)] if turn else 3
        together(
            lambda: work(0),
            lambda: work(1),
            lambda size=size: operator.run(queues.limit("default", Limit(size), authority=SYSTEM, by="kim")),
            lambda: keeper.run(upkeep.reap(authority=SYSTEM)),
        )
        n, with_slots = running_with_slots()
        assert n == with_slots <= max(size, before, n_before)
        n_before = n
        if n > size:
            # Above the limit nothing more is claimed.
            assert sessions[0][0].run(claim(sessions[0][1], n=5)) == []
    limited(2)
    for index, (_, worker) in enumerate(sessions):
        run(report("complete", have[index], worker))
    run(upkeep.reap(authority=SYSTEM))
    assert slots() == free(2)


@pytest.mark.requirement("N16")
def test_workers_that_race_for_a_sequential_queue_keep_its_order(connect: Any) -> None:
    sequential()
    sessions: list[tuple[Session, int]] = [(connect(), a_worker()) for _ in range(3)]
    jobs = enqueued(120)
    order: list[int] = []
    while len(order) < len(jobs):
        answers = together(*(lambda s=s, w=w: s.run(claim(w, n=3)) for s, w in sessions))
        leases = [(job.lease, at) for at, claimed_jobs in enumerate(answers) for job in claimed_jobs]
        assert len(leases) <= 1
        if not leases:
            continue  # somebody had the slot locked at that moment
        [(lease, at)] = leases
        again = len(order) % 7 == 3 and lease.fence == 1
        run(report("release" if again else "complete", lease, sessions[at][1]))
        if not again:
            order.append(lease.job_id)
    assert order == jobs
