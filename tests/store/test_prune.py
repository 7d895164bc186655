"""Old days are dropped whole, beside readers, writers and each other, and whatever step was reached before."""

import threading
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from shiftboss import Owner
from shiftboss.queue.errors import InvalidJob, NotAllowed, StoreUnavailable
from shiftboss.queue.store import partitions
from shiftboss.queue.store.partitions import Pruned
from shiftboss.queue.store.statement import Call, Verb, Wish, run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, execute, report, rows, running, scalar
from tests.store.sessions import Session, together, watched
from tests.store.test_partitions import PARENTS, days_of, today
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("P7")


@pytest.fixture(autouse=True)
def history(record: None) -> Iterator[None]:
    """Each test finds no old days, and whatever it does, the next one finds those of the next days."""
    drop_all()
    yield
    drop_all()
    run(partitions.make_partitions(authority=SYSTEM, days_ahead=14))


def drop_all() -> None:
    """No day before today."""
    for parent in PARENTS:
        for name in tables_of(parent):
            execute(f"drop table if exists {name}")


def tables_of(parent: str) -> list[str]:
    """The tables of days before today, attached or not."""
    return [
        name
        for (name,) in rows(
            "select relname::text from pg_class where relkind = 'r' and relname ~ %s order by 1",
            f"^{parent}_[0-9]{{8}}$",
        )
        if name.rpartition("_")[2] < f"{today():%Y%m%d}"
    ]


def old_days(ages: range, parents: tuple[str, ...] = PARENTS) -> list[date]:
    """Days of so many days ago, with one row each of jobs long gone."""
    days = [today() - timedelta(days=age) for age in ages]
    for day in days:
        for parent in parents:
            execute("select shiftboss_make_partition(%s, %s)", parent, day)
        noon = f"{day} 12:00+00"
        if "shiftboss_attempt" in parents:
            execute(
                "insert into shiftboss_attempt (job_id, fence, queue, task, outcome, ended_at)"
                " values (-1, 1, 'default', 't', 'failed', %s)",
                noon,
            )
        if "shiftboss_event" in parents:
            execute("insert into shiftboss_event (job_id, seq, at, kind) values (-1, 1, %s, 'x')", noon)
        if "shiftboss_finished" in parents:
            execute(
                "insert into shiftboss_finished"
                " (id, queue, task, args, state, failure_limit, loss_limit, finished_at)"
                " values (-1, 'default', 't', '{}', 'completed', 1, 1, %s)",
                noon,
            )
    return days


def prune(session: Session, days: float = 30) -> Pruned:
    """One pass of a maintainer."""
    answer: Pruned = session.run(partitions.prune(authority=SYSTEM, retention_days=days))
    return answer


def prunes(session: Session, days: float = 30) -> Pruned:
    """Passes until nothing is pending."""

    def passed() -> Pruned | None:
        answer = prune(session, days)
        return None if answer.pending else answer

    return wait_for(passed, seconds=20)


def _one(wish: Wish) -> Verb[Any]:
    return (yield wish)


def is_pending(parent: str) -> bool:
    """Whether a detach of this table's partitions has begun and not ended."""
    found = scalar(
        "select exists (select from pg_inherits where inhparent = %s::regclass and inhdetachpending)", parent
    )
    return bool(found)


def test_days_that_lie_wholly_before_the_retention_are_dropped(perform: Perform) -> None:
    days = old_days(range(5, 11))
    answer = perform(partitions.prune(authority=SYSTEM, retention_days=8))
    gone = {day for day in days if day < today() - timedelta(days=8)}
    assert len(gone) == 2
    assert set(answer.dropped) == {(parent, day) for parent in PARENTS for day in gone}
    assert (answer.kept, answer.pending) == ((), ())
    for parent in PARENTS:
        assert len(tables_of(parent)) == 4
        assert days_of(parent) >= set(days) - gone
    assert perform(partitions.prune(authority=SYSTEM, retention_days=8)) == Pruned((), (), ())


@pytest.mark.requirement("B13")
def test_no_end_of_a_job_waits_while_a_reader_holds_the_days_that_are_dropped(connect: Any, worker: int) -> None:
    maintainer, keeper, reader = connect(), connect(), connect()
    old_days(range(40, 130))
    leases = running(worker, 400)
    reader.execute("begin isolation level repeatable read")
    assert reader.execute("select count(*) from shiftboss_finished") == [(90,)]
    reader.execute("select count(*) from shiftboss_attempt, shiftboss_event")
    over = threading.Event()
    errors: list[Exception] = []

    def work() -> int:
        for number, held in enumerate(leases):
            # Who waited for as long as a keeper waits for a lock would be answered with an error.
            answer = keeper.run(watched(report("fail" if number % 2 else "complete", held, worker), errors))
            assert answer.settled == {held}
            if over.is_set() and number > 100:
                break
        return number

    def drop() -> Pruned:
        try:
            return prune(maintainer)
        finally:
            over.set()

    answer, settled = together(drop, work)
    # Everything is pending, for the reader still sees it; nobody else has waited for that.
    assert (answer.dropped, answer.kept) == ((), ())
    assert len(answer.pending) == 270
    assert settled > 100
    assert errors == []
    assert reader.execute("select count(*) from shiftboss_finished") == [(90,)]
    reader.execute("commit")
    assert len(prunes(maintainer).dropped) == 270
    # The days that are being written are there.
    assert all(today() in days_of(parent) for parent in PARENTS)
    assert [tables_of(parent) for parent in PARENTS] == [[], [], []]


