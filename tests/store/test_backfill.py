"""Backfills in the record: items, feeding, ends, pause, cancel, retry, and several who feed at once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from shiftboss.queue.authority import Owner
from shiftboss.queue.errors import Busy, InvalidJob, NoSuchBackfill, NotAllowed
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.store import backfill, operate, upkeep
from shiftboss.queue.store.backfill import BackfillRow, NewBackfill, Retried
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import (
    SYSTEM,
    TASK,
    a_worker,
    attempts,
    claimed,
    enqueued,
    events,
    execute,
    finished,
    live,
    report,
    rows,
    scalar,
    state,
)
from tests.store.sessions import Session, together

pytestmark = pytest.mark.requirement("L19")

SOMEBODY = Owner("user_7")
CONFIG = TaskConfig(task=TASK, isolation="thread", timeout_seconds=7.0)


@pytest.fixture(autouse=True)
def backfills(record: None) -> Iterator[None]:
    """No backfill is left to the next test."""
    yield
    for table in ("backfill_item", "backfill"):
        execute(f"delete from shiftboss_{table}")


def new(name: str = "invoices", **how: Any) -> NewBackfill:
    """A backfill to be."""
    options: dict[str, Any] = {"task": TASK, "queue": "default", "priority": 0, "concurrency": 3} | how
    return NewBackfill(name=name, failure_limit=1, loss_limit=2, **options)


def begun(*items: str, name: str = "invoices", authority: Any = SYSTEM, **how: Any) -> int:
    """The id of a backfill with these items."""
    number = run(backfill.begin(new(name, **how), authority=authority))
    run(backfill.add(number, with_args(items), authority=authority))
    return number


def with_args(items: Any) -> Iterator[tuple[str, str]]:
    """Items with the arguments of their jobs."""
    return ((item, f'{{"args": ["{item}"], "kwargs": {{}}}}') for item in items)


def feed(perform: Perform = run) -> int:
    """Feed all backfills."""
    return int(perform(backfill.feed(authority=SYSTEM)))


def look(number: int) -> BackfillRow:
    """A backfill as the record tells it."""
    found = run(backfill.backfill(number, authority=SYSTEM))
    assert found
    return found


def progress(number: int) -> dict[str, int]:
    """How many items stand how; those of which there are none are left out."""
    names = ("waiting", "live", "quarantined", "completed", "cancelled", "discarded")
    counts = {name: getattr(look(number), name) for name in names}
    return {name: count for name, count in counts.items() if count}


def job_of(item: str, name: str = "invoices") -> int:
    """The newest job of an item, live or finished."""
    both = "select id from {} where meta->>'item' = %s and meta->>'backfill' = %s"
    question = " union all ".join(both.format(table) for table in ("shiftboss_job", "shiftboss_finished"))
    return int(scalar(f"select max(id) from ({question}) b", item, name, item, name))


def end(worker: int, verb: str, n: int = 1) -> list[int]:
    """Jobs that a worker has claimed and ended in this way."""
    leases = [job.lease for job in claimed(worker, n)]
    for lease in leases:
        run(report(verb, lease, worker))
    return [lease.job_id for lease in leases]


def test_a_backfill_enqueues_its_items_in_order_and_never_more_than_it_may(perform: Perform, worker: int) -> None:
    number = perform(backfill.begin(new(priority=4, revision=CONFIG), authority=SOMEBODY))
    assert perform(backfill.add(number, with_args(["d", "b", "c", "a"]), authority=SOMEBODY)) == 4
    assert feed(perform) == 3
    assert feed(perform) == 0
    assert [item for (item,) in rows("select meta->>'item' from shiftboss_job order by id")] == ["a", "b", "c"]
    job = live(job_of("a"))
    assert job
    told = {name: job[name] for name in ("batch_id", "rerun_of", "task", "queue", "state", "priority", "owner")}
    assert told == {
        "batch_id": number,
        "rerun_of": None,
        "task": TASK,
        "queue": "default",
        "state": "available",
        "priority": 4,
        "owner": "user_7",
    }
    assert (job["args"], job["meta"]) == ('{"args": ["a"], "kwargs": {}}', '{"item": "a", "backfill": "invoices"}')
    assert (job["failure_limit"], job["loss_limit"], job["revision_id"]) == (1, 2, CONFIG.revision)
    assert scalar("select task from shiftboss_revision where revision = %s", CONFIG.revision) == TASK
    assert progress(number) == {"waiting": 1, "live": 3}
    end(worker, "complete", 2)
    assert progress(number) == {"waiting": 1, "live": 1, "completed": 2}, "what was not noted yet is looked up"
    assert feed(perform) == 1
    assert progress(number) == {"live": 2, "completed": 2}
    end(worker, "complete", 2)
    feed(perform)
    assert (progress(number), look(number).state) == ({"completed": 4}, "finished")


def test_the_same_items_are_added_once(perform: Perform) -> None:
    first = perform(backfill.begin(new(), authority=SYSTEM))
    assert perform(backfill.add(first, with_args("abca"), authority=SYSTEM)) == 3
    feed()
    again = perform(backfill.begin(new(concurrency=9), authority=SYSTEM))
    assert again == first
    assert perform(backfill.add(again, with_args("dabc"), authority=SYSTEM)) == 1
    assert (look(first).concurrency, look(first).items) == (3, 4)
    assert progress(first) == {"waiting": 1, "live": 3}


def test_names_are_each_owners_own(perform: Perform) -> None:
    numbers = {
        perform(backfill.begin(new(), authority=authority)) for authority in (SYSTEM, SOMEBODY, Owner("user_8"))
    }
    assert len(numbers) == 3
    assert perform(backfill.begin(new(), authority=SOMEBODY)) in numbers


def test_a_name_is_of_one_task(perform: Perform) -> None:
    perform(backfill.begin(new(), authority=SYSTEM))
    with pytest.raises(InvalidJob, match="is one of the task"):
        perform(backfill.begin(new(task="shop.tasks.other"), authority=SYSTEM))


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "a\nb"}, {"concurrency": 0}, {"concurrency": 10_001}])
def test_what_no_backfill_can_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidJob):
        new(**wrong)


def test_items_of_two_backfills_are_not_mixed(perform: Perform, worker: int) -> None:
    first = begun("a", "b", concurrency=1)
    second = begun("a", "b", name="receipts", concurrency=1)
    assert feed(perform) == 2
    assert {first, second} == {n for (n,) in rows("select batch_id from shiftboss_job")}
    assert progress(first) == progress(second) == {"waiting": 1, "live": 1}
    run(operate.cancel([job_of("a", "receipts")], authority=SYSTEM))
    run(backfill.pause(second, authority=SYSTEM))
    assert feed(perform) == 0
    assert (progress(first), progress(second)) == ({"waiting": 1, "live": 1}, {"waiting": 1, "cancelled": 1})


def test_quarantined_jobs_keep_nobody_back(perform: Perform, worker: int) -> None:
    number = begun("a", "b", "c", concurrency=1)
    feed()
    end(worker, "fail")
    assert progress(number) == {"waiting": 2, "quarantined": 1}
    assert feed(perform) == 1
    end(worker, "complete")
    assert feed(perform) == 1
    assert progress(number) == {"live": 1, "quarantined": 1, "completed": 1}


def test_a_job_that_waits_for_its_retry_is_live(worker: int) -> None:
    number = begun("a", "b", concurrency=1)
    feed()
    end(worker, "reap_own")
    assert (feed(), progress(number)) == (0, {"waiting": 1, "live": 1})


def test_a_paused_backfill_enqueues_nothing_and_still_notes_what_ended(perform: Perform, worker: int) -> None:
    number, other = begun("a", "b", concurrency=1), begun("z", name="other", concurrency=1)
    feed()
    assert perform(backfill.pause(number, authority=SYSTEM))
    paused_at = look(number).paused_at
    assert not perform(backfill.pause(number, authority=SYSTEM))
    assert (look(number).state, look(number).paused_at, look(other).paused_at) == ("paused", paused_at, None)
    end(worker, "complete", 2)
    assert feed(perform) == 0
    assert [o for (o,) in rows("select outcome from shiftboss_backfill_item where job_id is not null")] == [
        "completed",
        "completed",
    ]
    run(backfill.pause(other, authority=SYSTEM))
    assert perform(backfill.resume(number, authority=SYSTEM))
    assert not perform(backfill.resume(number, authority=SYSTEM))
    assert (feed(perform), look(number).state, look(other).paused_at is None) == (1, "running", False)


def test_cancelling_ends_what_waits_and_asks_what_runs_to_end(perform: Perform, worker: int) -> None:
    number, other = begun(*"abcde", concurrency=2), begun("a", "b", "c", name="other", concurrency=1)
    feed()
    run(operate.cancel([job_of("a", "other")], authority=SYSTEM))
    end(worker, "fail")
    [runs] = claimed(worker)
    feed()
    assert progress(number) == {"waiting": 2, "live": 2, "quarantined": 1}
    assert perform(backfill.cancel(number, authority=SYSTEM)) == 5
    assert progress(number) == {"live": 1, "cancelled": 4}
    assert progress(other) == {"waiting": 1, "live": 1, "cancelled": 1}, "another's items are left alone"
    job = live(runs.id)
    assert job
    assert job["cancel_cause"] == "user"
    run(report("release", runs.lease, worker))
    assert (feed(perform), progress(number)) == (0, {"cancelled": 5})
    assert (perform(backfill.cancel(number, authority=SYSTEM)), look(number).state) == (0, "finished")


def test_what_was_cancelled_gets_new_jobs_whether_or_not_it_had_one(perform: Perform, worker: int) -> None:
    number = begun("a", "b", "c", concurrency=1)
    feed()
    had = job_of("a")
    run(backfill.cancel(number, authority=SYSTEM))
    assert perform(backfill.retry(number, authority=SYSTEM)) == Retried(anew=3, reinstated=0)
    assert progress(number) == {"waiting": 3}
    assert feed(perform) == 1
    assert job_of("a") > had
    assert progress(number) == {"waiting": 2, "live": 1}


def test_what_is_to_be_reinstated_is_cancelled_like_any_other(perform: Perform, worker: int) -> None:
    number = begun("a", "b")
    feed()
    first, _ = end(worker, "fail", 2)
    run(backfill.retry(number, authority=SYSTEM))
    assert perform(backfill.cancel(number, authority=SYSTEM)) == 2
    assert (feed(perform), progress(number), state(first)) == (0, {"cancelled": 2}, "cancelled")
    assert scalar("select count(*) from shiftboss_backfill_item where again") == 0


def test_a_backfill_with_a_job_in_somebodys_hands_is_not_cancelled_by_half(connect: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(operate, "HOLD_MILLISECONDS", 100)
    number = begun("a", "b", concurrency=1)
    feed()
    somebody: Session = connect()
    somebody.execute("begin")
    somebody.execute("select from shiftboss_job for update")
    with pytest.raises(Busy):
        run(backfill.cancel(number, authority=SYSTEM))
    assert progress(number) == {"waiting": 1, "live": 1}
    somebody.execute("rollback")


def test_a_retry_runs_what_failed_and_nothing_else(perform: Perform, worker: int) -> None:
    other, number = begun("a", name="other"), begun(*"abcd", concurrency=4)
    feed()
    run(operate.cancel([job_of("a", "other")], authority=SYSTEM))
    [done] = end(worker, "complete")
    [held] = end(worker, "fail")
    [given_up] = end(worker, "discard")
    feed()
    assert perform(backfill.retry(number, authority=SYSTEM)) == Retried(anew=1, reinstated=1)
    assert progress(number) == {"waiting": 2, "live": 1, "completed": 1}
    assert feed(perform) == 1
    assert (state(done), state(held), state(given_up)) == ("completed", "available", "discarded")
    assert progress(number) == {"live": 3, "completed": 1}
    again = job_of("c")
    assert again != given_up
    job = live(again)
    assert job
    assert (job["batch_id"], job["rerun_of"]) == (number, None)
    [event] = events(held)
    assert (event["kind"], '"by": "the backfill invoices"' in event["data"]) == ("reinstate", True)
    assert progress(other) == {"cancelled": 1}, "another's items are left alone"


def test_reinstated_jobs_wait_for_room_and_may_fail_as_often_as_a_new_one(perform: Perform, worker: int) -> None:
    number = begun("a", "b", "c", concurrency=2)
    feed()
    first, second = end(worker, "fail", 2)
    feed()
    [runs] = claimed(worker)
    for _ in range(2):
        # The second wish is no more than the first.
        retried = perform(backfill.retry(number, authority=SYSTEM))
        assert progress(number) == {"waiting": 2, "live": 1}
    assert retried == Retried(anew=0, reinstated=0)
    feed(perform)
    assert (state(first), state(second)) == ("available", "quarantined")
    job = live(first)
    assert job
    assert (job["failure_limit"], job["loss_limit"]) == (2, 2)
    feed(perform)
    assert state(second) == "quarantined", "there is room for two"
    run(backfill.pause(number, authority=SYSTEM))
    run(report("complete", runs.lease, worker))
    feed(perform)
    assert state(second) == "quarantined", "a paused one goes on later"
    run(backfill.resume(number, authority=SYSTEM))
    feed(perform)
    assert (state(second), progress(number)) == ("available", {"live": 2, "completed": 1})
    end(worker, "fail", 2)
    feed(perform)
    assert progress(number) == {"quarantined": 2, "completed": 1}, "once more is not for ever"


def test_a_job_that_somebody_else_has_ended_is_not_reinstated(perform: Perform, worker: int) -> None:
    number = begun("a")
    feed()
    [held] = end(worker, "fail")
    run(backfill.retry(number, authority=SYSTEM))
    run(operate.discard([held], authority=SYSTEM))
    assert feed(perform) == 0
    assert progress(number) == {"discarded": 1}


def test_a_reinstated_job_that_is_in_somebodys_hands_is_reinstated_later(connect: Any, worker: int) -> None:
    number = begun("a")
    feed()
    [held] = end(worker, "fail")
    run(backfill.retry(number, authority=SYSTEM))
    somebody: Session = connect()
    somebody.execute("begin")
    somebody.execute("select from shiftboss_job where id = %s for share", [held])
    feed()
    assert (state(held), progress(number)) == ("quarantined", {"waiting": 1})
    somebody.execute("rollback")
    feed()
    assert (state(held), progress(number)) == ("available", {"live": 1})


def test_an_end_that_the_history_tells_no_more_counts_as_not_done(perform: Perform, worker: int) -> None:
    number = begun("a", "b")
    feed()
    [done, _] = end(worker, "complete", 2)
    execute("delete from shiftboss_finished where id = %s", done)
    feed(perform)
    assert progress(number) == {"discarded": 1, "completed": 1}


def test_an_end_is_noted_once(worker: int) -> None:
    number = begun("a", "b")
    feed()
    [done] = end(worker, "complete")
    feed()
    execute("delete from shiftboss_finished where id = %s", done)
    feed()
    assert progress(number) == {"completed": 1, "live": 1}


def test_the_ends_of_a_backfill_are_noted_by_who_has_it_in_hand(connect: Any, worker: int) -> None:
    begun("a")
    feed()
    end(worker, "complete")
    begun("b", name="other")
    somebody: Session = connect()
    somebody.execute("begin")
    somebody.execute("select from shiftboss_backfill where name = 'invoices' for update")
    assert feed() == 1
    noted = "select outcome from shiftboss_backfill_item where item = 'a'"
    assert scalar(noted) is None
    somebody.execute("rollback")
    feed()
    assert scalar(noted) == "completed"


def test_a_fed_job_wakes_a_worker_that_is_idle(ear: Any) -> None:
    a_worker("default", idle=True)
    begun("a", "b", priority=5)
    feed()
    assert ear.heard() == "5 default"


def test_a_fed_job_wakes_nobody_who_is_not_idle_for_its_queue(ear: Any) -> None:
    a_worker("default")
    a_worker("mail", idle=True)
    gone = a_worker("default", idle=True)
    execute("update shiftboss_worker set heartbeat_at = now() - interval '10 minutes' where id = %s", gone)
    begun("a")
    feed()
    begun("b", name="other", queue="mail")
    feed()
    assert ear.heard() == "0 mail"


def test_several_who_feed_at_once_never_exceed_the_limit_nor_take_an_item_twice(connect: Any, worker: int) -> None:
    items = [f"{n:03}" for n in range(60)]
    number = begun(*items, concurrency=5)
    maintainers: list[Session] = [connect() for _ in range(3)]
    seen: list[int] = []

    def feeding(session: Session) -> Callable[[], None]:
        def go() -> None:
            for _ in range(30):
                session.run(backfill.feed(authority=SYSTEM))

        return go

    def working() -> None:
        session: Session = connect()
        for _ in range(30):
            seen.append(session.execute("select count(*) from shiftboss_job")[0][0])
            session.execute("delete from shiftboss_job where id in (select id from shiftboss_job limit 2)")

    together(*(feeding(session) for session in maintainers), working)
    while progress(number).get("waiting"):
        execute("delete from shiftboss_job")
        feed()
    assert max(seen) <= 5
    taken = rows("select item, job_id from shiftboss_backfill_item")
    assert len({job for _, job in taken}) == len(taken) == 60


def test_who_feeds_sees_what_was_fed_before_and_waits_for_nobody(connect: Any) -> None:
    number = begun("a", "b", "c", concurrency=2)
    first: Session = connect()
    second: Session = connect()
    second.execute("set lock_timeout = '500ms'")
    first.execute("begin")
    assert feed(first.run) == 2
    assert feed(second.run) == 0, "the backfill is left to who has it in hand"
    first.execute("rollback")
    assert progress(number) == {"waiting": 3}, "what a maintainer had begun is undone with it"
    assert feed(second.run) == 2
    assert feed(first.run) == 0


def test_who_acts_waits_for_who_feeds(connect: Any) -> None:
    number = begun("a", "b", concurrency=1)
    maintainer: Session = connect()
    operator: Session = connect()
    operator.execute("set lock_timeout = '100ms'")
    maintainer.execute("begin")
    feed(maintainer.run)
    for verb in (backfill.pause, backfill.resume, backfill.cancel, backfill.retry):
        with pytest.raises(Exception, match="lock timeout"):
            operator.run(verb(number, authority=SYSTEM))
    with pytest.raises(Exception, match="lock timeout"):
        operator.run(backfill.add(number, with_args("c"), authority=SYSTEM))
    maintainer.execute("commit")
    assert operator.run(backfill.pause(number, authority=SYSTEM))


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "an item that was done without a job": {"outcome": "completed"},
    "an item that was given up without a job": {"outcome": "discarded"},
    "an end that is none": {"job_id": 1, "outcome": "available"},
    "a job of no number": {"job_id": 0},
    "a job of a negative number": {"job_id": -1},
    "no job that is to be reinstated": {"again": True},
    "a job that has ended and is to be reinstated": {"job_id": 1, "outcome": "cancelled", "again": True},
    "neither to be reinstated nor not": {"again": None},
    "no key": {"item": ""},
}


@pytest.mark.parametrize("columns", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_item_is_impossible(columns: dict[str, Any]) -> None:
    row = {"backfill_id": 1, "item": "a", "args": "{}"} | columns
    with pytest.raises(IntegrityError, match="constraint"):
        execute(
            f"insert into shiftboss_backfill_item ({', '.join(row)}) values ({', '.join(['%s'] * len(row))})",
            *row.values(),
        )


def test_a_rollback_takes_the_backfill_with_it() -> None:
    with transaction.atomic():
        begun("a", "b")
        assert feed() == 2
        transaction.set_rollback(True)
    assert rows("select 1 from shiftboss_backfill") == rows("select 1 from shiftboss_backfill_item") == []
    assert rows("select 1 from shiftboss_job") == []


def test_what_broke_off_in_the_middle_goes_on_where_it_was(perform: Perform, monkeypatch: Any) -> None:
    def breaking() -> Iterator[tuple[str, str]]:
        yield from with_args("abcd")
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(backfill, "ADD_ITEMS", 2)
    number = perform(backfill.begin(new(concurrency=2), authority=SYSTEM))
    with pytest.raises(RuntimeError):
        perform(backfill.add(number, breaking(), authority=SYSTEM))
    assert look(number).items == 4
    feed(perform)
    assert perform(backfill.add(number, with_args("abcdef"), authority=SYSTEM)) == 2
    assert progress(number) == {"waiting": 4, "live": 2}


def test_items_are_written_in_pieces_that_fit_into_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr(backfill, "ADD_BYTES", 100)
    number = begun(*"abcdefghij")
    sizes = [n for (n,) in rows("select count(*) from shiftboss_backfill_item group by xmin::text order by 1")]
    assert (sum(sizes), max(sizes)) == (10, 4)
    assert look(number).items == 10


def test_many_items_are_taken_in_and_fed(worker: int) -> None:
    items = (f"{n:06}" for n in range(20_000))
    number = run(backfill.begin(new(concurrency=1000), authority=SYSTEM))
    assert run(backfill.add(number, with_args(items), authority=SYSTEM)) == 20_000
    assert feed() == 1000
    assert job_of("000999")
    assert progress(number) == {"waiting": 19_000, "live": 1000}
    assert run(backfill.cancel(number, authority=SYSTEM)) == 20_000
    assert progress(number) == {"cancelled": 20_000}
    assert finished(job_of("000999"))


def test_owners_see_their_own_and_only_the_system_acts(perform: Perform) -> None:
    mine, systems = begun("a", authority=SOMEBODY), begun("a")
    assert [row.id for row in perform(backfill.backfills(authority=SOMEBODY))] == [mine]
    assert [row.id for row in perform(backfill.backfills(authority=SYSTEM))] == [systems, mine]
    assert [row.id for row in perform(backfill.backfills(authority=SYSTEM, before_id=systems))] == [mine]
    assert [row.id for row in perform(backfill.backfills(authority=SYSTEM, limit=1))] == [systems]
    assert perform(backfill.backfill(systems, authority=SOMEBODY)) is None
    for verb in (backfill.pause, backfill.resume, backfill.cancel, backfill.retry):
        with pytest.raises(NotAllowed):
            perform(verb(mine, authority=SOMEBODY))
        with pytest.raises(NoSuchBackfill):
            perform(verb(systems + 1, authority=SYSTEM))
    with pytest.raises(NotAllowed):
        perform(backfill.feed(authority=SOMEBODY))
    for nobodys in (systems, systems + 1):
        with pytest.raises(NoSuchBackfill):
            perform(backfill.add(nobodys, with_args("b"), authority=SOMEBODY))
    assert perform(backfill.add(mine, with_args("b"), authority=SYSTEM)) == 1


def test_retries_of_a_lost_worker_are_the_jobs_own(worker: int) -> None:
    number = begun("a")
    feed()
    [lost] = end(worker, "reap_own")
    run(upkeep.stage(authority=SYSTEM))
    assert end(worker, "complete") == [lost]
    feed()
    assert ([a["outcome"] for a in attempts(lost)], progress(number)) == (["lost"], {"completed": 1})


def test_jobs_that_are_not_a_backfills_are_none_of_its_business(perform: Perform) -> None:
    enqueued(5)
    number = begun("a", "b", concurrency=1)
    assert (feed(perform), progress(number)) == (1, {"waiting": 1, "live": 1})
