"""Jobs declared and enqueued with Django's own Tasks API."""

import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.utils import timezone

from shiftboss import Owner, System, checks, conf, task
from shiftboss.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from shiftboss.queue.errors import InvalidJob, NotAllowed, NotStorable, SchemaTooOld, UnsupportedDatabase
from shiftboss.queue.outcomes import Done, Failed
from shiftboss.queue.payload import encode_result
from shiftboss.queue.store import lease
from shiftboss.queue.store.statement import run
from shiftboss.queue.tasks import ShiftbossTask
from tests.store import tasks
from tests.store.making import NOT_HELD, SYSTEM, claimed, execute, live, report, rows, scalar
from tests.store.tasks import add, fetch, send, with_context

BACKEND = "shiftboss.queue.backend.ShiftbossBackend"
STOCK = (
    "django.tasks.backends" if "django.tasks" in task_backends.__class__.__module__ else "django_tasks.backends"
)
KIM, LEE = Owner("kim"), Owner("lee")
ADD, SEND = "tests.store.tasks.add", "tests.store.tasks.send"


@pytest.fixture
def no_authority(settings: Any) -> None:
    """A project whose backend says nothing of authority."""
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": []}}


def done(job_id: str, worker: int, task: str = ADD) -> None:
    """Let a worker run the job."""
    [job] = claimed(worker, tasks=[task])
    assert job.id == int(job_id)
    run(report("complete", job.lease, worker))


@pytest.mark.requirement("C8", "C1")
def test_a_task_is_enqueued_as_a_job() -> None:
    result = add.enqueue(1, b=2)
    row = live(int(result.id))
    assert row is not None
    assert (row["task"], row["queue"], row["state"], row["priority"]) == (ADD, "default", "available", 0)
    assert scalar('select args = \'{"args": [1], "kwargs": {"b": 2}}\' from shiftboss_job')
    assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, [1], {"b": 2})
    assert result.enqueued_at == row["enqueued_at"]
    assert (result.started_at, result.finished_at, result.attempts, result.backend) == (None, None, 0, "default")
    assert (row["failure_limit"], row["loss_limit"]) == (conf.get().max_attempts, conf.get().max_losses)


@pytest.mark.requirement("C8", "R8")
def test_the_options_of_a_task_come_with_its_jobs() -> None:
    row = live(int(send.enqueue("kim").id))
    assert row is not None
    assert (row["queue"], row["priority"], row["failure_limit"]) == ("mail", 5, 2)
    changed = send.using(priority=-5, queue_name="slow", max_attempts=9)
    row = live(int(changed.enqueue("kim").id))
    assert row is not None
    assert (row["queue"], row["priority"], row["failure_limit"]) == ("slow", -5, 9)
    assert (send.priority, send.backoff) == (5, [1, 60])


@pytest.mark.requirement("C8")
def test_enqueueing_is_possible_from_a_coroutine() -> None:
    result = async_to_sync(add.aenqueue)(1)
    assert rows("select id, task from shiftboss_job") == [(int(result.id), ADD)]
    assert async_to_sync(add.aget_result)(result.id) == add.get_result(result.id)
    async_to_sync(result.arefresh)()
    assert result.status == TaskResultStatus.READY


@pytest.mark.requirement("C8")
@pytest.mark.parametrize("kind", [with_context, fetch])
def test_tasks_with_context_and_coroutines_are_enqueued(kind: Any) -> None:
    result = kind.enqueue("x")
    assert scalar("select task from shiftboss_job where id = %s", int(result.id)) == kind.module_path


@pytest.mark.requirement("P5")
def test_a_job_can_be_put_off() -> None:
    due_at = timezone.now() + timedelta(hours=1)
    result = add.using(run_after=due_at).enqueue(1)
    assert rows("select state, due_at from shiftboss_job") == [("scheduled", due_at)]
    assert add.get_result(result.id).status == TaskResultStatus.READY


@pytest.mark.requirement("P5", "C8")
def test_the_higher_priority_runs_first(worker: int) -> None:
    ids = [int(add.using(priority=priority).enqueue(1).id) for priority in (0, -100, 100, 5)]
    assert [job.id for job in claimed(worker, 4, tasks=[ADD])] == [ids[2], ids[3], ids[0], ids[1]]


@pytest.mark.requirement("C8", "R10")
def test_a_result_tells_of_the_run(worker: int) -> None:
    result = add.enqueue(1, 2)
    [job] = claimed(worker, tasks=[ADD])
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    assert result.started_at == result.last_attempted_at == (live(job.id) or {})["started_at"]
    run(report("complete", job.lease, worker))
    result.refresh()
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, {"sum": 3})
    assert result.is_finished
    assert result.finished_at is not None
    assert (result.attempts, result.worker_ids, result.errors) == (1, [str(worker)], [])
    assert add.get_result(result.id) == result


