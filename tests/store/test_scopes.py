"""Staff who are narrowed to some queues and owners: what they see of the record, and what they change.

The guards are parts of the statements, so they are tried in one way of running these.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from shiftboss import NotAllowed, Owner, Scoped
from shiftboss.queue.authority import reach_of
from shiftboss.queue.errors import NoSuchBackfill
from shiftboss.queue.jobs import Limits
from shiftboss.queue.states import LIVE, QuarantineReason, State
from shiftboss.queue.store import audit, backfill, histograms, many, operate, queues, read, waiting, workers
from shiftboss.queue.store.audit import Actor, Entry
from shiftboss.queue.store.many import Held
from shiftboss.queue.store.operate import Answer, Matching, Unchanged, Why
from shiftboss.queue.store.queues import Limit
from shiftboss.queue.store.search import Search, search
from shiftboss.queue.store.statement import Verb, run
from tests.store.making import SYSTEM, a_worker, claimed, enqueued, events, execute, report, rows, whole

pytestmark = pytest.mark.requirement("C4", "N4")

KIM, LEE = Owner("kim"), Owner("lee")
LIMITS = Limits(failures=4, losses=2, by_task={})
LATER = datetime(2030, 1, 1, 12, tzinfo=UTC)

SCOPES = {
    "a queue": Scoped(queues=["mail"]),
    "queues and owners": Scoped(queues=["mail", "ads"], owners=["kim"]),
    "owners": Scoped(owners=["kim", "sam"]),
}
"""Scopes that hold the jobs of `inside`, and none of `outside`."""
EACH = pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)


def inside(n: int = 1, **how: Any) -> list[int]:
    """Jobs that all the scopes hold."""
    return enqueued(n, queue="mail", authority=KIM, **how)


def outside(scope: Scoped, **how: Any) -> list[int]:
    """Jobs that a scope does not hold, each for another reason."""
    made = []
    if scope.queues is not None:
        made += enqueued(queue="reports", authority=KIM, **how)
    if scope.owners is not None:
        made += enqueued(queue="mail", authority=LEE, **how) + enqueued(queue="mail", **how)
        # To watch a job is not to own it.
        made += enqueued(queue="mail", authority=LEE, watchers=("kim",), **how)
    return made


VERBS: dict[str, tuple[State, Callable[..., Verb[Answer]]]] = {
    "cancel": (State.SCHEDULED, operate.cancel),
    "expedite": (State.SCHEDULED, partial(operate.expedite, by="pat")),
    "quarantine": (State.SCHEDULED, partial(operate.quarantine, by="pat")),
    "reprioritise": (State.SCHEDULED, partial(operate.reprioritise, by="pat", priority=7)),
    "reschedule": (State.SCHEDULED, partial(operate.reschedule, by="pat", due_at=LATER)),
    "cancel running": (State.RUNNING, operate.cancel),
    "cancel held": (State.QUARANTINED, operate.cancel),
    "reinstate": (State.QUARANTINED, partial(operate.reinstate, by="pat", limits=LIMITS)),
    "discard": (State.QUARANTINED, operate.discard),
    "hold again": (
        State.AVAILABLE,
        partial(operate.hold_again, by="pat", since=LATER, reason=QuarantineReason.OPERATOR),
    ),
}
EACH_VERB = pytest.mark.parametrize("verb", VERBS)


def brought(ids: list[int], to: State) -> None:
    """Bring jobs that are due to a state."""
    if to is State.SCHEDULED:
        execute("update shiftboss_job set state = 'scheduled', due_at = now() + '1 h' where id = any(%s)", ids)
    if to is State.QUARANTINED:
        run(operate.quarantine(ids, authority=SYSTEM, by="kim"))
    if to is State.RUNNING or to is State.COMPLETED:
        worker = a_worker("mail", "reports")
        for queue in ("mail", "reports"):
            of_it = len(rows("select from shiftboss_job where queue = %s and id = any(%s)", queue, ids))
            taken = claimed(worker, of_it, queue=queue) if of_it else []
            if to is State.COMPLETED:
                run(report("complete", [job.lease for job in taken], worker))


@EACH
@EACH_VERB
def test_a_verb_changes_what_is_within_and_knows_nothing_of_the_rest(verb: str, scope: Scoped) -> None:
    begin, do = VERBS[verb]
    mine, theirs = inside(2), outside(scope)
    brought([*mine, *theirs], begin)
    before = [(whole(job_id), events(job_id)) for job_id in theirs]
    answer = run(do([*theirs, *mine], authority=scope))
    assert [job.id for job in answer.changed] == mine
    assert answer.unchanged == tuple(Unchanged(job_id, Why.MISSING) for job_id in theirs)
    assert [(whole(job_id), events(job_id)) for job_id in theirs] == before


@EACH
@pytest.mark.parametrize("state", [State.COMPLETED, State.QUARANTINED])
def test_only_what_is_within_runs_again(state: State, scope: Scoped) -> None:
    [mine], theirs = inside(), outside(scope)
    brought([mine, *theirs], state)
    edit = partial(operate.edit, args='{"args": [], "kwargs": {}}', limits=LIMITS, authority=scope)
    for job_id in theirs:
        assert run(edit(job_id)) == Unchanged(job_id, Why.MISSING)
        assert run(operate.rerun(job_id, authority=scope, limits=LIMITS)) == Unchanged(job_id, Why.MISSING)
    standings = run(many.named([mine, *theirs], authority=SYSTEM))
    run(many.rerun(standings, authority=scope, limits=LIMITS))
    run(edit(mine))
    run(operate.rerun(mine, authority=scope, limits=LIMITS))
    copied = rows("select distinct rerun_of from shiftboss_job where rerun_of is not null")
    assert copied == [(mine,)]
    [again] = [one.id for one in run(many.named([mine], authority=scope))]
    assert again == mine
    assert [one.state for one in run(many.named(theirs, authority=scope))] == [None] * len(theirs)


@EACH
def test_what_is_held_of_the_rest_is_not_waited_for(scope: Scoped, connect: Any) -> None:
    theirs = outside(scope)
    session = connect()
    session.execute("begin")
    session.run(operate.hold(theirs, authority=scope))
    # Nothing of it is locked.
    assert rows("select id from shiftboss_job where id = any(%s) for update nowait", theirs)
    session.execute("rollback")


@EACH
@pytest.mark.parametrize("state", [State.SCHEDULED, State.RUNNING, State.QUARANTINED, State.COMPLETED])
def test_what_is_read_is_what_is_within(state: State, scope: Scoped) -> None:
    mine, theirs = inside(2), outside(scope)
    brought([*mine, *theirs], state)
    newest = mine[::-1]
    assert [job.id for job in run(read.jobs(authority=scope, state=state))] == newest
    assert [job.id for job in run(read.jobs(authority=scope, state=state, after_id=1))] == newest
    found = run(search(Search(states=frozenset({state})), authority=scope, limit=50))
    assert [row.job.id for row in found.rows] == newest
    assert [row.job.id for row in run(search(Search(), authority=scope, limit=50)).rows] == newest
    assert {run(read.job(authority=scope, job_id=job_id)) for job_id in theirs} == {None}
    assert [run(read.job(authority=scope, job_id=job_id)).id for job_id in mine] == mine
    for job_id in theirs:
        assert run(read.events(authority=scope, job_id=job_id)) == []
    if state is State.QUARANTINED:
        assert all(run(read.events(authority=scope, job_id=job_id)) for job_id in mine)


@EACH
def test_attempts_are_those_of_jobs_within(scope: Scoped) -> None:
    mine, theirs = inside(failure_limit=1), outside(scope, failure_limit=1)
    worker = a_worker("mail", "reports")
    for queue in ("mail", "reports"):
        if of_it := rows("select id from shiftboss_job where queue = %s", queue):
            taken = claimed(worker, len(of_it), queue=queue)
            run(report("fail", [job.lease for job in taken], worker))
    assert len(run(read.attempts(authority=scope, job_id=mine[0]))) == 1
    assert [run(read.attempts(authority=scope, job_id=job_id)) for job_id in theirs] == [[]] * len(theirs)


@EACH
def test_bulk_acts_mean_what_is_within(scope: Scoped) -> None:
    mine, theirs = inside(2), outside(scope)
    which = Matching(states=LIVE)
    assert run(operate.matching(which, authority=scope, before_id=None, limit=50)) == mine[::-1]
    assert run(operate.count_matching(which, authority=scope)) == 2
    brought([*mine, *theirs], State.QUARANTINED)
    held = Held(reason=QuarantineReason.OPERATOR)
    assert run(many.held_matching(held, authority=scope, before_id=None, limit=50)) == mine[::-1]
    assert run(many.held_count(held, authority=scope)).jobs == 2
    [group] = run(many.held_groups(authority=scope))
    assert (group.jobs, group.newest, group.of_jobs) == (2, mine[-1], 2)


@EACH
def test_of_what_runs_in_a_worker_is_told_what_is_within(scope: Scoped) -> None:
    worker = a_worker("mail", "reports")
    mine, theirs = inside(2), outside(scope)
    for queue in ("mail", "reports"):
        if n := len(rows("select from shiftboss_job where queue = %s", queue)):
            claimed(worker, n, queue=queue)
    told = run(read.running([worker], authority=scope, per_worker=9))
    assert [one.id for one in told] == mine
    assert {one.jobs for one in told} == {2}
    assert theirs


SEEN_WHOLE = {"a queue": ["mail"], "queues and owners": [], "owners": []}
"""A queue is seen as a whole by who sees the jobs of all its owners."""


@pytest.mark.parametrize("name", SCOPES)
def test_queues_are_told_and_changed_by_who_sees_them_as_a_whole(name: str) -> None:
    scope, seen = SCOPES[name], SEEN_WHOLE[name]
    for queue in ("mail", "reports"):
        run(queues.pause(queue, authority=SYSTEM, by="kim", reason="r"))
        run(queues.limit(queue, Limit(3), authority=SYSTEM, by="kim"))
    execute(
        "insert into shiftboss_histogram (seconds, at, queue, task, completed, wait_buckets, wait_jobs)"
        " select s, date_trunc('minute', now()), q, '', n, '{5}', array[n]"
        " from unnest('{60,600}'::int[]) s, (values ('mail', 2), ('ads', 4), ('reports', 8)) v (q, n)"
    )
    assert [one.queue for one in run(queues.pauses(authority=scope))] == seen
    assert [one.queue for one in run(queues.limits(authority=scope))] == seen
    assert sorted(run(waiting.waits(["mail", "reports"], authority=scope))) == seen
    spans = run(histograms.histogram(authority=scope, seconds=60, back_seconds=600))
    assert [span.completed for span in spans] == ([2] if seen else [])
    orders: list[Callable[[str], Verb[Any]]] = [
        lambda queue: queues.pause(queue, authority=scope, by="pat", reason="r"),
        lambda queue: queues.limit(queue, Limit(1), authority=scope, by="pat"),
        lambda queue: queues.resume(queue, authority=scope),
        lambda queue: histograms.histogram(authority=scope, seconds=60, back_seconds=60, queue=queue),
    ]
    for order in orders:
        for queue in {"mail", "reports"} - set(seen):
            with pytest.raises(NotAllowed, match=queue):
                run(order(queue))
        for queue in seen:
            run(order(queue))
    left = rows("select name from shiftboss_queue where paused_at is not null and concurrency = 3 order by name")
    assert [queue for (queue,) in left] == sorted({"mail", "reports"} - set(seen))


def test_queues_of_a_scope_are_put_together() -> None:
    execute(
        "insert into shiftboss_histogram (seconds, at, queue, task, completed, failed, wait_buckets, wait_jobs)"
        " select 60, date_trunc('minute', now()) - make_interval(mins => m), q, '', n, 1, '{5,9}', array[n, 1]"
        " from unnest('{0,1}'::int[]) m, (values ('', 14), ('mail', 2), ('ads', 4), ('reports', 8)) v (q, n)"
    )
    two = Scoped(queues=["mail", "ads"])
    first, second = run(histograms.histogram(authority=two, seconds=60, back_seconds=600))
    assert first.at < second.at
    assert (first.completed, first.failed, first.waits) == (6, 2, {5: 6, 9: 2})
    with pytest.raises(NotAllowed, match="within"):
        run(histograms.histogram(authority=two, seconds=60, back_seconds=600, queue="mail", task="t"))


def test_workers_are_seen_with_the_queues_of_the_scope_and_ordered_by_who_has_all_of_them() -> None:
    shared, own = a_worker("mail", "reports"), a_worker("mail")
    for name, scope in SCOPES.items():
        seen = SEEN_WHOLE[name]
        told = {one.id: one.queues for one in run(read.workers(authority=scope))}
        assert told == {shared: seen, own: seen}
        assert run(read.worker(shared, authority=scope)).queues == seen
        for worker in (shared, own) if not seen else (shared,):
            with pytest.raises(NotAllowed, match="within"):
                run(workers.order(worker, authority=scope, word="drain", by="pat"))
    assert rows("select ordered from shiftboss_worker") == [(None,), (None,)]
    given = run(workers.order(own, authority=SCOPES["a queue"], word="drain", by="pat"))
    assert (given.given, given.within) == (True, True)


@EACH
def test_backfills_are_those_of_the_queues_and_owners_within(scope: Scoped) -> None:
    def begun(name: str, queue: str, owner: Owner) -> int:
        new = backfill.NewBackfill(
            name=name, task="t", queue=queue, priority=0, concurrency=1, failure_limit=1, loss_limit=1
        )
        return int(run(backfill.begin(new, authority=owner)))

    mine = begun("mine", "mail", KIM)
    theirs = begun("theirs", "reports", LEE)
    try:
        assert [one.id for one in run(backfill.backfills(authority=scope))] == [mine]
        assert run(backfill.backfill(theirs, authority=scope)) is None
        with pytest.raises(NoSuchBackfill):
            run(backfill.pause(theirs, authority=scope))
        assert run(backfill.pause(mine, authority=scope))
        assert rows("select id from shiftboss_backfill where paused_at is not null") == [(mine,)]
    finally:
        execute("delete from shiftboss_backfill")


def test_the_audit_tells_of_the_queues_within_of_jobs_within_and_of_the_readers_own_acts() -> None:
    [mine], [theirs] = inside(), enqueued(queue="reports")
    pat, sam = Actor("user", "7"), Actor("user", "8")

    def kept(actor: Actor, **about: Any) -> int:
        entry = Entry(
            actor_kind="user",
            actor_id=actor.id,
            actor_name="x",
            via="api",
            act="cancel",
            reason="r",
            operation=about.pop("operation", None) or uuid4(),
            **about,
        )
        return int(run(audit.write(entry, authority=SYSTEM)))

    operation = uuid4()
    on_mail, _on_reports = kept(sam, queue="mail"), kept(sam, queue="reports", operation=operation)
    on_mine, on_theirs = kept(sam, job_id=mine), kept(sam, job_id=theirs)
    own, last = kept(pat, job_id=theirs), on_mail - 1

    def seen(scope: Scoped, **what: Any) -> list[int]:
        told = run(audit.entries(authority=scope, reader=pat, **what))
        return sorted(row.id for row in told if row.id > last)

    queue, owners = SCOPES["a queue"], SCOPES["owners"]
    assert seen(queue) == [on_mail, own]
    assert seen(owners) == [own]
    assert seen(queue, job_id=mine) == seen(owners, job_id=mine) == [on_mine]
    assert seen(queue, job_id=theirs) == seen(owners, job_id=theirs) == []
    assert seen(queue, queue="reports") == []
    assert run(many.operation(operation, authority=queue, reader=pat)) is None
    assert run(many.operation(operation, authority=queue, reader=sam)) is not None
    assert run(many.operation(operation, authority=Scoped(queues=["reports"]), reader=pat)) is not None
    assert on_theirs not in seen(queue)


@pytest.mark.parametrize("given", [{"queues": "mail"}, {"owners": b"kim"}, {"queues": [1]}, {"owners": [None]}])
def test_a_scope_is_made_of_names(given: Any) -> None:
    with pytest.raises(TypeError, match="collection"):
        Scoped(**given)


def test_a_scope_is_of_queues_or_owners_or_both_and_may_hold_nothing() -> None:
    with pytest.raises(ValueError, match="System"):
        Scoped()
    assert reach_of(Scoped(queues=())) == {"owner": None, "queues": [], "owners": None}
    assert Scoped(queues=["a", "b"]) == Scoped(queues={"b", "a"})
