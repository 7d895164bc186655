"""`shiftboss.backfill`: what it takes, which item is the same one, and what it refuses."""

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from shiftboss import InvalidJob, NotAllowed, NotStorable, Owner, System, backfill, conf
from shiftboss.queue.clients.local import LocalClient
from shiftboss.queue.maintainer import Maintainer
from shiftboss.queue.store import backfill as store
from shiftboss.queue.store.statement import run
from tests.clients.conftest import keeper_config
from tests.store.making import SYSTEM, a_worker, address, claim, report, rows, scalar
from tests.store.tasks import add, no_task, send
from tests.store.test_backfill import backfills  # noqa: F401, leaves none to the next test

pytestmark = pytest.mark.requirement("L19")


def keys() -> list[str]:
    """The keys of all items, in the order in which they get their jobs."""
    run(store.feed(authority=SYSTEM))
    return [key for (key,) in rows("select meta->>'item' from shiftboss_job order by id")]


def test_a_range_runs_in_the_order_of_its_numbers() -> None:
    begun = backfill(add, range(95, 105), name="sums", concurrency=100)
    assert begun.new == 10
    assert [int(key) for key in keys()] == list(range(95, 105))
    assert scalar("select args from shiftboss_job order by id limit 1") == '{"args": [95], "kwargs": {}}'
    again = backfill(add, range(90, 107), name="sums")
    assert (again.id, again.name, again.new) == (begun.id, "sums", 7)
    assert backfill(add, range(90, 107), name="sums").new == 0


def test_a_job_has_what_its_task_says() -> None:
    backfill(send.using(priority=7), ["kim"], name="mails", authority=Owner("user_7"))
    run(store.feed(authority=SYSTEM))
    [row] = rows("select queue, task, priority, failure_limit, owner from shiftboss_job")
    assert row == ("mail", "tests.store.tasks.send", 7, 2, "user_7")
    [revision] = rows(
        "select config->>'backoff' from shiftboss_revision r, shiftboss_job j where revision_id = revision"
    )
    assert revision == ("[1.0, 60.0]",) or revision == ("[1, 60]",)


def test_an_item_is_any_value_that_a_job_can_have() -> None:
    some: list[Any] = [
        {"id": 1, "at": uuid.UUID(int=5)},
        "1",
        1,
        True,
        None,
        1.5,
        [1, 2],
        "x" * 5000,
        "a\nb",
        -3,
        10**30,
        "x" * 5001,
    ]
    assert backfill(add, iter(some), name="all", concurrency=100).new == len(some)
    again = [{"at": uuid.UUID(int=5), "id": 1}, *some[1:]]
    assert backfill(add, again, name="all").new == 0, "the order of an object's names is nothing"
    assert all(len(key) < 400 and key.isprintable() for key in keys())


def test_a_batch_is_one_job_with_a_list() -> None:
    assert backfill(add, range(10), name="sums", batch=4, concurrency=100).new == 3
    assert [first.split(" ")[:2] for first in keys()] == [
        ["0000000000000000000", "+3"],
        ["0000000000000000004", "+3"],
        ["0000000000000000008", "+1"],
    ]
    assert [args for (args,) in rows("select args->'args' from shiftboss_job order by id")] == [
        "[[0, 1, 2, 3]]",
        "[[4, 5, 6, 7]]",
        "[[8, 9]]",
    ]
    assert backfill(add, range(10), name="sums", batch=4).new == 0
    assert backfill(add, range(12), name="sums", batch=4).new == 1, "the last one is another one"


def test_what_cannot_be_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{"batch": 0}, {"batch": "2"}, {"concurrency": 0}, {"name": ""}]
    for options in wrong:
        with pytest.raises(InvalidJob):
            backfill(add, [1], **({"name": "sums"} | options))
    with pytest.raises(InvalidJob, match="cannot have key, tags"):
        backfill(add.using(key="k", tags=["a"]), [1], name="sums")
    with pytest.raises(InvalidJob, match="wants a task"):
        backfill(no_task, [1], name="sums")  # type: ignore[arg-type]
    with pytest.raises(NotStorable):
        backfill(add, [1, object()], name="sums")
    for nobody in ("user_7", "", True, Owner):
        with pytest.raises(TypeError, match="authority must be"):
            backfill(add, [1], name="sums", authority=nobody)  # type: ignore[arg-type]


def nowhere(*_: Any) -> bool:
    """Nobody may enqueue anywhere."""
    return False


def test_the_projects_authorizer_is_asked(monkeypatch: Any) -> None:
    config = replace(conf.get(), queue_authorizer=f"{__name__}.nowhere")
    monkeypatch.setattr(conf, "get", lambda: config)
    with pytest.raises(NotAllowed, match="may not enqueue"):
        backfill(add, [1], name="sums")


def test_without_an_authority_nothing_is_begun(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": "shiftboss.queue.backend.ShiftbossBackend", "QUEUES": []}}
    with pytest.raises(NotAllowed):
        backfill(add, [1], name="sums")
    assert backfill(add.using(authority=System()), [1], name="sums").new == 1


def test_a_million_items_would_not_be_held_in_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr(store, "ADD_ITEMS", 10)
    seen: list[int] = []

    def counting() -> Iterator[int]:
        for number in range(50):
            seen.append(scalar("select count(*) from shiftboss_backfill_item"))
            yield number

    backfill(add, counting(), name="sums")
    assert seen == [number // 10 * 10 for number in range(50)]


def test_a_rollback_takes_it_all() -> None:
    with transaction.atomic():
        backfill(add, range(10), name="sums")
        transaction.set_rollback(True)
    assert scalar("select count(*) from shiftboss_backfill") == 0


def test_a_job_of_a_batch_that_fails_is_run_again_alone() -> None:
    """L19: of a batch, only its failed members."""
    begun = backfill(add.using(max_attempts=1), range(6), name="sums", batch=2)
    run(store.feed(authority=SYSTEM))
    worker = a_worker(tasks=["tests.store.tasks.add"])
    jobs = run(claim(worker, n=3, tasks=["tests.store.tasks.add"]))
    for verb, job in zip(("complete", "fail", "complete"), jobs, strict=True):
        run(report(verb, job.lease, worker))
    run(store.retry(begun.id, authority=SYSTEM))
    run(store.feed(authority=SYSTEM))
    [again] = run(claim(worker, n=3, tasks=["tests.store.tasks.add"]))
    assert (again.id, again.args) == (jobs[1].id, '{"args": [[2, 3]], "kwargs": {}}')


def test_the_maintainer_feeds_and_so_does_a_worker_where_there_is_none() -> None:
    async def by_the_maintainer() -> None:
        maintainer = Maintainer(keeper_config(address()))
        await maintainer.feed()
        await maintainer._connection.close()

    async def by_a_worker() -> int:
        client = LocalClient(keeper_config(address()))
        await client.open()
        try:
            return await client.stage()
        finally:
            await client.close()

    backfill(add, range(3), name="sums", concurrency=2)
    asyncio.run(by_the_maintainer())
    assert scalar("select count(*) from shiftboss_job") == 2
    backfill(send, ["kim"], name="mails")
    assert asyncio.run(by_a_worker()) == 1
