"""The project's own say: who may enqueue where, and who may watch another's job by asking for its key."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

import shiftboss
from shiftboss import Owner, acts, conf
from shiftboss.queue.authority import Authority
from shiftboss.queue.errors import Busy, KeyHeld, NotAllowed
from shiftboss.queue.jobs import MAX_WATCHERS
from shiftboss.queue.keys import Scope
from shiftboss.queue.store import operate, read
from shiftboss.queue.store.enqueue import OnConflict, enqueue, enqueue_many
from shiftboss.queue.store.statement import run
from tests.acts.people import person
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    TASK,
    completed,
    enqueued,
    execute,
    live,
    new_job,
    report,
    rows,
    running,
    scalar,
)
from tests.store.sessions import Session, together
from tests.store.tasks import add, send
from tests.store.test_operate import LIMITS

KIM, LEE, MAX = Owner("kim"), Owner("lee"), Owner("max")
HERE = "tests.store.test_authorizers"
ASKED: list[tuple[Any, ...]] = []


def only_kim(authority: Authority, queue: str, task: str) -> bool:
    """Kim may enqueue anywhere, others in `open` only."""
    ASKED.append((authority, queue, task))
    return authority == KIM or queue == "open"


def no_rerun(authority: Authority, queue: str, task: str) -> bool:
    """Nobody may enqueue this task."""
    return task != TASK


def raises(*_: Any) -> bool:
    """An authorizer with a mistake."""
    raise LookupError("the list of queues is gone")


def answers_one(*_: Any) -> Any:
    """An authorizer that answers like a filter."""
    return 1


def leaves(*_: Any) -> bool:
    """An authorizer that calls sys.exit()."""
    raise SystemExit(3)


def yes(*facts: Any) -> bool:
    """All are let through."""
    ASKED.append(facts)
    return True


def no(*_: Any) -> bool:
    """Nobody is."""
    return False


@pytest.fixture
def configured(settings: Any) -> Iterator[Callable[..., None]]:
    """Names the project's authorizers."""

    def configure(**given: str) -> None:
        ASKED.clear()
        settings.SHIFTBOSS = {name: f"{HERE}.{value}" for name, value in given.items()}
        conf.get.cache_clear()

    yield configure
    del settings.SHIFTBOSS
    conf.get.cache_clear()


PATHS: dict[str, Callable[[Authority], Any]] = {
    "one": lambda who: run(enqueue(new_job(), authority=who)),
    "one with a key": lambda who: run(enqueue(new_job(key="new"), authority=who)),
    "one that answers with another": lambda who: run(
        enqueue(new_job(key="g", key_scope=Scope.GLOBAL), authority=who)
    ),
    "one that replaces": lambda who: run(enqueue(new_job(key="k", on_conflict=OnConflict.REPLACE), authority=who)),
    "one that follows": lambda who: run(enqueue(new_job(key="r", follow_up=True), authority=who)),
    "many": lambda who: run(enqueue_many([new_job(queue="open"), new_job()], authority=who)),
    "many with keys": lambda who: run(
        enqueue_many([new_job(queue="open", key="o"), new_job(key="new")], authority=who)
    ),
    "a task": lambda who: add.using(authority=who).enqueue(1),
    "a task that is unique": lambda who: add.using(authority=who, unique=True).enqueue(1),
    "many tasks": lambda who: shiftboss.enqueue_many(
        [
            send.using(authority=who, queue_name="open").with_arguments("x"),
            add.using(authority=who).with_arguments(1),
        ]
    ),
}


@pytest.mark.requirement("N7")
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_who_may_not_enqueue_there_is_refused_on_every_path(
    path: Callable[[Authority], Any], configured: Any, worker: int
) -> None:
    running(worker, key="r", authority=LEE)
    enqueued(key="k", authority=LEE)
    enqueued(key="g", key_scope=Scope.GLOBAL, authority=LEE)
    configured(QUEUE_AUTHORIZER="only_kim")
    before = rows("select id, state, watchers from shiftboss_job order by id")
    with pytest.raises(NotAllowed, match=r"Owner\(id='lee'\) may not enqueue .* into the queue 'default'"):
        path(LEE)
    assert rows("select id, state, watchers from shiftboss_job order by id") == before
    assert ASKED[-1][:2] == (LEE, "default")
    path(KIM)


