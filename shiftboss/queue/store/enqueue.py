"""What clients do: put jobs into queues."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from psycopg import errors as pg

from shiftboss.queue.authority import Authority, owner_of
from shiftboss.queue.authorizers import may_watch, require_queue
from shiftboss.queue.errors import Busy, KeyHeld
from shiftboss.queue.jobs import MAX_WATCHERS
from shiftboss.queue.jobs import Enqueued as Enqueued
from shiftboss.queue.jobs import NewJob as NewJob
from shiftboss.queue.jobs import OnConflict as OnConflict
from shiftboss.queue.jobs import check_queue as check_queue
from shiftboss.queue.keys import scoped_key
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store.partitions import with_todays_partitions
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb


@dataclass(frozen=True, slots=True)
class _Holder:
    """A live job that holds a key, or the follow-up that waits for it."""

    id: int
    state: State
    enqueued_at: datetime
    follow_up: bool
    own: bool
    watchers: int


def _enqueued(id: int, state: str, at: datetime, *_: Any) -> Enqueued:
    return Enqueued(id, State(state), at)


_ENQUEUE = Statement("enqueue", _enqueued)
_ENQUEUE_KEYED = Statement("enqueue_keyed", _enqueued)
_ENQUEUE_FOLLOW_UP = Statement("enqueue_follow_up", _enqueued)
_ENQUEUE_MANY = Statement("enqueue_many", lambda id, state, at, key, _: (key, _enqueued(id, state, at)))
_WATCH = Statement("watch", lambda id: int(id))
_PATIENCE = Statement("patience", lambda setting: str(setting))
_LOCK_TIMEOUT = Statement("lock_timeout", lambda *_: None)
_REPLACE = Statement("replace", _enqueued)
_HOLDERS = Statement("holders", lambda id, state, *rest: _Holder(id, State(state), *rest))
_RESERVE = Statement("reserve", lambda now, ids: (now, ids))
_NOTE_REVISIONS = Statement("note_revisions", lambda *_: None)
_COPY_JOBS = Statement("copy_jobs", lambda *_: None)
_COPIED = Statement("copied", lambda *_: None)

ROUNDS = 3
"""How often a key is looked at again that was held when the job came and free when its holder was read."""

COPY_BATCH = 10_000

WATCH_MILLISECONDS = 2000
"""How long who becomes a watcher of a job waits for another transaction that has it in hand."""


def enqueue(job: NewJob, *, authority: Authority) -> Verb[Enqueued]:
    """Put one job into its queue; `Owner` becomes the job's owner.

    Where a live job holds its key, `on_conflict` decides. Raises NotAllowed where the project's authorizer
    refuses, KeyHeld, and Busy where the key changed hands again and again.
    """
    params = _params(job, authority)
    require_queue(authority=authority, queue=job.queue, task=job.task)
    if job.key is None:
        [row] = yield _ENQUEUE.call(**params)
        enqueued: Enqueued = row
        return enqueued
    return (yield from _enqueue_keyed(job, params, authority))


def _params(job: NewJob, authority: Authority) -> dict[str, Any]:
    owner = owner_of(authority)
    key = None if job.key is None else scoped_key(job.key, authority=authority, scope=job.key_scope)
    revision, config = (None, None) if job.revision is None else _written(job.revision)
    return {
        "owner": owner,
        "queue": job.queue,
        "task": job.task,
        "args": job.args,
        "priority": job.priority,
        "due_at": job.due_at,
        "deadline": job.deadline,
        "tenant": job.tenant,
        "key": key,
        "watchers": list(job.watchers),
        "tags": list(job.tags),
        "meta": job.meta,
        "failure_limit": job.failure_limit,
        "loss_limit": job.loss_limit,
        "revision": revision,
        "config": config,
    }


@lru_cache(maxsize=1024)
def _written(config: TaskConfig) -> tuple[int, str]:
    """A configuration's number and text; whether a row holds them is asked anew each time."""
    return config.revision, config.to_json()