def test_a_pass_beside_a_reader_ends_with_what_it_could_not_drop_pending(connect: Any) -> None:
    maintainer, reader = connect(), connect()
    old_days(range(40, 45))
    reader.execute("begin isolation level repeatable read")
    for parent in PARENTS:
        reader.execute(f"select count(*) from {parent}")
    for _ in range(2):
        assert len(prune(maintainer).pending) == 15
    reader.execute("commit")
    assert len(prunes(maintainer).dropped) == 15


@pytest.mark.requirement("L30")
def test_a_detach_whose_maintainer_was_killed_is_ended_by_the_next(connect: Any) -> None:
    first, second, reader = connect(), connect(), connect()
    days = old_days(range(40, 43), PARENTS[:1])
    reader.execute("begin isolation level repeatable read")
    reader.execute("select count(*) from shiftboss_finished")
    first.execute("set lock_timeout = 0")  # it waits until it is killed
    first.execute("set statement_timeout = 0")

    def die() -> None:
        with pytest.raises(StoreUnavailable):
            prune(first)

    def kill() -> None:
        wait_for(lambda: second.execute(PENDING), seconds=10, every=0.01)
        second.execute("select pg_terminate_backend(%s)", [first.pid])

    together(die, kill)
    assert is_pending("shiftboss_finished")
    assert len(prune(second).pending) == 3
    assert is_pending("shiftboss_finished")
    # Whoever reads from now on sees one day less; nobody's write is held up.
    reader.execute("commit")
    assert set(prunes(second).dropped) == {("shiftboss_finished", day) for day in days}
    assert tables_of("shiftboss_finished") == []


PENDING = "select inhrelid from pg_inherits where inhdetachpending"


@pytest.mark.requirement("L30")
def test_a_day_whose_maintainer_died_before_it_was_dropped_is_dropped_by_the_next(perform: Perform) -> None:
    days = old_days(range(40, 42))
    verb = partitions.prune(authority=SYSTEM, retention_days=30)
    wish = next(verb)
    while not isinstance(wish, Call) or wish.statement.name != "drop_partition":
        wish = verb.send(perform(_one(wish)))
    verb.close()
    assert sum(len(tables_of(parent)) for parent in PARENTS) == 6
    assert sum(len(days_of(parent).intersection(days)) for parent in PARENTS) == 5
    answer = perform(partitions.prune(authority=SYSTEM, retention_days=30))
    assert set(answer.dropped) == {(parent, day) for parent in PARENTS for day in days}
    assert [tables_of(parent) for parent in PARENTS] == [[], [], []]


@pytest.mark.requirement("L29")
@pytest.mark.parametrize("parent", ["shiftboss_attempt", "shiftboss_event"])
def test_a_day_is_kept_as_long_as_a_job_that_lives_has_a_row_in_it(
    parent: str, perform: Perform, worker: int
) -> None:
    [held] = running(worker)
    [day, other] = old_days(range(40, 42))
    execute(
        f"update {parent} set job_id = %s where job_id = -1 and tableoid = %s::regclass",
        held.job_id,
        f"{parent}_{day:%Y%m%d}",
    )
    answer = perform(partitions.prune(authority=SYSTEM, retention_days=30))
    assert answer.kept == ((parent, day),)
    assert len(answer.dropped) == 5
    assert other not in days_of(parent)
    assert scalar(f"select count(*) from {parent} where job_id = %s", held.job_id) == 1
    run(report("complete", held, worker))
    assert perform(partitions.prune(authority=SYSTEM, retention_days=30)).dropped == ((parent, day),)


def test_a_day_that_somebody_else_has_detached_is_theirs(perform: Perform) -> None:
    [day] = old_days(range(40, 41))
    execute(f"alter table shiftboss_event detach partition shiftboss_event_{day:%Y%m%d}")
    answer = perform(partitions.prune(authority=SYSTEM, retention_days=30))
    assert {parent for parent, _ in answer.dropped} == {"shiftboss_finished", "shiftboss_attempt"}
    assert len(tables_of("shiftboss_event")) == 1


def test_a_day_that_cannot_go_keeps_no_other_from_going(perform: Perform) -> None:
    [blocked, other] = old_days(range(40, 42))
    execute(f"create view archive as select * from shiftboss_attempt_{blocked:%Y%m%d}")
    try:
        answer = perform(partitions.prune(authority=SYSTEM, retention_days=30))
        [(parent, day, reason)] = answer.failed
        assert (parent, day) == ("shiftboss_attempt", blocked)
        assert "depend" in reason
        assert len(answer.dropped) == 5
        assert other not in days_of("shiftboss_attempt")
        again = perform(partitions.prune(authority=SYSTEM, retention_days=30))
        assert [failed[:2] for failed in again.failed] == [("shiftboss_attempt", blocked)]
    finally:
        execute("drop view archive")
    assert perform(partitions.prune(authority=SYSTEM, retention_days=30)).dropped == (
        ("shiftboss_attempt", blocked),
    )


