"""Many jobs at once: all or none, answered in their order, copied in where they have no key."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import DataError, transaction

from shiftboss import Owner
from shiftboss.queue.errors import KeyHeld
from shiftboss.queue.states import State
from shiftboss.queue.store.enqueue import OnConflict, enqueue, enqueue_many
from shiftboss.queue.store.statement import Atomic, run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, a_worker, claimed, enqueued, live, new_job, rows, scalar
from tests.store.sessions import Ear

pytestmark = pytest.mark.requirement("P5")


def test_answers_come_in_the_order_of_the_jobs_whatever_way_each_went(perform: Perform) -> None:
    [held] = enqueued(key="held")
    jobs = [
        new_job(priority=1),
        new_job(key="b", priority=2),
        new_job(key="held", priority=3),
        new_job(due_in=3600, priority=4),
        new_job(key="a", due_in=3600, priority=5),
        new_job(key="b", priority=6),
        new_job(due_in=-5, priority=7),
    ]
    answers = perform(enqueue_many(jobs, authority=SYSTEM))
    assert [answer.existing for answer in answers] == [False, False, True, False, False, True, False]
    found = [(live(answer.id) or {})["priority"] for answer in answers]
    assert found == [1, 2, 0, 4, 5, 2, 7]
    assert answers[2].id == held
    assert answers[5].id == answers[1].id
    states = [State(str((live(answer.id) or {})["state"])) for answer in answers]
    assert [answer.state for answer in answers] == states
    assert [str(one) for one in states] == [*["available"] * 3, *["scheduled"] * 2, *["available"] * 2]


@pytest.mark.parametrize("key", [None, "k1"], ids=["copied", "with a key"])
def test_many_keep_what_one_would_have_kept(key: str | None, perform: Perform) -> None:
    how: dict[str, Any] = {
        "queue": "mail",
        "priority": -7,
        "failure_limit": 9,
        "loss_limit": 4,
        "meta": '{"m": "ä\\\\tb\\nc"}'.replace("\n", "\\n"),
        "args": '{"args": ["a\\\\b\\tc", "{}", "\\\\N"], "kwargs": {"to": "名前"}}'.replace("\t", "\\t"),
        "due_in": 3600,
        "deadline_in": 7200,
        "tenant": "acme",
        "tags": ("a", 'b "c", {d}', "\\N"),
        "watchers": ("lee", "名前"),
    }
    job, twin = new_job(key=key, **how), new_job(key=key and "k2", **how)
    one = perform(enqueue(job, authority=Owner("kim")))
    [other] = perform(enqueue_many([twin], authority=Owner("kim")))
    first, second = live(one.id) or {}, live(other.id) or {}
    own = {"id", "key", "enqueued_at", "due_at", "deadline"}
    assert {name: value for name, value in second.items() if name not in own} == {
        name: value for name, value in first.items() if name not in own
    }
    for name in ("due_at", "deadline"):
        assert abs(second[name] - first[name]) < timedelta(seconds=5)
    assert second["enqueued_at"] == other.enqueued_at > first["enqueued_at"]


BAD = {
    "a NUL": '{"args": ["a\x00b"]}',
    "an escaped NUL": '{"args": ["a\\u0000b"]}',
    "a lone surrogate": '{"args": ["\ud800"]}',
    "no JSON": "{",
    "nothing": "",
}


@pytest.mark.parametrize("key", [None, "bad"], ids=["copied", "with a key"])
@pytest.mark.parametrize("args", BAD.values(), ids=BAD)
def test_one_bad_job_keeps_all_out_and_the_callers_transaction_goes_on(args: str, key: str | None) -> None:
    jobs = [new_job(), new_job(key="k1"), new_job(args=args, key=key), new_job(key="k2"), new_job()]
    with transaction.atomic():
        [before] = enqueued()
        with pytest.raises(DataError):
            run(enqueue_many(jobs, authority=SYSTEM))
        [after] = enqueued()
    assert rows("select id from shiftboss_job order by id") == [(before,), (after,)]


@pytest.mark.parametrize("key", [None, "bad"], ids=["copied", "with a key"])
@pytest.mark.parametrize("args", BAD.values(), ids=BAD)
def test_one_bad_job_keeps_all_out_on_a_connection_as_keepers_have(
    args: str, key: str | None, connect: Any
) -> None:
    jobs = [new_job(), new_job(key="k1"), new_job(args=args, key=key), new_job()]
    session = connect()
    with pytest.raises(psycopg.DataError):
        session.run(enqueue_many(jobs, authority=SYSTEM))
    assert scalar("select count(*) from shiftboss_job") == 0
    assert len(session.run(enqueue_many(jobs[:2], authority=SYSTEM))) == 2


def test_the_server_tells_which_of_many_is_bad() -> None:
    with pytest.raises(DataError, match=r"(?s)invalid input syntax for type json.*line 3, column args"):
        run(enqueue_many([new_job(), new_job(), new_job(args="{")], authority=SYSTEM))


def test_a_key_that_is_held_keeps_all_out_where_the_job_refuses_it(perform: Perform) -> None:
    [held] = enqueued(key="k1")
    jobs = [new_job(), new_job(key="k0"), new_job(key="k1", on_conflict=OnConflict.REFUSE), new_job(key="k2")]
    with pytest.raises(KeyHeld) as refused:
        perform(enqueue_many(jobs, authority=SYSTEM))
    assert refused.value.holder == held
    assert rows("select id from shiftboss_job") == [(held,)]


def test_of_two_with_one_key_the_later_may_take_the_place_of_the_earlier(perform: Perform) -> None:
    jobs = [new_job(key="k1", priority=n, on_conflict=OnConflict.REPLACE) for n in (1, 2, 3)]
    answers = perform(enqueue_many(jobs, authority=SYSTEM))
    assert len({answer.id for answer in answers}) == 3
    assert rows("select id, priority from shiftboss_job") == [(answers[2].id, 3)]


@pytest.mark.requirement("C1", "L9")
@pytest.mark.parametrize("keyed", [False, True], ids=["copied", "with keys"])
def test_each_queue_is_notified_once_with_its_highest_priority(keyed: bool, perform: Perform, ear: Ear) -> None:
    a_worker("a", idle=True)
    a_worker("b", idle=True)
    jobs = [
        new_job(queue=queue, priority=priority, key=f"{queue} {priority}" if keyed else None)
        for priority in (1, 9, -5)
        for queue in ("a", "b", "c")
    ]
    # What is not yet due is not what a worker is woken for.
    jobs.append(new_job(queue="a", priority=50, due_in=3600, key="later" if keyed else None))
    perform(enqueue_many(jobs, authority=SYSTEM))
    enqueued(queue="a", priority=99)
    heard = [ear.heard() for _ in range(3)]
    assert sorted(heard[:2]) == ["9 a", "9 b"]
    assert heard[2] == "99 a"


def test_no_jobs_are_no_jobs(perform: Perform) -> None:
    assert perform(enqueue_many([], authority=SYSTEM)) == []


def test_twenty_thousand_jobs_come_in_at_once_and_in_their_order(perform: Perform, worker: int) -> None:
    jobs = [new_job(args=f'{{"args": [{n}]}}') for n in range(20_000)]
    answers = perform(enqueue_many(jobs, authority=SYSTEM))
    ids = [answer.id for answer in answers]
    assert sorted(set(ids)) == ids
    assert scalar("select count(*) from shiftboss_job where state = 'available'") == 20_000
    for n in (0, 9_999, 10_000, 19_999):
        assert scalar("select args -> 'args' ->> 0 from shiftboss_job where id = %s", ids[n]) == str(n)
    assert [job.id for job in claimed(worker, 3)] == ids[:3]


def test_ids_of_copied_jobs_are_nobody_elses(perform: Perform) -> None:
    first = perform(enqueue_many([new_job()] * 3, authority=SYSTEM))
    [between] = enqueued()
    second = perform(enqueue_many([new_job()] * 3, authority=SYSTEM))
    ids = [answer.id for answer in (*first, *second)]
    assert len({*ids, between}) == 7


@pytest.mark.requirement("L30")
def test_many_are_tried_again_after_a_deadlock() -> None:
    verb = enqueue_many([new_job(key="k1"), new_job()], authority=SYSTEM)
    assert isinstance(next(verb), Atomic)
    again = verb.throw(psycopg.errors.DeadlockDetected())
    assert isinstance(again, Atomic)
    answers = run(again.verb)
    assert len(answers) == 2
    assert datetime.now(UTC) - answers[0].enqueued_at < timedelta(minutes=1)
    verb.close()
