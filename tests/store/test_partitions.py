"""Day partitions: made ahead, and made by a finish that meets a missing one."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from django.db import transaction
from psycopg import errors as pg

from shiftboss.queue.contract import Settlement
from shiftboss.queue.store import operate, partitions, upkeep
from shiftboss.queue.store.enqueue import OnConflict, enqueue, enqueue_many
from shiftboss.queue.store.statement import Verb, run
from tests.store.conftest import Perform
from tests.store.making import (
    REPORTS,
    SYSTEM,
    enqueued,
    events,
    execute,
    expired,
    finished,
    new_job,
    report,
    rows,
    running,
    scalar,
    state,
)
from tests.store.sessions import together
from tests.store.test_rejections import is_lost, offer

PARENTS = ("shiftboss_finished", "shiftboss_attempt", "shiftboss_event")


def today() -> date:
    """The database's day."""
    found: date = scalar("select (clock_timestamp() at time zone 'UTC')::date")
    return found


def drop(parent: str, day: date) -> None:
    """A partition that was never made."""
    execute(f"drop table {parent}_{day:%Y%m%d}")


def days_of(parent: str) -> set[date]:
    """The days that a table has partitions for."""
    names = rows("select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass", parent)
    return {datetime.strptime(name.rpartition("_")[2], "%Y%m%d").replace(tzinfo=UTC).date() for (name,) in names}


@pytest.fixture(autouse=True)
def all_partitions(record: None) -> Iterator[None]:
    """Whatever a test does, the next one finds the partitions of the next days."""
    yield
    run(partitions.make_partitions(authority=SYSTEM, days_ahead=14))


@pytest.mark.requirement("P7", "L5")
@pytest.mark.parametrize("verb", REPORTS)
@pytest.mark.parametrize("parents", [PARENTS[:1], PARENTS[1:2], PARENTS])
def test_an_end_that_meets_a_missing_day_makes_it_and_goes_on(
    verb: str, parents: tuple[str, ...], perform: Perform, worker: int
) -> None:
    leases = running(worker, 3)
    for parent in parents:
        drop(parent, today())
    assert perform(report(verb, leases, worker)) == Settlement(settled=set(leases))
    assert all(state(one.job_id) != "running" for one in leases)


@pytest.mark.requirement("L4", "P7")
@pytest.mark.parametrize("verb", [*REPORTS, "heartbeat"])
def test_a_refusal_that_meets_a_missing_day_makes_it_and_is_recorded(
    verb: str, perform: Perform, worker: int, other: int
) -> None:
    [held] = running(worker)
    drop("shiftboss_event", today())
    assert is_lost(perform(offer(verb, held, other)), held)
    assert [event["kind"] for event in events(held.job_id)] == ["write_rejected"]


@pytest.mark.requirement("N14", "P7")
def test_a_reap_that_meets_a_missing_day_makes_it(perform: Perform, worker: int) -> None:
    held = expired(worker)
    drop("shiftboss_attempt", today())
    assert [job.id for job in perform(upkeep.reap(authority=SYSTEM))] == [held.job_id]


def _discarded(worker: int) -> Verb[Any]:
    [job_id] = enqueued()
    run(operate.quarantine([job_id], authority=SYSTEM, by="kim"))
    return operate.discard([job_id], authority=SYSTEM)


def _replacing(worker: int) -> Verb[Any]:
    enqueued(key="k1")
    return enqueue(new_job(key="k1", on_conflict=OnConflict.REPLACE), authority=SYSTEM)


def _replacing_many(worker: int) -> Verb[Any]:
    enqueued(key="k1")
    return enqueue_many([new_job(key="k1", on_conflict=OnConflict.REPLACE)], authority=SYSTEM)


MOVING: dict[str, Callable[[int], Verb[Any]]] = {
    "cancel": lambda worker: operate.cancel(enqueued(), authority=SYSTEM),
    "discard": _discarded,
    "an event of a person": lambda worker: operate.quarantine(enqueued(), authority=SYSTEM, by="kim"),
    "replace": _replacing,
    "replace many": _replacing_many,
}


@pytest.mark.requirement("P7", "C4", "P2")
@pytest.mark.parametrize("verb", MOVING)
@pytest.mark.parametrize("inside", [False, True], ids=["", "in the caller's transaction"])
def test_what_a_client_or_person_does_meets_a_missing_day_and_makes_it(
    inside: bool, verb: str, perform: Perform, worker: int
) -> None:
    if inside and perform is not run:
        pytest.skip("keepers have no callers")
    wish = MOVING[verb](worker)
    for parent in ("shiftboss_finished", "shiftboss_event"):
        drop(parent, today())
    with transaction.atomic() if inside else nullcontext():
        perform(wish)
        [job_id] = enqueued()
    assert state(job_id) == "available"
    assert scalar("select count(*) from shiftboss_finished") + scalar("select count(*) from shiftboss_event") >= 1


@pytest.mark.requirement("P7", "C7")
def test_a_day_that_a_lock_keeps_from_being_made_costs_the_caller_no_transaction(connect: Any) -> None:
    holder = connect()
    [job_id] = enqueued()
    for parent in PARENTS:
        drop(parent, today())
    holder.execute("begin")
    holder.execute("lock table shiftboss_attempt in share update exclusive mode")
    with transaction.atomic():
        assert run(operate.cancel([job_id], authority=SYSTEM)).changed
    holder.execute("commit")
    assert state(job_id) == "cancelled"


