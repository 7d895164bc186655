"""What running handlers tell of themselves, under their leases: progress, checkpoints, events.

All take `authority=System()`, as in lease.py. Nothing here waits for a job's locks, and nothing moves a job.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.contract import Lease, Note, NoteKind, Settlement
from shiftboss.queue.store.lease import LOCKED, UNSTORABLE, ids_and_fences, reject
from shiftboss.queue.store.partitions import met_missing_day, with_todays_partitions
from shiftboss.queue.store.statement import Atomic, Call, Statement, Verb

_LOCK = Statement("lock", Lease)
_PROGRESS = Statement("progress", Lease)
_CHECKPOINT = Statement("checkpoint", Lease)
_EVENT = Statement("event", Lease)
_NUMBER_EVENTS = Statement("number_events_now", lambda id: id)

Item = tuple[Lease, Note]


def note(items: Sequence[Item], *, authority: Authority, worker_id: int) -> Verb[Settlement]:
    """Keep what handlers tell, in the order given; of a job's progress and of its checkpoints the last counts.

    One transaction, so that what is settled is durable, and on an error nothing is kept. A lease that is not held
    is lost, and that is recorded once for each kind of note that came under it; one whose row somebody has locked,
    or whose events somebody numbers, is busy; one with a note that cannot be stored is refused.
    """
    require_system(authority, "note")
    return (yield from with_todays_partitions(lambda: _offer(items, worker_id)))


def _offer(items: Sequence[Item], worker_id: int) -> Verb[Settlement]:
    settlement: Settlement
    try:
        try:
            settlement = yield Atomic(_write(items, worker_id))
        except UNSTORABLE as error:
            if met_missing_day(error):
                raise
            settlement = yield Atomic(_write_apart(items, worker_id))
    except LOCKED:  # by no job of these, for whose locks nothing waits: by who works at the tables
        return Settlement(busy={lease for lease, _ in items})
    return settlement


def _write_apart(items: Sequence[Item], worker_id: int) -> Verb[Settlement]:
    """Write each half alone, and in halves again what is refused, until it is one lease. In a transaction."""
    leases = sorted({lease for lease, _ in items})
    if len(leases) == 1:
        return Settlement(refused=set(leases))
    middle, settlement = leases[len(leases) // 2], Settlement()
    for half in ([item for item in items if item[0] < middle], [item for item in items if item[0] >= middle]):
        try:
            settlement.add((yield Atomic(_write(half, worker_id))))
        except UNSTORABLE as error:
            if met_missing_day(error):
                raise
            settlement.add((yield from _write_apart(half, worker_id)))
    return settlement


def _write(items: Sequence[Item], worker_id: int) -> Verb[Settlement]:
    ids, fences = ids_and_fences(sorted({lease for lease, _ in items}))
    settlement = Settlement(busy=set((yield _LOCK.call(ids=ids, fences=fences, worker_id=worker_id))))
    told = _by_kind(items, without=settlement.busy)
    settlement.busy |= yield from _numbered_elsewhere({lease for lease, _ in told[NoteKind.EVENT]})
    lost: dict[NoteKind, set[Lease]] = {}
    for kind, mine in _by_kind(items, without=settlement.busy).items():
        if mine:
            written = set((yield _call(kind, mine, worker_id)))
            settlement.settled |= written
            lost[kind] = {lease for lease, _ in mine} - written
    # Refusals are events too.
    settlement.lost = {lease for leases in lost.values() for lease in leases}
    settlement.busy |= yield from _numbered_elsewhere(settlement.lost)
    settlement.lost -= settlement.busy
    for kind, leases in lost.items():
        yield from reject(sorted(leases - settlement.busy), worker_id=worker_id, verb=kind.value)
    settlement.settled -= settlement.lost | settlement.busy  # expired from one statement to the next
    return settlement


def _numbered_elsewhere(leases: AbstractSet[Lease]) -> Verb[set[Lease]]:
    """Those of whose jobs somebody else numbers the events; the others are ours until the transaction ends."""
    if not leases:
        return set()
    mine = set((yield _NUMBER_EVENTS.call(ids=sorted({lease.job_id for lease in leases}))))
    return {lease for lease in leases if lease.job_id not in mine}


def _by_kind(items: Iterable[Item], *, without: AbstractSet[Lease]) -> dict[NoteKind, list[Item]]:
    free = [item for item in items if item[0] not in without]
    return {kind: [item for item in free if item[1].kind is kind] for kind in NoteKind}


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
