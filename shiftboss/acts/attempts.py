"""How often jobs that are to run again may fail and be lost: as the code of their tasks says now."""

from collections.abc import Iterable, Sequence

from shiftboss import conf
from shiftboss.queue import registry
from shiftboss.queue.errors import UnknownTask
from shiftboss.queue.store.many import Standing
from shiftboss.queue.store.operate import Limits
from shiftboss.queue.tasks import NO_OPTIONS, attempts_of

Groups = Sequence[tuple[Sequence[Standing], Limits]]


def groups(standings: Iterable[Standing]) -> Groups:
    """The jobs with the limits of their tasks: in one group, but for tasks whose queues want different ones.

    Jobs that do not exist are left out. Outside a transaction: a task's module may be imported here for the first
    time.
    """
    config = conf.get()
    known: dict[tuple[str, str], int] = {}
    found: list[tuple[list[Standing], dict[str, tuple[int, int]]]] = []
    for one in standings:
        if one.queue is None or one.task is None:
            continue
        where = (one.task, one.queue)
        if where not in known:
            known[where] = _attempts(*where)
        limits = (known[where], config.max_losses)
        for jobs, by_task in found:
            if by_task.setdefault(one.task, limits) == limits:
                jobs.append(one)
                break
        else:
            found.append(([one], {one.task: limits}))
    return [
        (jobs, Limits(failures=config.max_attempts, losses=config.max_losses, by_task=by_task))
        for jobs, by_task in found
    ]


def _attempts(task: str, queue: str) -> int:
    try:
        return attempts_of(registry.resolve(task), queue)
    except UnknownTask:
        config = conf.get()
        return config.queues.get(queue, NO_OPTIONS).max_attempts or config.max_attempts