@pytest.mark.requirement("P7", "P5")
def test_a_deadline_that_meets_a_missing_day_makes_it(perform: Perform) -> None:
    [job_id] = enqueued(deadline_in=-1)
    drop("shiftboss_finished", today())
    assert perform(upkeep.expire(authority=SYSTEM)) == 1
    assert state(job_id) == "cancelled"


@pytest.mark.requirement("P7")
def test_a_missing_day_is_known_whatever_language_the_server_speaks(worker: int) -> None:
    [held] = running(worker)
    verb = report("complete", held, worker)
    next(verb)
    # The server's own words differ by its language; that no constraint is named does not.
    told = verb.throw(
        pg.CheckViolation("keine Partition von Relation »shiftboss_finished« für die Zeile gefunden")
    )
    assert told.statement.name == "today"
    verb.close()


@pytest.mark.requirement("P7")
def test_days_are_made_ahead_once(perform: Perform) -> None:
    first = today()
    gone = {first, first + timedelta(days=3), first + timedelta(days=14)}
    for parent in PARENTS:
        for day in gone:
            drop(parent, day)
    answer = perform(partitions.make_partitions(authority=SYSTEM, days_ahead=14))
    assert sorted(answer.made) == sorted((parent, day) for parent in PARENTS for day in gone)
    assert answer.pending == ()
    assert perform(partitions.make_partitions(authority=SYSTEM, days_ahead=14)).made == ()
    for parent in PARENTS:
        assert days_of(parent) >= {first + timedelta(days=ahead) for ahead in range(15)}


@pytest.mark.requirement("P7")
def test_a_lock_keeps_a_day_pending_and_the_next_pass_makes_it(connect: Any, perform: Perform) -> None:
    holder = connect()
    day = today() + timedelta(days=14)
    for parent in PARENTS:
        drop(parent, day)
    holder.execute("begin")
    holder.execute("lock table shiftboss_attempt in share update exclusive mode")
    answer = perform(partitions.make_partitions(authority=SYSTEM, days_ahead=14))
    assert sorted(answer.made) == [("shiftboss_event", day), ("shiftboss_finished", day)]
    assert answer.pending == (("shiftboss_attempt", day),)
    assert scalar("select to_regclass(%s)", f"shiftboss_attempt_{day:%Y%m%d}") is None
    holder.execute("commit")
    assert perform(partitions.make_partitions(authority=SYSTEM, days_ahead=14)).made == (
        ("shiftboss_attempt", day),
    )


@pytest.mark.requirement("P7", "N2")
def test_two_maintainers_at_one_moment_make_each_day_once(connect: Any) -> None:
    first, second = connect(), connect()
    days = {today() + timedelta(days=ahead) for ahead in range(10, 15)}
    for parent in PARENTS:
        for day in days:
            drop(parent, day)
    answers = together(
        lambda: first.run(partitions.make_partitions(authority=SYSTEM, days_ahead=14)),
        lambda: second.run(partitions.make_partitions(authority=SYSTEM, days_ahead=14)),
    )
    made = [item for answer in answers for item in answer.made]
    assert len(set(made)) == len(made)
    run(partitions.make_partitions(authority=SYSTEM, days_ahead=14))
    for parent in PARENTS:
        assert days_of(parent) >= days


@pytest.mark.requirement("P7")
def test_two_finishes_at_one_moment_make_the_missing_day_together(connect: Any, worker: int) -> None:
    first, second = connect(), connect()
    leases = running(worker, 2)
    drop("shiftboss_finished", today())
    answers = together(
        lambda: first.run(report("complete", leases[0], worker)),
        lambda: second.run(report("complete", leases[1], worker)),
    )
    assert [answer.settled | answer.busy for answer in answers] == [{one} for one in leases]
    assert all(finished(one.job_id) for one in leases)


@pytest.mark.requirement("P7")
def test_a_day_runs_from_midnight_to_midnight_in_utc_whatever_the_sessions_zone(connect: Any) -> None:
    session = connect()
    session.execute("set timezone = 'Pacific/Auckland'")
    day = today() + timedelta(days=14)
    drop("shiftboss_event", day)
    session.run(partitions.make_partitions(authority=SYSTEM, days_ahead=14))
    begin = datetime.combine(day, time(), tzinfo=UTC)
    for at in (begin, begin + timedelta(days=1, microseconds=-1)):
        execute("insert into shiftboss_event (job_id, seq, at, kind) values (1, 1, %s, 'x')", at)
    assert scalar(f"select count(*) from shiftboss_event_{day:%Y%m%d}") == 2


@pytest.mark.requirement("P7")
def test_no_table_has_a_default_partition_and_all_have_their_indexes() -> None:
    for parent in PARENTS:
        assert scalar("select partdefid from pg_partitioned_table where partrelid = %s::regclass", parent) == 0
        indexes = scalar("select count(*) from pg_index where indrelid = %s::regclass", parent)
        of_children = rows(
            "select count(x.indexrelid) from pg_inherits i left join pg_index x on x.indrelid = i.inhrelid "
            "where i.inhparent = %s::regclass group by i.inhrelid",
            parent,
        )
        assert set(of_children) == {(indexes,)}