def test_a_partition_with_a_name_of_somebody_elses_stops_nothing(perform: Perform) -> None:
    execute(
        "create table shiftboss_event_archive partition of shiftboss_event"
        " for values from ('2001-01-01+00') to ('2001-01-02+00')"
    )
    try:
        perform(partitions.make_partitions(authority=SYSTEM, days_ahead=3))
        assert perform(partitions.prune(authority=SYSTEM, retention_days=30)) == Pruned((), (), ())
    finally:
        execute("drop table shiftboss_event_archive")


def test_days_of_another_table_are_not_ours(perform: Perform) -> None:
    execute("create table orders (at timestamptz) partition by range (at)")
    execute("create table orders_20200101 partition of orders for values from ('2020-01-01') to ('2020-01-02')")
    try:
        assert perform(partitions.prune(authority=SYSTEM, retention_days=1)) == Pruned((), (), ())
        assert scalar("select to_regclass('orders_20200101')")
    finally:
        execute("drop table orders")


def test_tables_that_are_no_days_of_the_history_are_left_alone(perform: Perform) -> None:
    others = (
        "shiftboss_event_20200231",
        "shiftboss_finished_20200102",
        "shiftboss_finished_backup",
        "other_20200101",
        "shiftboss_finished_backup_20200101",
        "shiftboss_job_20200101",
    )
    for name in others:
        execute(f"create table {name} (id bigint)")
    execute("create view shiftboss_event_20200101 as select 1 as id")
    try:
        assert perform(partitions.prune(authority=SYSTEM, retention_days=1)) == Pruned((), (), ())
        assert all(scalar("select to_regclass(%s)", name) for name in others)
    finally:
        execute("drop view shiftboss_event_20200101")
        for name in others:
            execute(f"drop table {name}")


@pytest.mark.requirement("N2", "L30")
def test_several_maintainers_at_one_moment_drop_each_day_once(connect: Any) -> None:
    sessions = [connect(), connect(), connect()]
    for _ in range(3):
        days = old_days(range(40, 50))
        answers = together(*[lambda session=session: prunes(session) for session in sessions])
        dropped = [item for answer in answers for item in answer.dropped]
        assert len(set(dropped)) == len(dropped)
        assert {day for _, day in dropped} <= set(days)
        assert [tables_of(parent) for parent in PARENTS] == [[], [], []]


def test_a_lock_on_the_table_makes_a_pass_pending(connect: Any) -> None:
    maintainer, holder = connect(), connect()
    old_days(range(40, 42))
    holder.execute("begin")
    holder.execute("lock table shiftboss_attempt in share update exclusive mode")
    answer = prune(maintainer)
    assert {parent for parent, _ in answer.pending} == {"shiftboss_attempt"}
    assert len(answer.pending) == 2
    assert len(answer.dropped) == 4
    holder.execute("commit")
    assert len(prunes(maintainer).dropped) == 2


# Purge


@pytest.mark.requirement("C4")
def test_a_purge_drops_what_the_retention_would_have_kept(perform: Perform) -> None:
    days = old_days(range(1, 5))
    perform(partitions.purge(today() - timedelta(days=2), authority=SYSTEM))
    answer = perform(partitions.prune(authority=SYSTEM, retention_days=30))
    assert {day for _, day in answer.dropped} == {day for day in days if day < today() - timedelta(days=2)}
    # The latest day that was asked for counts, in whatever order it was.
    perform(partitions.purge(today(), authority=SYSTEM))
    perform(partitions.purge(today() - timedelta(days=9), authority=SYSTEM))
    perform(partitions.purge(today(), authority=SYSTEM))
    answer = perform(partitions.prune(authority=SYSTEM, retention_days=30))
    assert {day for _, day in answer.dropped} == set(days[:2])
    assert all(today() in days_of(parent) for parent in PARENTS)


def test_a_purge_keeps_nothing_that_the_retention_drops(perform: Perform) -> None:
    old_days(range(40, 42))
    perform(partitions.purge(today() - timedelta(days=90), authority=SYSTEM))
    assert len(perform(partitions.prune(authority=SYSTEM, retention_days=30)).dropped) == 6


@pytest.mark.requirement("C4")
def test_a_day_that_has_not_begun_is_not_purged(perform: Perform) -> None:
    with pytest.raises(InvalidJob, match="before today"):
        perform(partitions.purge(today() + timedelta(days=1), authority=SYSTEM))
    assert scalar("select count(*) from shiftboss_purge") == 0


@pytest.mark.requirement("N4")
def test_owners_drop_no_history() -> None:
    for verb in (
        partitions.purge(today(), authority=Owner("kim")),
        partitions.prune(authority=Owner("kim"), retention_days=1),
    ):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)
