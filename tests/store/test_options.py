"""The options of a task, on the decorator and through `using()`, and many jobs at once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

import shiftboss
from shiftboss import Owner, System
from shiftboss.queue.errors import InvalidJob, KeyHeld
from shiftboss.queue.keys import read_key
from shiftboss.queue.store.statement import run
from shiftboss.queue.tasks import ShiftbossTask
from tests.store.making import TASK, claim, finished, live, scalar
from tests.store.tasks import add, fetch

ADD = "tests.store.tasks.add"
KIM, LEE = Owner("kim"), Owner("lee")
NOON = datetime(2050, 1, 1, 12, tzinfo=UTC)


def row(result: Any) -> dict[str, Any]:
    """The live row of a result's job."""
    found = live(int(result.id))
    assert found is not None
    return found


@pytest.mark.requirement("R8", "C8")
def test_all_options_come_through_using() -> None:
    changed = add.using(
        key="k", tags=["red", "blue"], tenant="acme", watchers=["lee"], deadline=NOON, authority=KIM, priority=3
    )
    made = row(changed.enqueue(1))
    assert (made["tags"], made["tenant"], made["watchers"], made["priority"]) == (
        ["red", "blue"],
        "acme",
        ["lee"],
        3,
    )
    assert (made["deadline"], made["owner"]) == (NOON, "kim")
    assert read_key(made["key"]) == ("owner", "kim", "k")
    assert row(add.enqueue(1))["key"] is None


@pytest.mark.requirement("R8")
def test_an_option_that_cannot_be_is_told_where_it_is_declared() -> None:
    for options, told in (
        ({"on_conflict": "overwrite"}, "on_conflict must be one of existing, replace, refuse, not 'overwrite'"),
        ({"key_scope": "world"}, "key_scope must be one of owner, global"),
        ({"tags": "red"}, "tags must be a list of texts"),
        ({"isolation": "async"}, "is for coroutine functions"),
        ({"isolation": "vm"}, "isolation must be one of thread, async"),
    ):
        with pytest.raises(InvalidJob, match=told):
            add.using(**options)
    assert fetch.using(isolation="async").isolation == "async"


@pytest.mark.requirement("N5", "P2")
def test_a_key_may_be_made_of_the_arguments() -> None:
    keyed: ShiftbossTask = add.using(key=lambda a, b=0: f"sum-{a}" if a else None)
    first, second = keyed.enqueue(1), keyed.enqueue(1, b=7)
    assert first.id == second.id
    assert second.args == [1]  # the job that holds the key, as it is
    assert keyed.enqueue(2).id != first.id
    assert keyed.enqueue(0).id != keyed.enqueue(0).id
    with pytest.raises(InvalidJob, match="key must be a text, not a int"):
        add.using(key=lambda a: a).enqueue(3)


@pytest.mark.requirement("P2", "N5")
def test_at_most_one_job_of_a_unique_task_lives_with_the_same_arguments() -> None:
    unique = add.using(unique=True)
    first = unique.enqueue(1, b=2)
    assert unique.enqueue(a=1, b=2).id == first.id
    assert len({first.id, unique.enqueue(1).id, add.enqueue(1, b=2).id}) == 3
    assert unique.using(authority=KIM).enqueue(1, b=2).id != first.id
    with pytest.raises(KeyHeld):
        unique.using(on_conflict="refuse").enqueue(1, b=2)


@pytest.mark.requirement("N5")
def test_two_owners_never_meet_under_a_key_unless_it_is_global() -> None:
    mine, theirs = add.using(key="k", authority=KIM), add.using(key="k", authority=LEE)
    assert mine.enqueue(1).id != theirs.enqueue(1).id
    held = add.using(key="g", key_scope="global", authority=KIM).enqueue(1)
    with pytest.raises(KeyHeld, match="another owner's, which this authority may not see") as caught:
        add.using(key="g", key_scope="global", authority=LEE).enqueue(1)
    assert caught.value.holder == int(held.id)
    assert add.using(key="g", key_scope="global").enqueue(1).id == held.id  # System sees all


