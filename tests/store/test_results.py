"""Awaiting the end of a job, and ending it, by its result."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction

from shiftboss import Owner
from shiftboss.compat import TaskResultStatus
from shiftboss.queue.errors import InTransaction, MovedOn, NoSuchJob, StillRunning
from shiftboss.queue.store.statement import run
from tests.store.making import claimed, report, rows, scalar
from tests.store.tasks import add
from tests.waiting import wait_for

ADD = "tests.store.tasks.add"


@contextmanager
def beside(do: Callable[[], Any]) -> Iterator[None]:
    """Something done in another thread, with connections of its own."""

    def work() -> None:
        try:
            do()
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(20)


def awaited(job_id: str) -> bool:
    """Whether somebody has noted that they await this job."""
    return bool(scalar("select count(*) from shiftboss_waiter where job_id = %s", int(job_id)))


@pytest.mark.requirement("R10")
def test_a_waiter_is_woken_by_the_end_and_has_the_result(worker: int) -> None:
    result = add.enqueue(1)
    [job] = claimed(worker, tasks=[ADD])

    def finish() -> None:
        wait_for(lambda: awaited(result.id), seconds=10)
        run(report("complete", job.lease, worker))

    with beside(finish):
        result.wait_end(seconds=20)
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, {"sum": 3})
    assert rows("select id from shiftboss_waiter") == []


@pytest.mark.requirement("R10")
def test_a_coroutine_may_await_the_end(worker: int) -> None:
    result = add.enqueue(1)
    [job] = claimed(worker, tasks=[ADD])

    def finish() -> None:
        wait_for(lambda: awaited(result.id), seconds=10)
        run(report("fail", job.lease, worker))
        result.cancel()

    with beside(finish):
        async_to_sync(result.await_end)(seconds=20)
    assert result.status == TaskResultStatus.FAILED


@pytest.mark.requirement("R10")
def test_waiting_is_bounded_and_never_ends_the_job() -> None:
    result = add.enqueue(1)
    with pytest.raises(StillRunning, match=r"has not ended within 0\.05 s; it goes on"):
        result.wait_end(seconds=0.05)
    assert issubclass(StillRunning, TimeoutError)
    assert result.status == TaskResultStatus.READY
    assert rows("select id from shiftboss_waiter") == []


@pytest.mark.requirement("R10")
def test_many_may_wait_at_once_and_who_gives_up_leaves_nothing() -> None:
    result = add.enqueue(1)

    async def wait_and_give_up() -> list[BaseException | None]:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(result.await_end(seconds=60), 0.3)
        return await asyncio.gather(*(result.await_end(seconds=0.5) for _ in range(20)), return_exceptions=True)

    answers = async_to_sync(wait_and_give_up)()
    assert [type(answer) for answer in answers] == [StillRunning] * 20
    wait_for(lambda: rows("select id from shiftboss_waiter") == [], seconds=20)
    listening = "select count(*) from pg_stat_activity where query like 'listen shiftboss_rested%%'"
    wait_for(lambda: scalar(listening) == 0, seconds=20)


@pytest.mark.requirement("R10")
def test_who_has_not_committed_may_not_wait() -> None:
    with transaction.atomic():
        result = add.enqueue(1)
        with pytest.raises(InTransaction, match="no worker sees a job before it is committed"):
            result.wait_end(seconds=1)


@pytest.mark.requirement("N6", "C4")
def test_owner_and_watcher_may_cancel_and_others_see_nothing(worker: int) -> None:
    watched = add.using(authority=Owner("kim"), watchers=["lee"])
    mine, theirs = watched.enqueue(1), watched.enqueue(2)
    mine.cancel()
    assert (mine.status, scalar("select cancel_cause from shiftboss_finished")) == (
        TaskResultStatus.FAILED,
        "user",
    )
    with pytest.raises(MovedOn, match="it is cancelled"):
        mine.cancel()
    seen = add.using(authority=Owner("lee")).get_result(theirs.id)
    [job] = claimed(worker, tasks=[ADD])
    seen.cancel()
    assert seen.status == TaskResultStatus.RUNNING  # its handler has been asked to end
    assert scalar("select cancel_cause from shiftboss_job") == "user"
    run(report("release", job.lease, worker))
    stranger = add.using(authority=Owner("sam")).enqueue(3)
    object.__setattr__(stranger, "id", theirs.id)
    with pytest.raises(NoSuchJob):
        stranger.cancel()