def _enqueue_keyed(job: NewJob, params: dict[str, Any], authority: Authority) -> Verb[Enqueued]:
    for _ in range(ROUNDS):
        rows = yield _ENQUEUE_KEYED.call(**params)
        if not rows:
            holders = {h.follow_up: h for h in (yield _HOLDERS.call(key=params["key"], owner=params["owner"]))}
            rows = yield from _meet(job, params, authority, holders.get(False), holders.get(True))
        if rows:
            enqueued: Enqueued = rows[0]
            return enqueued
    raise Busy(f"the key {job.key!r} changed hands {ROUNDS} times meanwhile; try again")


def _meet(
    job: NewJob,
    params: dict[str, Any],
    authority: Authority,
    holder: _Holder | None,
    follow_up: _Holder | None,
) -> Verb[list[Enqueued]]:
    """Answer a held key as the job wishes; no answer where it has become free or has another holder."""
    if job.follow_up and follow_up is None and holder is not None and holder.state is State.RUNNING:
        followed: list[Enqueued] = yield _ENQUEUE_FOLLOW_UP.call(**params)
        return followed
    if (met := follow_up if job.follow_up or holder is None else holder) is None:
        met = holder
    if met is None:
        return []
    if job.on_conflict is OnConflict.EXISTING:
        if _may_join(job, met, authority) and not (yield Atomic(_join(met.id, params))):
            return []
        return [Enqueued(met.id, met.state, met.enqueued_at, existing=True)]
    if job.on_conflict is OnConflict.REPLACE and not met.own:
        raise KeyHeld(str(job.key), met.id, "it is another owner's, and not this authority's to replace")
    if job.on_conflict is OnConflict.REPLACE and met.state in WAITING:
        return (yield from with_todays_partitions(lambda: _replace(met.id, params)))
    if job.on_conflict is OnConflict.REPLACE:
        raise KeyHeld(str(job.key), met.id, "it is running, and only a waiting job can be replaced; see follow_up")
    raise KeyHeld(str(job.key), met.id, "wait for its end, or choose on_conflict `existing` or `replace`")


def _may_join(job: NewJob, met: _Holder, authority: Authority) -> bool:
    """Whether who asked becomes a watcher of another's job. Asking alone makes nobody one."""
    if met.own or met.watchers >= MAX_WATCHERS:
        return False
    return may_watch(authority=authority, job_id=met.id, key=str(job.key))


def _join(job_id: int, params: dict[str, Any]) -> Verb[bool]:
    """Become a watcher; False where the job holds the key no more, or has changed in another way. Raises Busy."""
    [patience] = yield _PATIENCE.call()
    yield _LOCK_TIMEOUT.call(milliseconds=WATCH_MILLISECONDS)
    try:
        joined = yield _WATCH.call(id=job_id, owner=params["owner"], most=MAX_WATCHERS)
    except (pg.LockNotAvailable, pg.DeadlockDetected):
        raise Busy(f"another transaction has job {job_id} in hand just now; try again") from None
    # The transaction may be the caller's, who goes on with a patience of their own.
    yield _LOCK_TIMEOUT.call(milliseconds=patience)
    return bool(joined)


def _replace(holder: int, params: dict[str, Any]) -> Verb[list[Enqueued]]:
    replaced: list[Enqueued] = yield Atomic(_one(_REPLACE.call(holder=holder, **params)))
    return replaced


def _one(call: Call[Enqueued]) -> Verb[list[Enqueued]]:
    rows: list[Enqueued] = yield call
    return rows


