"""`shiftboss run`: one task here and now."""

import argparse
import json
import traceback
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync

from shiftboss import conf
from shiftboss.cli.command import Commands, Refused, WrongUsage
from shiftboss.cli.project import set_up
from shiftboss.queue import payload, registry
from shiftboss.queue.errors import NotStorable
from shiftboss.queue.resources import resource
from shiftboss.queue.runtime.context import Cancelled, Context, Discard, Snooze
from shiftboss.queue.runtime.resources import Pools, ResourceFailed
from shiftboss.queue.runtime.secrets import Secrets

EXAMPLES = """\
examples:
  shiftboss run reports.tasks.send --args '["2026-01"]' --kwargs '{"draft": true}'
  shiftboss run mysite.tasks.clean --settings mysite.settings --pythonpath .

The task runs in this process. No server, worker or record is used; nothing is enqueued, retried or stored.
Its result is printed as JSON, in the last line. A task that puts itself off, gives itself up or fails has no
result: exit code 1.
"""


def declare(commands: Commands) -> None:
    """Add the command."""
    running = commands.add("run", run, help="Run one task here and now, without a server", epilog=EXAMPLES)
    running.add_argument("task", metavar="TASK", help="dotted path of the task, as in reports.tasks.send")
    running.add_argument("--args", metavar="JSON", default="[]", help="positional arguments, a JSON list")
    running.add_argument("--kwargs", metavar="JSON", default="{}", help="keyword arguments, a JSON object")


def run(given: argparse.Namespace) -> int:
    """Run one task in this process and print its result."""
    args = _json("--args", given.args, list)
    kwargs = _json("--kwargs", given.kwargs, dict)
    module, _, function = given.task.rpartition(".")
    if not all([*module.split("."), function]):
        raise WrongUsage(f"{given.task!r}: give the dotted path of the task, as in shop.tasks.send_receipt")
    set_up(given)

    limit = conf.get().max_args_bytes
    # There and back, so that the task sees just what a worker would give it.
    try:
        text = payload.encode_arguments(args, kwargs, max_bytes=limit)
    except NotStorable as problem:
        raise WrongUsage(str(problem)) from None
    args, kwargs = payload.decode_arguments(text)
    task: Any = registry.resolve(given.task)
    try:
        with _surroundings(task) as context:
            result = task.call(*([context] if task.takes_context else []), *args, **kwargs)
    except (Exception, Snooze, Discard, SystemExit, BaseExceptionGroup) as error:
        raise _without_result(given.task, error) from None
    answer = payload.encode_result(result, max_bytes=conf.get().max_result_bytes)
    print("null" if answer is None else answer)
    return 0


@contextmanager
def _surroundings(task: Any) -> Iterator[Context]:
    """What a worker would give the task: its resource and its secrets, for this one run."""
    from shiftboss.queue.handlers import secret_of  # needs Django's settings
    from shiftboss.queue.tasks import config_of

    config = config_of(task, task.queue_name)
    provide = partial(secret_of, conf.get().secret_provider, job_id=0, task=config.task)
    pools = Pools(find=resource, threads=1, coroutines=Here())
    try:
        with pools.lend(config.resource, lambda: None) if config.resource else nullcontext() as lent:
            yield Context(
                job_id=0,
                fence=0,
                attempt=1,
                _secrets=Secrets(config.secrets, provide=provide),
                _resource=lambda: lent,
            )
    except ResourceFailed as failed:
        raise (failed.__cause__ or failed) from None
    finally:
        pools.close()


class Here:
    """No loop of a worker's: coroutine functions of a resource run on one of their own."""

    def wait(self, awaitable: Awaitable[Any]) -> Any:
        """What comes of it."""

        async def awaited() -> Any:
            return await awaitable

        return async_to_sync(awaited)()


def _without_result(name: str, error: BaseException) -> Refused:
    """What to say of a task that ended in another way than with a result; of a failure, its traceback first."""
    match _alone(error):
        case Snooze(seconds=seconds):
            return Refused(f"{name} asked to run again in {seconds:g} s: do so by hand, nothing is enqueued here")
        case Discard(reason=reason):
            return Refused(f"{name} gave the job up: {reason}")
        case Cancelled():
            return Refused(f"{name} ended because it saw itself cancelled")
    traceback.print_exception(error)
    return Refused(f"{name} failed: {type(error).__name__}: {error}")


def _alone(error: BaseException) -> BaseException:
    """What a `TaskGroup` has wrapped, where one of its tasks alone ended the run."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _json(option: str, text: str, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """The value of an option in JSON. Raises WrongUsage for anything that is not JSON or not of this kind."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise WrongUsage(f"{option} is not JSON: {error}") from None
    if not isinstance(value, kind):
        wanted = "list, such as '[1, \"a\"]'" if kind is list else "object, such as '{\"a\": 1}'"
        raise WrongUsage(f"{option} must be a JSON {wanted}")
    return value