@pytest.mark.requirement("N7")
def test_nothing_is_asked_of_the_database_before_it_is_certain_that_one_may(configured: Any) -> None:
    configured(QUEUE_AUTHORIZER="no")
    for verb in (
        enqueue(new_job(), authority=KIM),
        enqueue(new_job(key="k"), authority=KIM),
        enqueue_many([new_job(), new_job(key="k")], authority=KIM),
    ):
        with pytest.raises(NotAllowed):
            next(verb)


@pytest.mark.requirement("N7")
def test_each_queue_and_task_of_a_batch_is_asked_for_once(configured: Any) -> None:
    configured(QUEUE_AUTHORIZER="yes")
    run(enqueue_many([new_job(queue=queue) for queue in ("a", "b", "a")], authority=KIM))
    assert ASKED == [(KIM, "a", TASK), (KIM, "b", TASK)]


@pytest.mark.requirement("N7")
def test_a_rerun_is_an_enqueue_by_who_reruns(configured: Any, worker: int) -> None:
    done = completed(worker)
    configured(QUEUE_AUTHORIZER="only_kim")
    with pytest.raises(NotAllowed, match=r"System\(\) may not enqueue .* into the queue 'default'"):
        run(operate.rerun(done.job_id, authority=SYSTEM, limits=LIMITS))
    with pytest.raises(NotAllowed, match="may not enqueue"):
        acts.rerun(done.job_id, by=person())
    assert ASKED == [(SYSTEM, "default", TASK)] * 2
    assert (scalar("select count(*) from shiftboss_job"), scalar("select count(*) from shiftboss_audit")) == (0, 0)
    configured(QUEUE_AUTHORIZER="yes")
    assert acts.rerun(done.job_id, by=person()).new_job_id
    # What is not there is missing, and nobody is asked for it.
    missing = run(operate.rerun(2**60, authority=SYSTEM, limits=LIMITS))
    assert (missing.id, len(ASKED)) == (2**60, 1)


@pytest.mark.requirement("N7")
@pytest.mark.parametrize(
    ("hook", "told", "cause"),
    [
        ("raises", "failed, so nobody is let through: the list of queues is gone", LookupError),
        ("leaves", "failed, so nobody is let through: 3", SystemExit),
        ("nothing", "failed, so nobody is let through: .*leads to nothing", ImportError),
        ("TASK", "failed, so nobody is let through: .* is a str, not a function", TypeError),
        ("answers_one", "answered with a int, so nobody is let through: it must be True or False", None),
    ],
)
def test_an_authorizer_that_gives_no_answer_lets_nobody_through(
    hook: str, told: str, cause: type | None, configured: Any, caplog: pytest.LogCaptureFixture
) -> None:
    configured(QUEUE_AUTHORIZER=hook)
    with caplog.at_level(logging.ERROR, "shiftboss.authorizers"), pytest.raises(NotAllowed, match=told) as refused:
        add.using(authority=KIM).enqueue(1)
    assert cause is None or isinstance(refused.value.__cause__, cause)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert scalar("select count(*) from shiftboss_job") == 0


@pytest.mark.requirement("N7")
def test_a_refused_enqueue_leaves_the_callers_transaction_as_it_was(configured: Any) -> None:
    configured(QUEUE_AUTHORIZER="only_kim")
    with transaction.atomic():
        add.using(authority=KIM).enqueue(1)
        with pytest.raises(NotAllowed):
            add.using(authority=LEE).enqueue(2)
    assert scalar("select array_agg(owner) from shiftboss_job") == ["kim"]


def ask(who: Authority, key: str = "g", **how: Any) -> Any:
    """Ask for a key that is unique among all."""
    return enqueue(new_job(key=key, key_scope=Scope.GLOBAL, **how), authority=who)