@pytest.mark.requirement("C8", "R7")
def test_a_result_keeps_its_types(worker: int) -> None:
    value = {"at": datetime(2026, 11, 30, tzinfo=UTC), "price": Decimal("1.50"), "id": UUID(int=7)}
    result = add.enqueue(1)
    [job] = claimed(worker, tasks=[ADD])
    outcome = Done(encode_result(value, max_bytes=10_000), 5)
    run(lease.complete([(job.lease, outcome)], authority=SYSTEM, worker_id=worker))
    result.refresh()
    assert result.return_value == value


@pytest.mark.requirement("C8")
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("scheduled", TaskResultStatus.READY),
        ("available", TaskResultStatus.READY),
        ("retryable", TaskResultStatus.READY),
        ("running under a newer fence", TaskResultStatus.RUNNING),
        ("completed", TaskResultStatus.SUCCESSFUL),
        ("quarantined", TaskResultStatus.FAILED),
        ("cancelled", TaskResultStatus.FAILED),
        ("discarded", TaskResultStatus.FAILED),
    ],
)
def test_each_state_has_its_status(kind: str, status: TaskResultStatus, worker: int) -> None:
    held = NOT_HELD[kind](worker)
    for table in ("job", "finished"):
        execute(f'update shiftboss_{table} set task = %s, args = \'{{"args": [], "kwargs": {{}}}}\'', ADD)
    result = add.get_result(str(held.job_id))
    assert result.status == status
    assert result.is_finished == (status in {TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL})
    assert (result.finished_at is not None) == result.is_finished


@pytest.mark.requirement("C8", "L29")
@pytest.mark.parametrize(
    ("type", "kind"), [("ValueError", ValueError), ("decimal.InvalidOperation", ArithmeticError)]
)
def test_errors_lead_to_their_class_and_traceback(type: str, kind: type[Exception], worker: int) -> None:
    result = add.using(max_attempts=1).enqueue(1)
    [job] = claimed(worker, tasks=[ADD])
    failed = Failed("handler_raised", type, "no", "f", "Traceback…", 1.0, 1)
    run(lease.fail([(job.lease, failed)], authority=SYSTEM, worker_id=worker))
    result.refresh()
    [error] = result.errors
    assert result.status == TaskResultStatus.FAILED
    assert error.traceback == "Traceback…"
    assert issubclass(error.exception_class, kind)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


@pytest.mark.requirement("C8", "L19")
def test_a_lost_attempt_is_an_error_too(worker: int) -> None:
    result = add.enqueue(1)
    [job] = claimed(worker, tasks=[ADD])
    run(report("reap_own", job.lease, worker))
    result.refresh()
    [error] = result.errors
    assert issubclass(error.exception_class, Exception)
    assert error.traceback == "killed by signal 9"
    assert result.attempts == 1


@pytest.mark.requirement("C7", "P5")
def test_a_rollback_takes_the_job_with_it() -> None:
    with transaction.atomic():
        result = add.enqueue(1)
        assert add.get_result(result.id).id == result.id
        transaction.set_rollback(True)
    assert scalar("select count(*) from shiftboss_job") == 0
    with pytest.raises(TaskResultDoesNotExist):
        add.get_result(result.id)


@pytest.mark.requirement("C8")
def test_whoever_listens_hears_of_what_is_enqueued() -> None:
    heard: list[Any] = []

    def listen(sender: Any, task_result: Any, **_: Any) -> None:
        heard.append((sender.__name__, task_result))

    task_enqueued.connect(listen)
    try:
        result = add.enqueue(1)
    finally:
        task_enqueued.disconnect(listen)
    assert heard == [("ShiftbossBackend", result)]


@pytest.mark.requirement("C8", "R7")
def test_values_beyond_json_show_their_plain_form() -> None:
    result = add.enqueue(UUID(int=7), b=datetime(2026, 1, 1, tzinfo=UTC))
    assert result.args == [str(UUID(int=7))]
    assert add.get_result(result.id).kwargs == {"b": "2026-01-01T00:00:00+00:00"}


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a priority too high": ({"priority": 101}, InvalidTask, "priority must be"),
    "half a priority": ({"priority": 0.5}, InvalidTask, "priority must be"),
    "a time without zone": ({"run_after": datetime(2026, 1, 1)}, InvalidTask, "aware"),
    "no attempt": ({"max_attempts": 0}, InvalidJob, "max_attempts must be a whole number from 1 on, not 0"),
    "negative attempts": ({"max_attempts": -3}, InvalidJob, "max_attempts"),
    "half an attempt": ({"max_attempts": 1.5}, InvalidJob, "max_attempts"),
    "attempts that are true": ({"max_attempts": True}, InvalidJob, "max_attempts"),
    "attempts beyond the column": ({"max_attempts": 2**31}, InvalidJob, "max_attempts"),
    "a negative backoff": ({"backoff": -1}, InvalidJob, "backoff"),
    "no backoff in a list": ({"backoff": []}, InvalidJob, "backoff"),
    "a backoff that is text": ({"backoff": "5"}, InvalidJob, "backoff"),
    "an authority that is text": ({"authority": "kim"}, TypeError, "authority must be"),
    "an unknown option": ({"retries": 5}, TypeError, r"unexpected.*\['retries'\].*max_attempts"),
}


