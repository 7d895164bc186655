"""How the whole stands, for programs: what `shiftboss status --format json` and the API's `status` say."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from shiftboss.console.stored import dumps
from shiftboss.console.verdict import MAINTAINER
from shiftboss.console.whole import Whole
from shiftboss.queue.authority import Authority
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store import queues as store
from shiftboss.queue.store import read
from shiftboss.queue.store.queues import Limited
from shiftboss.queue.store.read import WorkerRow
from shiftboss.queue.store.samples import Part
from shiftboss.queue.store.statement import run

OF_A_WORKER = [
    "id",
    "pool",
    "host",
    "pid",
    "state",
    "alive",
    "slots",
    "in_use",
    "heartbeat_age_seconds",
    "heartbeat_seconds",
    "lease_seconds",
    "lag_ms",
    "worst_lag_ms",
    "losses",
    "memory_kb",
    "cpu_ms",
    "code_version",
    "started_at",
    "ordered",
    "ordered_by",
    "ordered_at",
    "tainted",
    "dropped",
    "queues",
]


def report(seen: Whole, *, authority: Authority) -> dict[str, Any]:
    """All states, queues and workers, what is worth a warning, and how old what was seen of each part is."""
    workers = run(read.workers(authority=authority))
    listed = _queues(seen, workers, run(store.limits(authority=authority)))
    totals: Counter[str] = Counter()
    for count in seen.counts:
        totals[str(count.state)] += count.jobs
    waits = [queue["oldest_available_seconds"] for queue in listed]
    return {
        "states": {str(state): totals[str(state)] for state in State},
        "capped": _capped(seen),
        "ages_seconds": _ages(seen),
        "queues": listed,
        "workers": [worker(one) for one in workers],
        "oldest_available_seconds": max((wait for wait in waits if wait is not None), default=None),
        "warnings": [
            *_unattended(seen),
            *_held_back(seen),
            *(text for queue in listed for text in _warnings(queue)),
        ],
    }


def queues(seen: Whole, *, authority: Authority) -> dict[str, Any]:
    """Each queue that has jobs or live workers, or is paused or limited, by name."""
    workers, limits = run(read.workers(authority=authority)), run(store.limits(authority=authority))
    return {"queues": _queues(seen, workers, limits), "capped": _capped(seen), "ages_seconds": _ages(seen)}


def worker(row: WorkerRow) -> dict[str, Any]:
    """What a worker says of itself, and what is ordered of it."""
    resources = json.loads(row.resources)
    return {name: getattr(row, name) for name in OF_A_WORKER} | {"id": str(row.id), "resources": resources}


def _capped(seen: Whole) -> bool:
    return any(count.capped for count in seen.counts)


def _ages(seen: Whole) -> dict[str, float]:
    return {str(part): round(seconds, 3) for part, seconds in seen.ages.items()}


def _queues(seen: Whole, workers: Sequence[WorkerRow], limits: Sequence[Limited]) -> list[dict[str, Any]]:
    served = Counter(queue for worker in workers if worker.alive for queue in worker.queues)
    orders = {pause.queue for pause in seen.pauses} | {limited.queue for limited in limits}
    names = {count.queue for count in seen.counts} | orders | set(served)
    found: dict[str, dict[str, Any]] = {
        name: {
            "queue": name,
            "states": {},
            "oldest_available_seconds": None,
            "paused": None,
            "limit": None,
            "live_workers": served[name],
        }
        for name in sorted(names)
    }
    for count in seen.counts:
        found[count.queue]["states"][str(count.state)] = count.jobs
        if count.state is State.AVAILABLE and count.oldest_seconds is not None:
            age = seen.ages.get(Part.WAITS, 0.0)
            found[count.queue]["oldest_available_seconds"] = count.oldest_seconds + age
    for pause in seen.pauses:
        found[pause.queue]["paused"] = {
            "paused_at": pause.paused_at,
            "paused_by": pause.paused_by,
            "reason": pause.reason,
        }
    for limited in limits:
        found[limited.queue]["limit"] = {
            "concurrency": limited.limit.concurrency,
            "sequential": limited.limit.sequential,
            "set_by": limited.by,
            "taken": limited.taken,
        }
    return list(found.values())


def _unattended(seen: Whole) -> Iterator[str]:
    if seen.unattended:
        yield f"no maintainer looks at the record: start one by {MAINTAINER}"


def _held_back(seen: Whole) -> Iterator[str]:
    for held in seen.holds:
        until = dumps(held.until).strip('"')[:19]
        ends = f"{held.times:,} ends in {held.seconds:.0f} s" if held.times > 1 else "again after a hold"
        yield f"crash loop: {held.program} on {held.host}, {ends}, held back until {until}Z"


def _warnings(queue: dict[str, Any]) -> Iterator[str]:
    jobs = sum(queue["states"].get(state, 0) for state in WAITING)
    if jobs and not queue["live_workers"]:
        wait = "1 job waits" if jobs == 1 else f"{jobs:,} jobs wait"
        yield f"no live worker serves the queue {queue['queue']}, where {wait}"
    if paused := queue["paused"]:
        since = dumps(paused["paused_at"]).strip('"')[:19]
        yield f"the queue {queue['queue']} is paused since {since}Z by {paused['paused_by']}: {paused['reason']}"
