"""How often jobs that are to run again may fail and be lost: as the code of their tasks says now."""

from collections.abc import Iterable

from shiftboss import conf
from shiftboss.queue import registry
from shiftboss.queue.errors import UnknownTask
from shiftboss.queue.store.many import Standing
from shiftboss.queue.store.operate import Limits
from shiftboss.queue.tasks import NO_OPTIONS, attempts_of


def by_queue(standings: Iterable[Standing]) -> dict[str, tuple[list[Standing], Limits]]:
    """The jobs of each queue, with the limits of their tasks there. Jobs that do not exist are left out.

    Outside a transaction: a task's module may be imported here for the first time.
    """
    queues: dict[str, list[Standing]] = {}
    for one in standings:
        if one.queue is not None:
            queues.setdefault(one.queue, []).append(one)
    return {
        queue: (jobs, _limits(queue, {one.task for one in jobs if one.task})) for queue, jobs in queues.items()
    }


def _limits(queue: str, tasks: Iterable[str]) -> Limits:
    config = conf.get()
    otherwise = config.queues.get(queue, NO_OPTIONS).max_attempts or config.max_attempts
    by_task = {}
    for task in tasks:
        try:
            by_task[task] = (attempts_of(registry.resolve(task), queue), config.max_losses)
        except UnknownTask:
            by_task[task] = (otherwise, config.max_losses)
    return Limits(failures=otherwise, losses=config.max_losses, by_task=by_task)