@pytest.mark.requirement("C8", "R8", "N4")
@pytest.mark.parametrize(("options", "error", "told"), REFUSED.values(), ids=REFUSED)
def test_an_impossible_option_is_refused_where_it_is_written(
    options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        add.using(**options)
    if "run_after" not in options:
        with pytest.raises(error, match=told):
            task(**options)(tasks.no_task)
    assert scalar("select count(*) from shiftboss_job") == 0


@pytest.mark.requirement("C8")
def test_a_function_within_a_function_is_no_task() -> None:
    with pytest.raises(InvalidTask, match="module level"):
        task(lambda: None)


@pytest.mark.requirement("R7", "P5")
@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), r"\['args'\]\[0\]"),
        ("a\x00", "NUL"),
        ("\ud800", "surrogate"),
        ({1, 2}, "set"),
        ({1: 2}, "key 1"),
    ],
)
def test_arguments_that_cannot_be_stored_are_refused_where_they_are_passed(value: Any, told: str) -> None:
    with pytest.raises(NotStorable, match=told):
        add.enqueue(value)
    assert scalar("select count(*) from shiftboss_job") == 0


@pytest.mark.requirement("P5")
def test_arguments_over_the_limit_name_the_setting() -> None:
    with pytest.raises(NotStorable, match="MAX_ARGS_BYTES"):
        add.enqueue("x" * (conf.get().max_args_bytes + 1))


@pytest.mark.requirement("C8", "N7")
def test_a_queue_name_that_cannot_be_is_refused(settings: Any) -> None:
    with pytest.raises(InvalidJob, match="queue name is 1 to 100"):
        add.using(queue_name="x" * 101)
    with pytest.raises(InvalidJob, match="queue name is 1 to 100"):
        task(queue_name="a\nb")(tasks.no_task)
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default"], "OPTIONS": {"authority": System()}}}
    with pytest.raises(InvalidTask, match="Queue 'other' is not valid"):
        add.using(queue_name="other")


@pytest.mark.requirement("N4", "C8")
def test_without_authority_nothing_is_enqueued_or_read(no_authority: None) -> None:
    with pytest.raises(
        NotAllowed, match=r"task\.using\(authority=.*TASKS\['default'\]\['OPTIONS'\]\['authority'\]"
    ):
        add.enqueue(1)
    result = add.using(authority=KIM).enqueue(1)
    with pytest.raises(NotAllowed):
        add.get_result(result.id)
    with pytest.raises(NotAllowed):
        task_backends["default"].get_result(result.id)
    assert rows("select owner from shiftboss_job") == [("kim",)]


@pytest.mark.requirement("N4", "C8")
def test_what_is_given_comes_before_the_option(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"authority": KIM}}}
    add.enqueue(1)
    add.using(authority=LEE).enqueue(1)
    add.using(authority=System()).enqueue(1)
    assert rows("select owner from shiftboss_job order by id") == [("kim",), ("lee",), (None,)]


@pytest.mark.requirement("N4")
def test_an_option_that_is_no_authority_is_told_at_start(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"authority": "kim"}}}
    [message] = task_backends["default"].check()
    assert message.id == "shiftboss.E003"
    assert "authority must be" in message.msg
    with pytest.raises(TypeError, match="authority must be"):
        add.enqueue(1)


@pytest.mark.requirement("C8")
def test_an_unknown_option_is_told_at_start(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"authority": System(), "autority": 1}}}
    [message] = task_backends["default"].check()
    assert (message.id, "autority" in message.msg) == ("shiftboss.E003", True)


@pytest.mark.requirement("C7", "C8")
def test_a_project_whose_tasks_do_not_reach_shiftboss_is_warned(settings: Any) -> None:
    assert checks.a_backend_is_ours() == []
    settings.TASKS = {"default": {"BACKEND": f"{STOCK}.immediate.ImmediateBackend"}}
    [message] = checks.a_backend_is_ours()
    assert message.id == "shiftboss.W001"


