"""Tasks of a project that has tests."""

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction

from shiftboss import task


@task
def make_group(name: str) -> int:
    """Write by the ORM."""
    return Group.objects.create(name=name).pk


@task
async def make_group_in_a_coroutine(name: str) -> int:
    """As `make_group`."""
    group = await Group.objects.acreate(name=name)
    await sync_to_async(group.refresh_from_db)()
    return group.pk


@task(max_attempts=3, backoff=3600)
def fail(name: str) -> None:
    """Write, and fail."""
    Group.objects.create(name=name)
    raise ValueError(name)


@task
def break_the_transaction(name: str) -> None:
    """Write, and send what PostgreSQL refuses."""
    Group.objects.create(name=name)
    with connection.cursor() as cursor:
        cursor.execute("select 1 / 0")


@task(takes_context=True)
def use_context(context: Any, how: str) -> Any:
    """Use all that there is."""
    context.progress(1, total=2)
    context.progress(2, total=2)
    context.event("used", how=how)
    if how == "snooze":
        context.snooze(timedelta(hours=1))
    if how == "discard":
        context.discard("no use")
    if how == "fail once" and context.attempt == 1:
        with transaction.atomic():
            context.checkpoint.save({"at": 7})
            raise RuntimeError("at 7")
    if how == "complete":
        with context.complete_in_transaction({"by": "itself"}):
            Group.objects.create(name="complete")
        return "ignored"
    if how == "complete within":
        with transaction.atomic(), context.complete_in_transaction():
            pass
    return [context.attempt, context.fence, context.checkpoint.data, context.cancelled]


@task(queue_name="mail", priority=7)
def send(to: str, *, copy: bool = False) -> str:
    """One with another queue."""
    return to


@task
def enqueue_another(depth: int) -> int:
    """Enqueue the next of a chain."""
    if depth:
        enqueue_another.enqueue(depth - 1)
    return depth


@task(takes_context=True)
async def context_in_a_coroutine(context: Any) -> Any:
    """The context of a coroutine."""
    context.progress(1)
    await context.checkpoint.asave(3)
    return context.checkpoint.data


@task(takes_context=True)
def clean_up_and_fail(context: Any, text: str) -> None:
    """Fail without a database."""
    context.checkpoint.save(text)
    context.raise_if_cancelled()
    raise ValueError(text)


@task
def leave() -> None:
    """Try to end the process."""
    raise SystemExit(3)