@pytest.mark.requirement("P2")
def test_a_held_key_is_refused_replaced_or_followed_as_the_task_says(worker: int) -> None:
    keyed = add.using(key="k")
    first = keyed.enqueue(1)
    with pytest.raises(KeyHeld, match=f"held by job {first.id}"):
        keyed.using(on_conflict="refuse").enqueue(2)
    second = keyed.using(on_conflict="replace").enqueue(2)
    gone = finished(int(first.id))
    assert gone is not None
    assert (gone["state"], gone["cancel_cause"], second.args) == ("cancelled", "superseded", [2])
    run(claim(worker, tasks=[ADD]))
    with pytest.raises(KeyHeld, match="only a waiting job can be replaced"):
        keyed.using(on_conflict="replace").enqueue(3)
    follow = keyed.using(follow_up=True)
    third = follow.enqueue(3)
    assert third.id not in {first.id, second.id}
    assert follow.enqueue(4).id == third.id
    assert row(third)["state"] == "scheduled"


@pytest.mark.requirement("P5")
def test_many_are_enqueued_in_order_with_and_without_keys() -> None:
    keyed = add.using(key=lambda a: f"k{a}")
    calls = [add.with_arguments(1), keyed.with_arguments(2), add.using(priority=9).with_arguments(3, b=4)]
    results = shiftboss.enqueue_many([*calls, keyed.with_arguments(2), add.using(authority=KIM).with_arguments(5)])
    assert [result.args for result in results] == [[1], [2], [3], [2], [5]]
    assert results[1].id == results[3].id
    assert [row(result)["priority"] for result in results] == [0, 0, 9, 0, 0]
    assert [row(result)["owner"] for result in results] == [None, None, None, None, "kim"]
    assert shiftboss.enqueue_many([]) == []


@pytest.mark.requirement("P5")
def test_of_many_all_or_none_are_enqueued() -> None:
    held = add.using(key="k").enqueue(1)
    refusing = add.using(key="k", on_conflict="refuse")
    with pytest.raises(KeyHeld), transaction.atomic():
        shiftboss.enqueue_many([add.with_arguments(2), refusing.with_arguments(3)])
    with pytest.raises(KeyHeld):
        shiftboss.enqueue_many([add.with_arguments(2), refusing.with_arguments(3)])
    with pytest.raises(InvalidJob, match="NUL"):
        shiftboss.enqueue_many([add.with_arguments(2), add.with_arguments("\x00")])
    assert scalar("select array_agg(id) from shiftboss_job") == [int(held.id)]


@pytest.mark.requirement("P5")
def test_a_deadline_and_a_due_time_have_time_zones() -> None:
    with pytest.raises(InvalidJob, match="deadline must be an aware datetime"):
        add.using(deadline=datetime(2050, 1, 1)).enqueue(1)
    late = add.using(deadline=datetime.now(UTC) - timedelta(seconds=1)).enqueue(1)
    assert row(late)["state"] == "available"  # the next pass of the upkeep ends it, and no worker takes it


@pytest.mark.requirement("P5")
def test_a_job_past_its_deadline_is_not_claimed(worker: int) -> None:
    add.using(deadline=datetime.now(UTC) - timedelta(seconds=1)).enqueue(1)
    in_time = add.using(deadline=NOON).enqueue(1)
    assert [job.id for job in run(claim(worker, n=9, tasks=[ADD, TASK]))] == [int(in_time.id)]


def test_the_authority_of_a_call_may_be_the_tasks_own() -> None:
    assert row(add.using(authority=System()).enqueue(1))["owner"] is None


@pytest.mark.requirement("R7")
@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [([], {}, "'a'"), ([1, 2, 3], {}, "too many positional"), ([1], {"c": 2}, "'c'"), ([1], {"a": 2}, "'a'")],
)
def test_a_call_that_does_not_fit_is_refused_where_it_is_made(args: Any, kwargs: Any, told: str) -> None:
    for enqueue in (
        lambda: add.enqueue(*args, **kwargs),
        lambda: shiftboss.enqueue_many([add.with_arguments(1), add.with_arguments(*args, **kwargs)]),
    ):
        with pytest.raises(InvalidJob, match=f"the arguments do not fit the task: .*{told}"):
            enqueue()
    assert scalar("select count(*) from shiftboss_job") == 0
