"""What running handlers tell of themselves, under their leases: progress, checkpoints, events.

All take `authority=System()`, as in lease.py. Nothing here waits for a row's lock, and nothing moves a job.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.contract import Lease, Note, NoteKind, Settlement
from shiftboss.queue.store.lease import LOCKED, ids_and_fences, reject
from shiftboss.queue.store.partitions import with_todays_partitions
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb

_LOCK = Statement("lock", Lease)
_PROGRESS = Statement("progress", Lease)
_CHECKPOINT = Statement("checkpoint", Lease)
_EVENT = Statement("event", Lease)
_NUMBER_EVENTS = Statement("number_events", lambda *_: None)

Item = tuple[Lease, Note]


def note(items: Sequence[Item], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Keep what handlers tell, in the order given; of a job's progress and of its checkpoints the last counts.

    All or nothing: one transaction, so that what is settled is durable. A lease that is not held is lost, and that
    is recorded once for each kind of note that came under it; one whose row somebody has locked is busy.
    """
    require_system(authority, "note")
    return (yield from with_todays_partitions(lambda: _offer(items, worker_id)))


def _offer(items: Sequence[Item], worker_id: int) -> Verb[Settlement]:
    try:
        settlement: Settlement = yield Atomic(_write(items, worker_id))
    except LOCKED:  # somebody else is numbering events of one of these jobs
        return Settlement(busy={lease for lease, _ in items})
    settlement.settled -= settlement.lost  # expired from one statement to the next
    return settlement


def _write(items: Sequence[Item], worker_id: int) -> Verb[Settlement]:
    ids, fences = ids_and_fences(sorted({lease for lease, _ in items}))
    busy = set((yield _LOCK.call(ids=ids, fences=fences, worker_id=worker_id)))
    free = [item for item in items if item[0] not in busy]
    settlement = Settlement(busy=busy)
    for kind in NoteKind:
        told = [(lease, one) for lease, one in free if one.kind is kind]
        if not told:
            continue
        leases = {lease for lease, _ in told}
        if kind is NoteKind.EVENT:
            yield _NUMBER_EVENTS.call(ids=[lease.job_id for lease in leases])
        written = set((yield _call(kind, told, worker_id)))
        lost = leases - written
        yield from reject(sorted(lost), worker_id=worker_id, verb=kind.value)
        settlement.add(Settlement(settled=written, lost=lost))
    return settlement


def _call(kind: NoteKind, told: Iterable[Item], worker_id: int) -> Call[Lease]:
    if kind is NoteKind.EVENT:
        told = list(told)
        extra: dict[str, Any] = {"names": [one.name for _, one in told]}
        statement = _EVENT
    else:
        told = list(dict(told).items())
        extra = {}
        statement = _PROGRESS if kind is NoteKind.PROGRESS else _CHECKPOINT
    ids, fences = ids_and_fences([lease for lease, _ in told])
    return statement.call(ids=ids, fences=fences, data=[one.data for _, one in told], worker_id=worker_id, **extra)
