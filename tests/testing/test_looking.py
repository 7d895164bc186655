"""What was enqueued, and backends that need no database."""

from typing import Any

import pytest
from django.utils import timezone

from shiftboss import InvalidJob, Owner, System, enqueue_many, task
from shiftboss.compat import TaskResultDoesNotExist, task_backends
from shiftboss.queue.clients.memory import MemoryStore
from shiftboss.queue.jobs import NewJob
from shiftboss.testing import assert_enqueued, assert_not_enqueued, enqueued, run_jobs
from tests.testing import tasks

pytestmark = pytest.mark.requirement("P10")


@pytest.fixture
def dummy(settings: Any) -> Any:
    """A project whose tests keep what is enqueued."""
    settings.TASKS = {"default": {"BACKEND": "shiftboss.testing.DummyBackend", "QUEUES": []}}
    return task_backends["default"]


@pytest.fixture
def immediate(settings: Any) -> Any:
    """A project whose tests run tasks where they are enqueued."""
    settings.TASKS = {
        "default": {
            "BACKEND": "shiftboss.testing.ImmediateBackend",
            "QUEUES": [],
            "OPTIONS": {"authority": System()},
        }
    }
    return task_backends["default"]


def look(in_database: bool) -> None:
    """The same looks at what the same calls have enqueued."""
    assert_not_enqueued(tasks.send)
    with pytest.raises(AssertionError, match=r"no job of tests\.testing\.tasks\.send waits\. Nothing waits\."):
        assert_enqueued(tasks.send)
    tasks.send.enqueue("kim", copy=True)
    tasks.send.using(queue_name="slow", authority=Owner("lee")).enqueue("lee")
    tasks.make_group.using(run_after=timezone.now()).enqueue("a")
    kim, lee = assert_enqueued(tasks.send)
    assert (kim.args, kim.kwargs, kim.queue, kim.priority, kim.owner) == (
        ("kim",),
        {"copy": True},
        "mail",
        7,
        None,
    )
    assert (lee.args, lee.kwargs, lee.queue, lee.owner) == (("lee",), {}, "slow", "lee")
    assert [job.task for job in enqueued()] == [kim.task, lee.task, "tests.testing.tasks.make_group"]
    assert enqueued(tasks.send, queue="slow") == [lee]
    assert assert_enqueued(tasks.send, args=["kim"], kwargs={"copy": True}, queue="mail", count=1) == [kim]
    assert_enqueued(tasks.send, count=2)
    assert_not_enqueued(tasks.send, args=("kim",), queue="slow")
    assert_not_enqueued(tasks.fail)
    with pytest.raises(AssertionError) as wrong:
        assert_enqueued(tasks.send, args=("jo",), kwargs={}, queue="mail")
    assert str(wrong.value) == (
        "no job of tests.testing.tasks.send waits with args ('jo',) and kwargs {} and queue 'mail'. What waits:\n"
        "  tests.testing.tasks.send('kim', copy=True) in queue 'mail'\n"
        "  tests.testing.tasks.send('lee') in queue 'slow'\n"
        "  tests.testing.tasks.make_group('a') in queue 'default'"
    )
    with pytest.raises(AssertionError, match=r"^2 jobs and not 3 of tests\.testing\.tasks\.send waits\."):
        assert_enqueued(tasks.send, count=3)
    with pytest.raises(AssertionError, match=r"^1 jobs of tests\.testing\.tasks\.make_group waits\."):
        assert_not_enqueued(tasks.make_group)
    for number in range(9):
        tasks.fail.enqueue(str(number))
    with pytest.raises(AssertionError, match=r"… and 2 more$"):
        assert_enqueued(tasks.leave)


@pytest.mark.django_db
def test_what_waits_in_the_database_is_seen() -> None:
    look(in_database=True)
    run_jobs(queue="mail")
    assert_not_enqueued(tasks.send, queue="mail")


def test_what_the_dummy_keeps_is_seen_without_a_database(dummy: Any) -> None:
    look(in_database=False)
    dummy.clear()
    assert enqueued() == []


def test_what_waits_in_memory_is_seen_without_a_database() -> None:
    store = MemoryStore()
    new = NewJob(
        queue="mail",
        task=tasks.send.module_path,
        args='{"args": ["kim"], "kwargs": {}}',
        failure_limit=1,
        loss_limit=1,
    )
    store.enqueue(new, authority=System())
    [job] = assert_enqueued(tasks.send, args=["kim"], store=store)
    assert job.queue == "mail"
    assert_not_enqueued(tasks.send, args=["lee"], store=store)


def declared() -> Any:
    """A task with every option, declared under the backend of the test."""
    return task(
        max_attempts=2,
        backoff=[1],
        authority=Owner("kim"),
        key="one",
        key_scope="global",
        on_conflict="replace",
        tags=["a"],
        tenant="t",
        watchers=["lee"],
        queue_name="any",
        priority=3,
    )(tasks.send.func)


def test_the_dummy_takes_every_option_and_gives_results(dummy: Any) -> None:
    result = declared().enqueue("kim")
    assert (result.status, result.args, dummy.results) == ("READY", ["kim"], [result])
    assert declared().get_result(result.id).id == result.id
    result.refresh()
    with pytest.raises(TaskResultDoesNotExist):
        dummy.get_result("1")
    both = enqueue_many([tasks.send.with_arguments("a"), tasks.send.with_arguments("b")])
    assert [one.args for one in both] == [["a"], ["b"]]
    with pytest.raises(InvalidJob):
        tasks.send.enqueue(object())


def test_the_immediate_one_runs_at_once_with_every_option(immediate: Any) -> None:
    result = declared().enqueue("kim")
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", "kim", 1)
    assert [one.return_value for one in enqueue_many([tasks.send.with_arguments("a")])] == ["a"]


def test_the_immediate_one_gives_a_context_that_works(immediate: Any) -> None:
    assert tasks.use_context.enqueue("plain").return_value == [1, 1, None, None]
    assert tasks.context_in_a_coroutine.enqueue().return_value == 3
    assert tasks.use_context.enqueue("snooze").status == "READY"
    discarded = tasks.use_context.enqueue("discard")
    assert (discarded.status, len(discarded.errors)) == ("FAILED", 1)
    failed = tasks.clean_up_and_fail.enqueue("at 7")
    assert failed.status == "FAILED"
    assert failed.errors[0].exception_class is ValueError
    assert "at 7" in failed.errors[0].traceback
    assert tasks.leave.enqueue().errors[0].exception_class is SystemExit
