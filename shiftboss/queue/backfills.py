"""Backfills as they are asked for: one task over many items, `shiftboss.backfill(…)`."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

from shiftboss import conf
from shiftboss.compat import task_backends
from shiftboss.queue import payload
from shiftboss.queue.authority import Authority
from shiftboss.queue.backend import ShiftbossBackend, on_record
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.store import backfill as store
from shiftboss.queue.store.backfill import NewBackfill
from shiftboss.queue.tasks import ShiftbossTask, attempts_of, config_of

LONGEST_KEY = 300
NOT_TAKEN = ("key", "unique", "run_after", "deadline", "tags", "tenant", "watchers")
"""Options of a task that the jobs of a backfill cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """A backfill that the record now holds (once the transaction commits). `new`: how many items it lacked."""

    id: int
    name: str
    new: int


def backfill(
    task: ShiftbossTask,
    items: Iterable[Any],
    *,
    name: str,
    batch: int = 1,
    concurrency: int = 10,
    authority: Authority | None = None,
) -> Backfilled:
    """Run a task once for each item of many, at most `concurrency` jobs at a time.

    Each item is the only argument of its job; with a `batch` of n each job has a list of n items. Any iterable is
    taken in as it comes, so it need not fit into memory. `name` is unique among the authority's backfills. Called
    again with the same name it adds the items that are not there yet, and keeps the options it has; a batch is
    the same one where it holds the same items. Outside a transaction what was taken in stays when it breaks off,
    and the same call goes on. `authority` None: the task's, or the backend's option.

    Raises InvalidJob for what cannot be, NotStorable for an item, NotAllowed without authority.
    """
    backend = task_backends[task.backend] if isinstance(task, ShiftbossTask) else None
    if not isinstance(backend, ShiftbossBackend):
        raise InvalidJob(f"backfill wants a task of a Shiftboss backend, not {task!r}")
    backend.validate_task(task)
    if refused := [option for option in NOT_TAKEN if getattr(task, option)]:
        raise InvalidJob(f"the jobs of a backfill cannot have {', '.join(refused)}: use the task without")
    if not isinstance(batch, int) or batch < 1:
        raise InvalidJob(f"batch is a whole number from 1 on, not {batch!r}")
    given = backend.authority(authority if authority is not None else task.authority)
    new = NewBackfill(
        name=name,
        task=task.module_path,
        queue=task.queue_name,
        priority=int(task.priority),
        concurrency=concurrency,
        failure_limit=attempts_of(task, task.queue_name),
        loss_limit=conf.get().max_losses,
        revision=config_of(task, task.queue_name),
    )
    backfill_id = on_record(store.begin(new, authority=given))
    added = on_record(store.add(backfill_id, _stored(items, batch), authority=given))
    return Backfilled(id=backfill_id, name=name, new=added)


def _stored(items: Iterable[Any], batch: int) -> Iterator[tuple[str, str]]:
    """Each item, or each batch of them, by its key with the JSON text of its job's arguments."""
    max_bytes = conf.get().max_args_bytes
    coming = iter(items)
    while taken := list(islice(coming, batch)):
        argument = taken[0] if batch == 1 else taken
        text = payload.encode_arguments([argument], {}, max_bytes=max_bytes)
        if batch == 1:
            yield key_of(argument, text), text
        else:
            # The first one tells people where it stands, and all of them make it what it is.
            first = payload.encode_arguments([taken[0]], {}, max_bytes=max_bytes)
            yield f"{key_of(taken[0], first)} +{len(taken) - 1} {_digest(_canonical(text))}", text


def key_of(item: Any, text: str) -> str:
    """What tells an item from others, and where it stands among them: numbers in their order, texts in theirs.

    `text`: the JSON text of a job's arguments with this one item.
    """
    if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 10**19:
        return f"{item:019}"
    key = _canonical(text)
    if len(key) <= LONGEST_KEY and key.isprintable():
        return key
    return f"{''.join(c if c.isprintable() else ' ' for c in key[:100])}… {_digest(key)}"


def _canonical(text: str) -> str:
    """The one argument as JSON, the same for equal values."""
    [value] = json.loads(text)["args"]
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()