def watchers(job_id: int) -> list[str]:
    """Who watches a job."""
    found: list[str] = scalar("select watchers from shiftboss_job where id = %s", job_id)
    return found


@pytest.mark.requirement("N6")
@pytest.mark.parametrize("hook", [None, "no", "raises", "answers_one", "nothing"])
def test_asking_for_a_key_makes_nobody_a_watcher_of_anothers_job(hook: str | None, configured: Any) -> None:
    [held] = enqueued(key="g", key_scope=Scope.GLOBAL, authority=KIM)
    if hook:
        configured(WATCH_AUTHORIZER=hook)
    answer = run(ask(LEE))
    assert (answer.id, answer.existing, watchers(held)) == (held, True, [])
    with pytest.raises(KeyHeld, match="another owner's, which this authority may not see"):
        add.using(key="g", key_scope="global", authority=LEE).enqueue(1)
    assert run(read.job(authority=LEE, job_id=held)) is None


@pytest.mark.requirement("N6")
def test_who_may_watch_joins_by_asking_and_reads_the_result(configured: Any, perform: Perform) -> None:
    configured(WATCH_AUTHORIZER="yes")
    keyed = add.using(key="g", key_scope="global")
    mine = keyed.using(authority=KIM).enqueue(1)
    theirs = keyed.using(authority=LEE).enqueue(2)
    assert (theirs.id, theirs.args) == (mine.id, [1])
    assert list(ASKED) == [(LEE, int(mine.id), "g")]
    theirs.refresh()
    # Once is enough, and neither the owner nor the system has to join.
    for who in (LEE, KIM, SYSTEM):
        assert perform(ask(who)).id == int(mine.id)
    assert (watchers(int(mine.id)), len(ASKED)) == (["lee"], 1)
    assert perform(ask(MAX)).existing
    assert watchers(int(mine.id)) == ["lee", "max"]
    theirs.cancel()
    assert theirs.status == "FAILED"


@pytest.mark.requirement("N6")
def test_many_are_asked_for_one_by_one(configured: Any, perform: Perform) -> None:
    configured(WATCH_AUTHORIZER="yes")
    held = [run(ask(KIM, key)).id for key in ("g1", "g2")]
    jobs = [new_job(key=key, key_scope=Scope.GLOBAL) for key in ("g1", "g2", "g3")]
    answers = perform(enqueue_many(jobs, authority=LEE))
    assert [answer.existing for answer in answers] == [True, True, False]
    assert [watchers(job_id) for job_id in held] == [["lee"], ["lee"]]


@pytest.mark.requirement("N6")
def test_to_refuse_or_to_replace_is_not_to_watch(configured: Any) -> None:
    configured(WATCH_AUTHORIZER="yes")
    held = run(ask(KIM)).id
    for on_conflict in (OnConflict.REFUSE, OnConflict.REPLACE):
        with pytest.raises(KeyHeld):
            run(ask(LEE, on_conflict=on_conflict))
    assert (watchers(held), ASKED) == ([], [])


@pytest.mark.requirement("N6")
def test_a_follow_up_may_be_watched_as_well(configured: Any, worker: int) -> None:
    configured(WATCH_AUTHORIZER="yes")
    [held] = running(worker, key="g", key_scope=Scope.GLOBAL, authority=KIM)
    follow_up = run(ask(KIM, follow_up=True)).id
    assert run(ask(LEE, follow_up=True)).id == follow_up
    assert (watchers(held.job_id), watchers(follow_up)) == ([], ["lee"])


@pytest.mark.requirement("N6")
def test_a_job_has_no_more_watchers_than_it_may(configured: Any) -> None:
    configured(WATCH_AUTHORIZER="yes")
    some = tuple(f"w{n}" for n in range(MAX_WATCHERS - 1))
    held = run(ask(KIM, watchers=some)).id
    run(ask(LEE))
    assert run(ask(MAX)).existing
    assert watchers(held) == [*some, "lee"]
    assert [facts[0] for facts in ASKED] == [LEE]


