"""Keys: at most one live job outside the quarantine has one, whoever comes when."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from shiftboss import Owner
from shiftboss.queue.authority import MAX_OWNER_LENGTH
from shiftboss.queue.contract import Lease
from shiftboss.queue.errors import InvalidJob, KeyHeld
from shiftboss.queue.keys import MAX_KEY_LENGTH, Scope, read_key
from shiftboss.queue.states import State
from shiftboss.queue.store import operate, upkeep
from shiftboss.queue.store.enqueue import Enqueued, NewJob, OnConflict, enqueue, enqueue_many
from shiftboss.queue.store.operate import Limits, Unchanged, Why
from shiftboss.queue.store.statement import Atomic, Call, Verb, Wish, run
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    a_worker,
    claim,
    claimed,
    enqueued,
    execute,
    finished,
    live,
    new_job,
    report,
    rows,
    running,
    scalar,
    state,
    wait_for_expiry,
)
from tests.store.sessions import Session, together
from tests.store.test_locks import locked
from tests.store.test_upkeep import now_due
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("P2", "N5")

LIMITS = Limits(failures=5, losses=3, by_task={})
ROUNDS = 200
WAITS = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"


def keyed(key: str = "k1", on_conflict: str = "existing", **how: Any) -> NewJob:
    """A job with a key."""
    return new_job(key=key, on_conflict=OnConflict(on_conflict), **how)


def holders(key: str = "system:k1") -> list[tuple[int, str]]:
    """The live jobs that hold a key, and their states."""
    return rows(
        "select id, state from shiftboss_job where key = %s and state <> 'quarantined' and not follow_up"
        " order by id",
        key,
    )


def an_answer(session: Session, job: NewJob) -> Enqueued | KeyHeld:
    """What the client is told."""
    try:
        answer: Enqueued = session.run(enqueue(job, authority=SYSTEM))
    except KeyHeld as held:
        return held
    return answer


# One after the other


def waiting(worker: int) -> int:
    """The holder waits."""
    return enqueued(key="k1", due_in=3600)[0]


def being_run(worker: int) -> int:
    """The holder runs."""
    return running(worker, key="k1")[0].job_id


def being_retried(worker: int) -> int:
    """The holder has failed and is retried."""
    [held] = running(worker, key="k1")
    run(report("fail", held, worker))
    return held.job_id


HOLDERS: list[Callable[[int], int]] = [waiting, being_run, being_retried]


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_held_key_is_answered_with_its_holder(
    holder: Callable[[int], int], perform: Perform, worker: int
) -> None:
    job_id = holder(worker)
    before = live(job_id) or {}
    answer = perform(enqueue(keyed(), authority=SYSTEM))
    assert answer == Enqueued(job_id, State(before["state"]), before["enqueued_at"], existing=True)
    with pytest.raises(KeyHeld, match=f"job {job_id}") as refused:
        perform(enqueue(keyed(on_conflict="refuse"), authority=SYSTEM))
    assert (refused.value.holder, refused.value.key) == (job_id, "k1")
    assert live(job_id) == before


@pytest.mark.parametrize("holder", [waiting, being_retried])
def test_a_waiting_holder_is_replaced(holder: Callable[[int], int], perform: Perform, worker: int) -> None:
    job_id = holder(worker)
    [bystander] = enqueued(key="k2")
    answer = perform(enqueue(keyed(on_conflict="replace", priority=4), authority=SYSTEM))
    assert answer == Enqueued(answer.id, State.AVAILABLE, answer.enqueued_at)
    row = finished(job_id) or {}
    assert (row["state"], row["cancel_cause"]) == ("cancelled", "superseded")
    assert holders() == [(answer.id, "available")]
    assert (live(answer.id) or {})["priority"] == 4
    assert state(bystander) == "available"


def test_a_running_holder_is_not_replaced(perform: Perform, worker: int) -> None:
    job_id = being_run(worker)
    with pytest.raises(KeyHeld, match="running") as refused:
        perform(enqueue(keyed(on_conflict="replace"), authority=SYSTEM))
    assert refused.value.holder == job_id
    assert holders() == [(job_id, "running")]


def test_a_later_job_may_replace_an_earlier_one(perform: Perform) -> None:
    enqueued(key="k1")
    answer = perform(enqueue(keyed(on_conflict="replace", due_in=3600), authority=SYSTEM))
    assert answer.state is State.SCHEDULED
    assert holders() == [(answer.id, "scheduled")]


@pytest.mark.parametrize("end", ["complete", "discard"])
def test_a_key_is_free_again_after_the_end(end: str, perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    run(report(end, held, worker))
    answer = perform(enqueue(keyed(), authority=SYSTEM))
    assert not answer.existing
    assert answer.id != held.job_id


def test_a_job_in_quarantine_does_not_hold_its_key(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1", failure_limit=1)
    run(report("fail", held, worker))
    answer = perform(enqueue(keyed(on_conflict="refuse"), authority=SYSTEM))
    assert answer.id != held.job_id
    [other] = perform(enqueue_many([keyed(key="k1")], authority=SYSTEM))
    assert (other.id, other.existing) == (answer.id, True)


@pytest.mark.requirement("L29", "N14")
def test_the_key_of_an_orphaned_job_is_free_when_it_is_settled(perform: Perform, worker: int) -> None:
    [lost] = running(worker, key="k1", lease_seconds=0.01, loss_limit=1)
    wait_for_expiry(lost)
    perform(upkeep.reap(authority=SYSTEM))
    answers = [perform(enqueue(keyed(), authority=SYSTEM)) for _ in range(5)]
    assert [answer.existing for answer in answers] == [False, True, True, True, True]
    assert {answer.id for answer in answers} == {scalar("select id from shiftboss_job where state = 'available'")}


@pytest.mark.requirement("N5")
def test_keys_of_two_owners_and_global_ones_never_meet(perform: Perform) -> None:
    who = [Owner("kim"), Owner("kim:k1"), Owner("lee"), SYSTEM]
    jobs = [perform(enqueue(keyed(), authority=authority)) for authority in who]
    jobs.append(perform(enqueue(keyed(key_scope=Scope.GLOBAL), authority=Owner("kim"))))
    assert not any(job.existing for job in jobs)
    again = perform(enqueue(keyed(key_scope=Scope.GLOBAL), authority=Owner("lee")))
    assert (again.id, again.existing) == (jobs[-1].id, True)
    assert {read_key(key).key for (key,) in rows("select key from shiftboss_job")} == {"k1"}


@pytest.mark.requirement("N6")
def test_asking_for_a_held_key_grants_nothing(perform: Perform) -> None:
    how = {"key_scope": Scope.GLOBAL}
    first = perform(enqueue(keyed(watchers=("sam",), **how), authority=Owner("kim")))
    perform(enqueue(keyed(watchers=("lee",), **how), authority=Owner("lee")))
    assert rows("select owner, watchers from shiftboss_job where id = %s", first.id) == [("kim", ["sam"])]


def test_who_may_not_cancel_the_holder_may_not_replace_it(perform: Perform) -> None:
    new = keyed(on_conflict="replace", key_scope=Scope.GLOBAL)
    first = perform(enqueue(keyed(key_scope=Scope.GLOBAL, watchers=("sam",)), authority=Owner("kim")))
    with pytest.raises(KeyHeld, match="another owner's"):
        perform(enqueue(new, authority=Owner("lee")))
    assert state(first.id) == "available"
    second = perform(enqueue(new, authority=Owner("sam")))  # who watches may cancel
    assert (state(first.id), second.existing) == ("cancelled", False)


def test_a_follow_up_that_is_not_due_may_be_expedited_once_the_key_is_free(perform: Perform, worker: int) -> None:
    holder = being_run(worker)
    later = perform(enqueue(keyed(follow_up=True, due_in=3600), authority=SYSTEM))
    [left] = perform(operate.expedite([later.id], authority=SYSTEM, by="kim")).unchanged
    assert (left.why, left.holder) == (Why.KEY_HELD, holder)
    run(operate.cancel([holder], authority=SYSTEM))
    [row] = rows("select fence from shiftboss_job where id = %s", holder)
    run(report("release", Lease(holder, row[0]), worker))
    [changed] = perform(operate.expedite([later.id], authority=SYSTEM, by="kim")).changed
    assert changed.after == "available"
    assert holders() == [(later.id, "available")]


BAD_KEYS = {
    "empty": "",
    "too long": "".join(f"{n:032x}" for n in range(100)),
    "with NUL": "a\x00b",
    "with a lone surrogate": "a\ud800",
    "no text": 7,
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_a_key_that_cannot_be_is_refused_before_the_database_sees_it(key: Any) -> None:
    with transaction.atomic():
        [before] = enqueued()
        with pytest.raises(InvalidJob, match="key"):
            run(enqueue(keyed(key=key), authority=SYSTEM))
        [after] = enqueued()
    assert [state(job_id) for job_id in (before, after)] == ["available"] * 2


def test_the_longest_key_of_the_longest_owner_fits_into_the_index(perform: Perform) -> None:
    rng = random.Random(7)
    four_bytes = "".join(chr(rng.randrange(0x10000, 0x10FFFF)) for _ in range(MAX_KEY_LENGTH + MAX_OWNER_LENGTH))
    key, owner = four_bytes[:MAX_KEY_LENGTH], Owner(four_bytes[MAX_KEY_LENGTH:])
    first = perform(enqueue(keyed(key=key), authority=owner))
    second = perform(enqueue(keyed(key=key[:-1] + "x"), authority=owner))
    assert first.id != second.id
    assert perform(enqueue(keyed(key=key), authority=owner)).id == first.id


# Follow-ups


def test_a_follow_up_waits_for_the_end_of_the_running_holder(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    first = perform(enqueue(keyed(follow_up=True, priority=3), authority=SYSTEM))
    assert (first.state, first.existing) == (State.SCHEDULED, False)
    second = perform(enqueue(keyed(follow_up=True), authority=SYSTEM))
    assert (second.id, second.existing) == (first.id, True)
    assert perform(enqueue(keyed(), authority=SYSTEM)).id == held.job_id
    now_due(first.id)
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    assert perform(claim(worker)) == []
    run(report("complete", held, worker))
    # It has its key already, and nobody comes between.
    assert perform(enqueue(keyed(), authority=SYSTEM)).id == first.id
    assert perform(enqueue_many([keyed()], authority=SYSTEM))[0].id == first.id
    assert perform(upkeep.stage(authority=SYSTEM)) == 1
    assert [job.id for job in perform(claim(worker))] == [first.id]
    assert (live(first.id) or {})["follow_up"] is False


@pytest.mark.parametrize("holder", [waiting, being_retried])
def test_a_follow_up_of_a_job_that_still_waits_is_that_job(
    holder: Callable[[int], int], perform: Perform, worker: int
) -> None:
    job_id = holder(worker)
    answer = perform(enqueue(keyed(follow_up=True), authority=SYSTEM))
    assert (answer.id, answer.existing) == (job_id, True)


def test_a_follow_up_of_nothing_is_a_job(perform: Perform) -> None:
    answer = perform(enqueue(keyed(follow_up=True), authority=SYSTEM))
    assert (answer.state, (live(answer.id) or {})["follow_up"]) == (State.AVAILABLE, False)


def test_a_follow_up_is_replaced_by_a_follow_up(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    first = perform(enqueue(keyed(follow_up=True), authority=SYSTEM))
    second = perform(enqueue(keyed(follow_up=True, on_conflict="replace"), authority=SYSTEM))
    assert (finished(first.id) or {})["cancel_cause"] == "superseded"
    assert (second.state, (live(second.id) or {})["follow_up"]) == (State.SCHEDULED, True)
    with pytest.raises(KeyHeld) as refused:
        perform(enqueue(keyed(follow_up=True, on_conflict="refuse"), authority=SYSTEM))
    assert refused.value.holder == second.id
    run(report("complete", held, worker))
    assert perform(upkeep.stage(authority=SYSTEM)) == 1


def test_a_follow_up_waits_on_while_its_holder_is_retried(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    [follow_up] = enqueued(key="k1", follow_up=True)
    run(report("fail", held, worker))
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    now_due(held.job_id)
    assert perform(upkeep.stage(authority=SYSTEM)) == 1
    [again] = claimed(worker)
    assert again.id == held.job_id
    run(report("quarantine", again.lease, worker))
    assert perform(upkeep.stage(authority=SYSTEM)) == 1
    assert state(follow_up) == "available"


def test_a_follow_up_with_a_time_of_its_own_keeps_it(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    [later] = enqueued(key="k1", follow_up=True, due_in=3600)
    run(report("complete", held, worker))
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    assert state(later) == "scheduled"
    now_due(later)
    assert perform(upkeep.stage(authority=SYSTEM)) == 1


def test_follow_ups_of_other_keys_and_plain_jobs_are_left_alone(perform: Perform, worker: int) -> None:
    running(worker, key="k1")
    mine = enqueued(key="k1", follow_up=True)
    [free] = running(worker, key="k2")
    other = enqueued(key="k2", follow_up=True)
    plain = enqueued(due_in=3600, key="k3")
    run(report("complete", free, worker))
    assert perform(upkeep.stage(authority=SYSTEM)) == 1
    assert [state(job_id) for [job_id] in (mine, other, plain)] == ["scheduled", "available", "scheduled"]


def test_a_follow_up_in_quarantine_holds_nothing_up(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    [follow_up] = enqueued(key="k1", follow_up=True)
    run(operate.quarantine([follow_up], authority=SYSTEM, by="kim"))
    [second] = enqueued(key="k1", follow_up=True)
    assert second != follow_up
    run(operate.cancel([second], authority=SYSTEM))
    run(report("complete", held, worker))
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    assert state(follow_up) == "quarantined"
    one = perform(enqueue(keyed(), authority=SYSTEM))
    [other] = perform(enqueue_many([keyed(key="k1")], authority=SYSTEM))
    assert (one.existing, other.id) == (False, one.id)
    answer = perform(operate.reinstate([follow_up], authority=SYSTEM, by="kim", limits=LIMITS))
    assert answer.unchanged == (Unchanged(follow_up, Why.KEY_HELD, State.QUARANTINED, one.id),)
    run(operate.cancel([one.id], authority=SYSTEM))
    perform(operate.reinstate([follow_up], authority=SYSTEM, by="kim", limits=LIMITS))
    assert holders() == [(follow_up, "available")]


@pytest.mark.parametrize("meanwhile", ["put off", "held back", "taken over", "cancelled"])
def test_a_follow_up_is_staged_only_as_it_is_by_then(meanwhile: str, perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    [follow_up] = enqueued(key="k1", follow_up=True)
    run(report("complete", held, worker))
    verb = upkeep.stage(authority=SYSTEM)
    next(verb)
    verb.send([])
    # Which follow-ups are free has been read; this one goes another way before it is staged.
    match meanwhile:
        case "put off":
            execute("update shiftboss_job set due_at = now() + interval '1 hour' where id = %s", follow_up)
        case "held back":
            run(operate.quarantine([follow_up], authority=SYSTEM, by="kim"))
        case "taken over":
            run(upkeep.stage(authority=SYSTEM))
            claimed(worker)
        case "cancelled":
            run(operate.cancel([follow_up], authority=SYSTEM))
    before = live(follow_up), finished(follow_up)
    wish = verb.send([follow_up])
    assert isinstance(wish, Atomic)
    assert perform(wish.verb) == 0
    assert (live(follow_up), finished(follow_up)) == before
    verb.close()


# What was read of a holder is never trusted by what is written


def before(statement: str, verb: Verb[Any], perform: Perform) -> Wish:
    """Run a verb until it is about to send this statement, or something in a transaction of its own."""
    wish = next(verb)
    while isinstance(wish, Call) and wish.statement.name != statement:
        wish = verb.send(perform(_one(wish)))
    return wish


def to_its_end(wish: Wish, verb: Verb[Any], perform: Perform) -> Any:
    """Run the rest of a verb; its answer."""
    while True:
        try:
            wish = verb.send(perform(_one(wish)))
        except StopIteration as end:
            return end.value


def _one(wish: Wish) -> Verb[Any]:
    return (yield wish)


def test_a_follow_up_whose_holder_has_just_ended_is_a_job_of_its_own(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    running(worker, key="k2")
    verb = enqueue(keyed(follow_up=True), authority=SYSTEM)
    wish = before("enqueue_follow_up", verb, perform)
    run(report("complete", held, worker))
    answer = to_its_end(wish, verb, perform)
    assert (answer.state, (live(answer.id) or {})["follow_up"]) == (State.AVAILABLE, False)


def test_a_follow_up_whose_holder_has_just_failed_is_that_one(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    verb = enqueue(keyed(follow_up=True), authority=SYSTEM)
    wish = before("enqueue_follow_up", verb, perform)
    run(report("fail", held, worker))
    answer = to_its_end(wish, verb, perform)
    assert (answer.id, answer.state, answer.existing) == (held.job_id, State.RETRYABLE, True)


def test_a_holder_that_was_just_claimed_is_not_replaced(perform: Perform, worker: int) -> None:
    [job_id] = enqueued(key="k1")
    verb = enqueue(keyed(on_conflict="replace"), authority=SYSTEM)
    wish = before("replace", verb, perform)
    claimed(worker)
    with pytest.raises(KeyHeld, match="running"):
        to_its_end(wish, verb, perform)
    assert holders() == [(job_id, "running")]


def test_a_replaced_holder_does_not_take_its_follow_up_with_it(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    [follow_up] = enqueued(key="k1", follow_up=True)
    run(report("fail", held, worker))
    answer = perform(enqueue(keyed(on_conflict="replace"), authority=SYSTEM))
    assert state(held.job_id) == "cancelled"
    assert state(follow_up) == "scheduled"
    assert holders() == [(answer.id, "available")]


def test_of_a_key_that_is_in_quarantine_too_the_live_holder_is_named(perform: Perform, worker: int) -> None:
    for _ in range(2):
        [held] = running(worker, key="k1")
        enqueued(key="k1", follow_up=True)
        run(operate.quarantine([enqueued(key="k1", follow_up=True)[0]], authority=SYSTEM, by="kim"))
        run(report("quarantine", held, worker))
    [holder] = running(worker, key="k1")
    [follow_up] = enqueued(key="k1", follow_up=True)
    assert perform(enqueue(keyed(), authority=SYSTEM)).id == holder.job_id
    assert perform(enqueue(keyed(follow_up=True), authority=SYSTEM)).id == follow_up
    for _ in range(2):
        # Younger rows of the same key, in whatever order they are found.
        [other] = running(worker, key="k2", priority=1)
        run(report("quarantine", other, worker))
    enqueued(key="k2", due_in=60)
    assert perform(enqueue(keyed(key="k2"), authority=SYSTEM)).state is State.SCHEDULED


# A key that is held when its job comes back


@pytest.mark.requirement("L29")
def test_a_job_whose_key_is_held_is_not_reinstated_and_the_holder_is_named(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1", failure_limit=1)
    run(report("fail", held, worker))
    [holder] = enqueued(key="k1")
    [free] = running(worker, 1, key="k2", failure_limit=1, priority=1)
    run(report("fail", free, worker))
    before = live(held.job_id)
    answer = perform(operate.reinstate([held.job_id, free.job_id], authority=SYSTEM, by="kim", limits=LIMITS))
    assert [job.id for job in answer.changed] == [free.job_id]
    assert answer.unchanged == (Unchanged(held.job_id, Why.KEY_HELD, State.QUARANTINED, holder),)
    assert live(held.job_id) == before


@pytest.mark.requirement("L29")
def test_a_follow_up_that_waits_does_not_hold_the_key_of_a_job_in_quarantine(
    perform: Perform, worker: int
) -> None:
    [held] = running(worker, key="k1")
    [follow_up] = enqueued(key="k1", follow_up=True)
    run(report("quarantine", held, worker))
    answer = perform(operate.reinstate([held.job_id], authority=SYSTEM, by="kim", limits=LIMITS))
    assert [job.id for job in answer.changed] == [held.job_id]
    assert holders() == [(held.job_id, "available")]
    assert perform(upkeep.stage(authority=SYSTEM)) == 0
    assert state(follow_up) == "scheduled"


@pytest.mark.requirement("L29", "C4")
def test_a_job_that_is_only_locked_is_busy_whoever_else_has_its_key(connect: Any, worker: int) -> None:
    operator = connect()
    operator.execute("set lock_timeout = '300ms'")
    [waits] = enqueued(key="k2", due_in=3600)
    [held] = running(worker, key="k1")
    enqueued(key="k1", follow_up=True)
    run(report("quarantine", held, worker))
    with locked(waits, held.job_id):
        expedited = operator.run(operate.expedite([waits], authority=SYSTEM, by="kim"))
        reinstated = operator.run(operate.reinstate([held.job_id], authority=SYSTEM, by="kim", limits=LIMITS))
    assert expedited.unchanged == (Unchanged(waits, Why.BUSY, State.SCHEDULED),)
    assert reinstated.unchanged == (Unchanged(held.job_id, Why.BUSY, State.QUARANTINED),)


@pytest.mark.requirement("L29")
def test_of_two_with_one_key_one_is_reinstated_and_the_other_names_it(perform: Perform, worker: int) -> None:
    ids = []
    for _ in range(3):
        [held] = running(worker, key="k1", failure_limit=1)
        run(report("fail", held, worker))
        ids.append(held.job_id)
    answer = perform(operate.reinstate(ids, authority=SYSTEM, by="kim", limits=LIMITS))
    [changed] = answer.changed
    assert holders() == [(changed.id, "available")]
    assert {(job.why, job.holder) for job in answer.unchanged} == {(Why.KEY_HELD, changed.id)}
    assert len(answer.unchanged) == 2


@pytest.mark.requirement("L19")
def test_a_job_whose_key_is_held_is_not_rerun_and_the_holder_is_named(perform: Perform, worker: int) -> None:
    [held] = running(worker, key="k1")
    run(report("complete", held, worker))
    [holder] = enqueued(key="k1")
    answer = perform(operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS))
    assert answer == Unchanged(held.job_id, Why.KEY_HELD, State.COMPLETED, holder)
    assert holders() == [(holder, "available")]


@pytest.mark.requirement("L29", "L19")
@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("verb", ["reinstate", "rerun"])
def test_a_key_that_is_being_taken_is_waited_for(verb: str, end: str, connect: Any, worker: int) -> None:
    client, operator, watcher = connect(), connect(), connect()
    operator.execute("set lock_timeout = '10s'")
    [held] = running(worker, key="k1", failure_limit=1)
    run(report("fail" if verb == "reinstate" else "complete", held, worker))
    client.execute("begin")
    holder = client.run(enqueue(keyed(), authority=SYSTEM)).id

    def act() -> Any:
        if verb == "rerun":
            return operator.run(operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS))
        return operator.run(operate.reinstate([held.job_id], authority=SYSTEM, by="kim", limits=LIMITS))

    def end_it() -> None:
        wait_for(lambda: watcher.execute(WAITS, [operator.pid]) == [(True,)], seconds=20, every=0.005)
        client.execute(end)

    answer, _ = together(act, end_it)
    if end == "rollback":
        [(now, _)] = holders()
        assert now != holder
        return
    state_then = State.QUARANTINED if verb == "reinstate" else State.COMPLETED
    named = Unchanged(held.job_id, Why.KEY_HELD, state_then, holder)
    assert (answer if verb == "rerun" else answer.unchanged[0]) == named
    assert holders() == [(holder, "available")]


@pytest.mark.requirement("L29", "L19")
def test_reinstate_rerun_and_enqueue_at_one_moment_give_the_key_to_one(connect: Any, worker: int) -> None:
    sessions = [connect(), connect(), connect()]
    for _ in range(40):
        [done] = running(worker, key="k1")
        run(report("complete", done, worker))
        [held] = running(worker, key="k1", failure_limit=1)
        run(report("fail", held, worker))
        again, back, new = together(
            lambda done=done: sessions[0].run(operate.rerun(done.job_id, authority=SYSTEM, limits=LIMITS)),
            lambda held=held: sessions[1].run(
                operate.reinstate([held.job_id], authority=SYSTEM, by="kim", limits=LIMITS)
            ),
            lambda: an_answer(sessions[2], keyed(on_conflict="refuse")),
        )
        [(holder, _)] = holders()
        won = [isinstance(again, Enqueued), bool(back.changed), isinstance(new, Enqueued)]
        assert won.count(True) == 1
        # Whoever lost is told of the winner.
        named = [job.holder for job in (again, *back.unchanged, new) if isinstance(job, Unchanged | KeyHeld)]
        assert named == [holder, holder]
        execute("delete from shiftboss_job")


# At one moment


@pytest.mark.requirement("P2", "L30")
@pytest.mark.parametrize("policy", ["existing", "refuse", "replace"])
def test_two_enqueues_of_one_key_at_one_moment_make_one_job(policy: str, connect: Any) -> None:
    first, second = connect(), connect()
    for _ in range(ROUNDS):
        answers = together(
            lambda: an_answer(first, keyed(on_conflict=policy)),
            lambda: an_answer(second, keyed(on_conflict=policy)),
        )
        [(holder, _)] = holders()
        new = [answer for answer in answers if isinstance(answer, Enqueued) and not answer.existing]
        match policy:
            case "existing":
                assert [answer.id for answer in answers] == [holder, holder]
                assert len(new) == 1
            case "refuse":
                assert [answer.id for answer in new] == [holder]
                assert [answer.holder for answer in answers if isinstance(answer, KeyHeld)] == [holder]
            case "replace":
                ids = {answer.id for answer in new}
                assert len(ids) == 2
                [superseded] = ids - {holder}
                assert (finished(superseded) or {})["cancel_cause"] == "superseded"
        execute("delete from shiftboss_job")
        execute("delete from shiftboss_finished")


@pytest.mark.requirement("P2", "C7")
@pytest.mark.parametrize("policy", ["existing", "refuse", "replace"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_who_comes_second_waits_for_the_first_and_never_gets_a_ghost(end: str, policy: str, connect: Any) -> None:
    first, second, watcher = connect(), connect(), connect()
    second.execute("set lock_timeout = '10s'")
    first.execute("begin")
    early = first.run(enqueue(keyed(), authority=SYSTEM)).id

    def end_it() -> None:
        wait_for(lambda: watcher.execute(WAITS, [second.pid]) == [(True,)], seconds=20, every=0.005)
        first.execute(end)

    answer, _ = together(lambda: an_answer(second, keyed(on_conflict=policy)), end_it)
    [(holder, _)] = holders()
    if end == "rollback":
        assert isinstance(answer, Enqueued)
        assert (answer.id, answer.existing) == (holder, False)
        assert holder != early
    elif policy == "refuse":
        assert isinstance(answer, KeyHeld)
        assert answer.holder == holder == early
    else:
        assert isinstance(answer, Enqueued)
        assert answer.id == holder
        assert answer.existing == (policy == "existing")
        assert (holder == early) == (policy == "existing")


@pytest.mark.requirement("P2", "L30")
def test_a_replacement_and_a_claim_at_one_moment_never_leave_two(connect: Any, worker: int) -> None:
    client, keeper = connect(), connect()
    replaced = 0
    for n in range(100):
        [old] = enqueued(key="k1")

        def claim_then(statements: int = n % 8) -> Any:
            for _ in range(statements):
                keeper.execute("select 1")
            return keeper.run(claim(worker))

        answer, jobs = together(lambda: an_answer(client, keyed(on_conflict="replace")), claim_then)
        [(holder, _)] = holders()
        if isinstance(answer, KeyHeld):
            assert ([job.id for job in jobs], answer.holder, holder) == ([old], old, old)
        else:
            replaced += 1
            assert holder == answer.id
            assert [job.id for job in jobs] in ([], [holder])
            assert (finished(old) or {})["cancel_cause"] == "superseded"
        execute("delete from shiftboss_job")
        execute("delete from shiftboss_finished")
    assert replaced


@pytest.mark.requirement("P2", "L30")
def test_a_follow_up_and_the_end_of_its_holder_at_one_moment_lose_nothing(connect: Any, worker: int) -> None:
    client, keeper, third = connect(), connect(), connect()
    for n in range(100):
        [held] = running(worker, key="k1")
        answer, _, new = together(
            lambda: client.run(enqueue(keyed(follow_up=True), authority=SYSTEM)),
            lambda held=held: keeper.run(report("complete", held, worker)),
            lambda n=n: third.run(enqueue(keyed(), authority=SYSTEM)) if n % 2 else None,
        )
        # It is the follow-up, or a job of its own where it came after the end; or it met the one that came new.
        assert answer.id != held.job_id
        wanted = {answer.id, *([new.id] if new and new.id != held.job_id else [])}
        assert state(held.job_id) == "completed"
        ran: list[int] = []
        while scalar("select count(*) from shiftboss_job"):
            assert len(holders()) <= 1
            run(upkeep.stage(authority=SYSTEM))
            [job] = claimed(worker)
            assert rows("select count(*) from shiftboss_job where state = 'running'") == [(1,)]
            run(report("complete", job.lease, worker))
            ran.append(job.id)
        assert set(ran) == wanted
        assert len(ran) == len(wanted)


@pytest.mark.requirement("P2", "L30")
def test_staging_a_follow_up_beside_new_jobs_of_its_key_never_makes_two(connect: Any, worker: int) -> None:
    client, first, second = connect(), connect(), connect()
    for _ in range(60):
        [held] = running(worker, key="k1")
        [follow_up] = enqueued(key="k1", follow_up=True)
        run(report("complete", held, worker))
        answer, *staged = together(
            lambda: client.run(enqueue(keyed(), authority=SYSTEM)),
            lambda: first.run(upkeep.stage(authority=SYSTEM)),
            lambda: second.run(upkeep.stage(authority=SYSTEM)),
        )
        assert (answer.id, answer.existing) == (follow_up, True)
        assert sum(staged) == 1
        assert holders() == [(follow_up, "available")]
        execute("delete from shiftboss_job")


@pytest.mark.requirement("P5", "P2", "L30")
@pytest.mark.parametrize("policy", ["existing", "replace"])
def test_two_bulks_of_the_same_keys_in_opposite_orders_never_deadlock(policy: str, connect: Any) -> None:
    first, second = connect(), connect()
    keys = [f"k{n:03}" for n in range(12)]
    for n in range(100):
        jobs = [keyed(key=key, on_conflict=policy) for key in keys]
        for session in (first, second):
            session.execute("set deadlock_timeout = '20ms'")
        enqueued(key=keys[n % 12])
        mine, yours = together(
            lambda jobs=jobs: first.run(enqueue_many(jobs, authority=SYSTEM)),
            lambda jobs=jobs: second.run(enqueue_many(jobs[::-1], authority=SYSTEM)),
        )
        held = dict(rows("select key, id from shiftboss_job"))
        assert len(held) == 12
        order = [held[f"system:{key}"] for key in keys]
        if policy == "existing":
            assert [answer.id for answer in mine] == order
            assert [answer.id for answer in yours] == order[::-1]
        else:
            assert {answer.id for answer in (*mine, *yours)} >= set(order)
        execute("delete from shiftboss_job")
        execute("delete from shiftboss_finished")


@pytest.mark.requirement("P5", "L30")
def test_a_bulk_beside_updates_of_the_same_jobs_in_another_order_never_deadlocks(
    connect: Any, worker: int
) -> None:
    client, keeper = connect(), connect()
    keys = [f"k{n:03}" for n in range(12)]
    leases = []
    for key in keys:
        leases += running(worker, key=key)
    ids = [held.job_id for held in leases]
    for n in range(100):
        client.execute("set deadlock_timeout = '20ms'")

        def beat(n: int = n) -> Any:
            keeper.execute("begin")
            for start in (0, 6):
                keeper.run(operate.cancel(ids[start : start + 6], authority=SYSTEM, cause=f"round {n}"))
            keeper.execute("commit")

        answers, _ = together(
            lambda: client.run(enqueue_many([keyed(key=key) for key in keys[::-1]], authority=SYSTEM)), beat
        )
        assert [answer.id for answer in answers] == ids[::-1]
        assert all(answer.existing for answer in answers)
    assert a_worker() > worker