@pytest.mark.requirement("N4", "C8")
@pytest.mark.parametrize("option", [None, System()])
def test_owners_cannot_read_each_others_results(option: Any, settings: Any, worker: int) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": {"authority": option}}}
    kims, lees = add.using(authority=KIM), add.using(authority=LEE)
    result = kims.enqueue(1)
    done(result.id, worker)
    with pytest.raises(TaskResultDoesNotExist):
        lees.get_result(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(lees.aget_result)(result.id)
    for found in (kims.get_result(result.id), async_to_sync(kims.aget_result)(result.id)):
        assert (found.status, found.return_value) == (TaskResultStatus.SUCCESSFUL, {"sum": 3})
        found.refresh()
        async_to_sync(found.arefresh)()
        assert found.return_value == {"sum": 3}
    result.refresh()
    assert result.return_value == {"sum": 3}


@pytest.mark.requirement("C8")
@pytest.mark.parametrize("id", ["", "x", "-1", "0", "1.5", "²", "9" * 18, "9" * 40, "1; drop table", " 1"])
def test_an_id_that_is_no_jobs_has_no_result(id: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        add.get_result(id)


@pytest.mark.requirement("C8")
def test_a_result_of_another_task_is_told() -> None:
    result = add.enqueue(1)
    with pytest.raises(TaskResultMismatch):
        send.get_result(result.id)


@pytest.mark.requirement("C8", "L1")
def test_a_result_of_a_task_that_is_gone_is_told() -> None:
    result = add.enqueue(1)
    execute("update shiftboss_job set task = 'tests.store.tasks.gone'")
    with pytest.raises(TaskResultMismatch, match="cannot be imported"):
        add.get_result(result.id)


@pytest.mark.requirement("C8")
@pytest.mark.skipif(not hasattr(ShiftbossTask, "_reconstruct"), reason="this Django does not pickle tasks")
@pytest.mark.parametrize("kind", [add, send, add.using(authority=KIM, run_after=timezone.now(), backoff=5)])
def test_a_task_can_be_pickled(kind: ShiftbossTask) -> None:
    again = pickle.loads(pickle.dumps(kind))
    assert again == kind
    assert (again.authority, again.backoff) == (kind.authority, kind.backoff)
    assert again.using(authority=KIM).enqueue("x").id


@pytest.mark.requirement("C8", "P10")
@pytest.mark.parametrize("stock", ["dummy.DummyBackend", "immediate.ImmediateBackend"])
def test_on_djangos_own_backends_the_options_are_checked_and_left_out(
    stock: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASKS = {"default": {"BACKEND": f"{STOCK}.{stock}"}}
    declared = task(queue_name="default", max_attempts=3, backoff=5)(tasks.no_task)
    assert not isinstance(declared, ShiftbossTask)
    monkeypatch.setattr(tasks, "no_task", declared)
    assert declared.enqueue().status in {TaskResultStatus.READY, TaskResultStatus.SUCCESSFUL}
    with pytest.raises(TypeError, match="retries"):
        task(retries=5)
    with pytest.raises(InvalidJob, match="max_attempts"):
        task(max_attempts=0)


@pytest.mark.requirement("C8", "P10")
def test_a_task_that_was_declared_for_shiftboss_runs_on_djangos_own_backends(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": f"{STOCK}.dummy.DummyBackend", "QUEUES": []}}
    result = add.enqueue(1)
    assert add.get_result(result.id).id == result.id
    assert async_to_sync(add.aget_result)(result.id).id == result.id
    settings.TASKS = {"default": {"BACKEND": f"{STOCK}.immediate.ImmediateBackend", "QUEUES": []}}
    assert add.enqueue(1, 2).return_value == 3
    assert scalar("select count(*) from shiftboss_job") == 0


@pytest.mark.requirement("C6", "C8")
def test_missing_tables_are_told_with_the_fix() -> None:
    execute("set search_path = 'nowhere'")
    try:
        with pytest.raises(SchemaTooOld, match=r"run `manage.py migrate`"):
            add.enqueue(1)
    finally:
        execute("reset search_path")


@pytest.fixture
def sqlite(settings: Any) -> Any:
    """Settings that name a database which is not PostgreSQL."""
    connections.databases["lite"] = {**connections.databases["default"]} | {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {},
    }
    settings.SHIFTBOSS = {"DATABASE": "lite"}
    conf.get.cache_clear()
    yield
    del connections.databases["lite"]
    del settings.SHIFTBOSS
    conf.get.cache_clear()


@pytest.mark.requirement("C6", "C8")
def test_another_database_than_postgresql_is_told_with_the_fix(sqlite: None) -> None:
    with pytest.raises(UnsupportedDatabase, match=r"'lite'.* is sqlite; .*PostgreSQL 15 or newer: set SHIFTBOSS"):
        add.enqueue(1)