def enqueue_many(jobs: Iterable[NewJob], *, authority: Authority) -> Verb[list[Enqueued]]:
    """Put many jobs into their queues, all or none; answers come in the order of the jobs.

    Jobs without keys are copied in; those with keys take one statement, but for those whose key is held. Raises
    NotAllowed, KeyHeld and Busy.
    """
    owner_of(authority)
    jobs = list(jobs)
    for queue, task in dict.fromkeys((job.queue, job.task) for job in jobs):
        require_queue(authority=authority, queue=queue, task=task)
    for _ in range(ROUNDS):
        try:
            answers: list[Enqueued] = yield Atomic(_enqueue_many(jobs, authority))
        except pg.DeadlockDetected:
            pass  # with somebody who took keys in another order
        else:
            return answers
    raise Busy(f"other transactions took the same keys in another order {ROUNDS} times; try again")


def _enqueue_many(jobs: Sequence[NewJob], authority: Authority) -> Verb[list[Enqueued]]:
    answers: dict[int, Enqueued] = {}
    if configs := {job.revision for job in jobs if job.revision is not None}:
        yield from note_revisions(configs)
    plain = [(place, job) for place, job in enumerate(jobs) if job.key is None]
    for start in range(0, len(plain), COPY_BATCH):
        answers |= yield from _copy(plain[start : start + COPY_BATCH], authority)
    keyed = [(place, job, _params(job, authority)) for place, job in enumerate(jobs) if job.key is not None]
    if keyed:
        answers |= yield from _enqueue_keyed_many(keyed, authority)
    return [answers[place] for place in range(len(jobs))]


def note_revisions(configs: Collection[TaskConfig]) -> Verb[None]:
    """Keep configurations, each where none like it is there."""
    numbers, texts = zip(*map(_written, configs), strict=True)
    tasks = [config.task for config in configs]
    yield _NOTE_REVISIONS.call(revisions=list(numbers), tasks=tasks, configs=list(texts))


def _copy(batch: Sequence[tuple[int, NewJob]], authority: Authority) -> Verb[dict[int, Enqueued]]:
    [(now, ids)] = yield _RESERVE.call(n=len(batch))
    owner = owner_of(authority)
    states = [State.SCHEDULED if job.due_at and job.due_at > now else State.AVAILABLE for _, job in batch]
    yield _COPY_JOBS.copy(
        (
            id,
            job.queue,
            job.task,
            job.args,
            str(state),
            job.priority,
            job.due_at or now,
            job.deadline,
            now,
            owner,
            job.tenant,
            list(job.watchers),
            list(job.tags),
            job.meta,
            job.failure_limit,
            job.loss_limit,
            None if job.revision is None else _written(job.revision)[0],
        )
        for id, state, (_, job) in zip(ids, states, batch, strict=True)
    )
    highest: dict[str, int] = {}
    for state, (_, job) in zip(states, batch, strict=True):
        if state is State.AVAILABLE:
            highest[job.queue] = max(job.priority, highest.get(job.queue, -100))
    yield _COPIED.call(queues=list(highest), priorities=list(highest.values()))
    return {place: Enqueued(id, state, now) for id, state, (place, _) in zip(ids, states, batch, strict=True)}


def _enqueue_keyed_many(
    keyed: Sequence[tuple[int, NewJob, dict[str, Any]]], authority: Authority
) -> Verb[dict[int, Enqueued]]:
    keyed = sorted(keyed, key=lambda item: item[2]["key"].encode())
    columns: dict[str, Any] = {name: [params[name] for *_, params in keyed] for name in keyed[0][2]}
    columns["owner"] = keyed[0][2]["owner"]
    del columns["config"]  # noted already
    for name in ("watchers", "tags"):
        columns[name] = [json.dumps(words) for words in columns[name]]
    new: dict[str, Enqueued] = dict((yield _ENQUEUE_MANY.call(**columns)))
    answers = {}
    for place, job, params in keyed:
        # Of two with the same key the first is the new one; the second meets it.
        if (enqueued := new.get(params["key"])) is not None:
            del new[params["key"]]
        else:
            enqueued = yield from _enqueue_keyed(job, params, authority)
        answers[place] = enqueued
    return answers
