"""The calls that user code makes, walked as the store's are: none without an authority, none for a foreign one."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync

import shiftboss
from shiftboss import NoSuchJob, NotAllowed, Owner, ShiftbossResult, ShiftbossTask, System, enqueue_many
from shiftboss.compat import TaskResultDoesNotExist, task_backends
from shiftboss.queue.backend import ShiftbossBackend
from shiftboss.queue.store import read
from shiftboss.queue.store.statement import run
from tests.architecture.test_public_surface import own_members
from tests.store.tasks import add

pytestmark = [pytest.mark.requirement("N4"), pytest.mark.django_db]

VICTIM, FOREIGN = Owner("victim"), Owner("foreign")

Make = Callable[[Any, str], Any]


def forged(authority: Any, job_id: str) -> ShiftbossResult:
    """A result of the victim's job, in another name: the worst that a caller can have in hand."""
    result = add.using(authority=VICTIM).get_result(job_id)
    object.__setattr__(result, "task", _named(authority))
    return result


def _named(authority: Any) -> ShiftbossTask:
    task = replace(add)
    object.__setattr__(task, "authority", authority)  # past the check of a declaration
    return task


def the_backend() -> ShiftbossBackend:
    return task_backends["default"]


ENQUEUE: dict[str, Make] = {
    "ShiftbossBackend.enqueue": lambda who, _: the_backend().enqueue(_named(who), [1], {}),
    "ShiftbossBackend.enqueue_calls": lambda who, _: the_backend().enqueue_calls([_named(who).with_arguments(1)]),
    "shiftboss.enqueue_many": lambda who, _: enqueue_many([_named(who).with_arguments(1)]),
    "ShiftbossTask.enqueue": lambda who, _: _named(who).enqueue(1),
    "ShiftbossTask.aenqueue": lambda who, _: async_to_sync(_named(who).aenqueue)(1),
}
"""Calls by which a foreign owner makes jobs of its own."""

REACH: dict[str, Make] = {
    "ShiftbossBackend.result_of": lambda who, job_id: the_backend().result_of(job_id, authority=who),
    "ShiftbossTask.get_result": lambda who, job_id: _named(who).get_result(job_id),
    "ShiftbossTask.aget_result": lambda who, job_id: async_to_sync(_named(who).aget_result)(job_id),
    "ShiftbossResult.refresh": lambda who, job_id: forged(who, job_id).refresh(),
    "ShiftbossResult.arefresh": lambda who, job_id: async_to_sync(forged(who, job_id).arefresh)(),
    "ShiftbossResult.cancel": lambda who, job_id: forged(who, job_id).cancel(),
    "ShiftbossResult.acancel": lambda who, job_id: async_to_sync(forged(who, job_id).acancel)(),
}
"""Calls that reach for a job by its id."""

ELSEWHERE = {
    "ShiftbossBackend.authority": "only says which one counts",
    "ShiftbossBackend.check": "a system check",
    "ShiftbossBackend.get_result": "result_of in the name of the backend's own option",
    "ShiftbossResult.await_end": "by the verbs of store/awaiting.py, on a connection of its own",
    "ShiftbossResult.wait_end": "as await_end",
    "ShiftbossTask.key_of": "reads the arguments that it is given",
    "ShiftbossTask.using": "makes a copy",
    "ShiftbossTask.with_arguments": "makes a value",
    "shiftboss.backfill": "begins a backfill, which tests/store/test_backfills.py looks at",
    "shiftboss.owner_of_request": "says whose name it would be",
    "shiftboss.owner_of_user": "says whose name it would be",
    "shiftboss.task": "declares",
    "shiftboss.worker_of_settings": "makes a worker, which acts for the system",
}
"""Public calls that reach no job by themselves."""

CALLS = ENQUEUE | REACH
EACH = pytest.mark.parametrize("make", CALLS.values(), ids=CALLS)


@pytest.fixture
def job_id() -> str:
    """A job of the victim's that waits."""
    return str(add.using(authority=VICTIM).enqueue(1).id)


@pytest.fixture
def no_authority(settings: Any) -> None:
    """A project whose backend says nothing of authority."""
    settings.TASKS = {"default": {"BACKEND": "shiftboss.queue.backend.ShiftbossBackend", "QUEUES": []}}


def test_every_public_call_has_its_place_in_these_lists() -> None:
    public = {
        f"{kind.__name__}.{name}"
        for kind in (ShiftbossBackend, ShiftbossTask, ShiftbossResult)
        for name in own_members(kind)
    }
    public |= {f"shiftboss.{name}" for name in shiftboss.__all__ if inspect.isroutine(getattr(shiftboss, name))}
    of_django = {"ShiftbossTask.enqueue", "ShiftbossTask.aenqueue"}
    assert public - set(CALLS) - set(ELSEWHERE) == set()
    assert set(CALLS) | set(ELSEWHERE) == public | of_django


@EACH
@pytest.mark.usefixtures("no_authority")
def test_a_call_without_an_authority_is_refused(make: Make, job_id: str) -> None:
    with pytest.raises(NotAllowed, match="no authority"):
        make(None, job_id)


@EACH
def test_what_is_no_authority_is_refused(make: Make, job_id: str) -> None:
    for nobody in ("", "victim", "system", True, 1, Owner, System):
        with pytest.raises(TypeError, match="authority must be"):
            make(nobody, job_id)


@pytest.mark.parametrize("make", REACH.values(), ids=REACH)
def test_a_foreign_owner_reaches_nothing(make: Make, job_id: str) -> None:
    with pytest.raises((TaskResultDoesNotExist, NoSuchJob)):
        make(FOREIGN, job_id)
    job = run(read.job(authority=System(), job_id=int(job_id)))
    assert job
    assert (job.state, job.cancel_requested_at) == ("available", None)


@pytest.mark.parametrize("make", ENQUEUE.values(), ids=ENQUEUE)
def test_what_an_owner_enqueues_is_its_own(make: Make, job_id: str) -> None:
    made = make(FOREIGN, job_id)
    [result] = made if isinstance(made, list) else [made]
    job = run(read.job(authority=System(), job_id=int(result.id)))
    assert job
    assert job.owner == "foreign"
    assert result.id != job_id


def test_an_owner_is_not_told_who_holds_a_key_that_is_global() -> None:
    keyed = add.using(key="the-only-one", key_scope="global")
    keyed.using(authority=VICTIM).enqueue(1)
    with pytest.raises(shiftboss.KeyHeld) as held:
        keyed.using(authority=FOREIGN).enqueue(1)
    assert "victim" not in str(held.value)


@pytest.mark.parametrize("make", REACH.values(), ids=REACH)
def test_the_owner_reaches_its_job(make: Make, job_id: str) -> None:
    """So that the refusals above are about the authority."""
    make(VICTIM, job_id)