@pytest.mark.requirement("N6")
def test_the_last_place_of_a_watcher_is_given_once(configured: Any, connect: Any) -> None:
    configured(WATCH_AUTHORIZER="yes")
    some = tuple(f"w{n}" for n in range(MAX_WATCHERS - 1))
    held = run(ask(KIM, watchers=some)).id
    # Both have seen the place when both take it.
    verbs = [ask(Owner(f"late{n}")) for n in range(2)]
    sessions: list[Session] = [connect(), connect()]
    together(*(lambda s=s, v=v: s.run(v) for s, v in zip(sessions, verbs, strict=True)))
    assert len(watchers(held)) == MAX_WATCHERS


def walked(verb: Any, until: str) -> Any:
    """The verb, driven on Django's connection until it has the answer of a statement."""
    wish = next(verb)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(wish.composed(), wish.params)
            found = [wish.statement.row(*row) for row in cursor.fetchall()]
        wish, name = verb.send(found), wish.statement.name
        if name == until:
            return wish


@pytest.mark.requirement("N6", "N10")
@pytest.mark.parametrize("change", ["it has ended", "it is quarantined", "it is full", "the asker watches it"])
def test_what_has_changed_since_it_was_looked_at_is_looked_at_again(change: str, configured: Any) -> None:
    configured(WATCH_AUTHORIZER="yes")
    some = MAX_WATCHERS - 1 if change == "it is full" else 2
    held = run(ask(KIM, watchers=tuple(f"w{n}" for n in range(some)))).id
    verb = ask(LEE)
    joining = walked(verb, "holders")
    match change:
        case "it has ended":
            run(operate.cancel([held], authority=SYSTEM))
        case "it is quarantined":
            run(operate.quarantine([held], authority=SYSTEM, by="kim"))
        case "it is full":
            run(ask(MAX))
        case _:
            run(ask(LEE))
    before = live(held)
    assert run(joining.verb) is False
    assert live(held) == before


@pytest.mark.requirement("N6")
def test_who_has_the_job_in_hand_is_waited_for_a_bounded_time(
    configured: Any, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftboss.queue.store.enqueue.WATCH_MILLISECONDS", 30)
    configured(WATCH_AUTHORIZER="yes")
    held = run(ask(KIM)).id
    holder: Session = connect()
    holder.execute("begin")
    holder.execute("select from shiftboss_job where id = %s for update", [held])
    with transaction.atomic():
        execute("set local lock_timeout = '7s'")
        with pytest.raises(Busy, match=f"has job {held} in hand"):
            run(ask(LEE))
        assert scalar("show lock_timeout") == "7s"
        holder.execute("rollback")
        run(ask(LEE))
        assert scalar("show lock_timeout") == "7s"
    assert watchers(held) == ["lee"]


@pytest.mark.requirement("N17")
def test_a_rerun_starts_with_its_owner_alone(worker: int) -> None:
    [held] = running(worker, key="k", watchers=("lee",), authority=KIM)
    run(report("complete", held, worker))
    again = run(operate.rerun(held.job_id, authority=SYSTEM, limits=LIMITS))
    row = live(again.id)
    assert row is not None
    assert (row["owner"], row["watchers"]) == ("kim", [])
    assert run(read.job(authority=LEE, job_id=again.id)) is None
    assert run(read.job(authority=LEE, job_id=held.job_id)) is not None
    # Rerunning is for operators; an owner enqueues again.
    with pytest.raises(NotAllowed):
        run(operate.rerun(held.job_id, authority=KIM, limits=LIMITS))


@pytest.mark.requirement("N17")
@pytest.mark.parametrize("again", [KIM, LEE], ids=["its owner", "another"])
def test_a_finished_key_that_is_asked_for_again_starts_with_the_submitter_alone(again: Owner, worker: int) -> None:
    [held] = running(worker, key="g", key_scope=Scope.GLOBAL, watchers=("lee", "max"), authority=KIM)
    run(report("complete", held, worker))
    new = run(ask(again))
    row = live(new.id)
    assert row is not None
    assert (row["owner"], row["watchers"], new.existing) == (again.id, [], False)
