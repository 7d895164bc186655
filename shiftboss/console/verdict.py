"""The overview's first line: is anything wrong, and what. Plain functions over what was read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from shiftboss.console.text import duration, number, since, visible
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store.queues import Pause
from shiftboss.queue.store.read import Count, WorkerRow

TOLERATED_WAIT_SECONDS = 300
"""An available job that waits longer is worth a look."""


class Level(IntEnum):
    """How much a finding matters."""

    WELL = 0
    NOTE = 1
    WRONG = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about the whole, and how much it matters."""

    level: Level
    text: str

    @property
    def is_wrong(self) -> bool:
        """Whether somebody should do something now."""
        return self.level is Level.WRONG


def findings(counts: Sequence[Count], workers: Sequence[WorkerRow], pauses: Sequence[Pause]) -> list[Finding]:
    """What there is to say, the worst first: never empty, and the first one is the headline."""
    paused = {pause.queue for pause in pauses}
    said = [
        *_without_worker(counts, workers),
        *_paused(counts, pauses),
        *_waiting_long([count for count in counts if count.queue not in paused]),
        *_late_workers(workers),
        *_lost_workers(workers),
        *_quarantined(counts),
    ]
    if not any(finding.is_wrong for finding in said):
        said.insert(0, Finding(Level.WELL, _("All well")))
    return sorted(said, key=_urgency)


def _urgency(finding: Finding) -> int:
    # Wrong first, then "All well", then notes.
    return {Level.WRONG: 0, Level.WELL: 1, Level.NOTE: 2}[finding.level]


def _without_worker(counts: Sequence[Count], workers: Sequence[WorkerRow]) -> list[Finding]:
    alive = [worker for worker in workers if worker.alive]
    if not alive:
        return [Finding(Level.WRONG, _("No live worker: nothing runs"))]
    served = {queue for worker in alive for queue in worker.queues}
    waiting: Counter[str] = Counter()
    for count in counts:
        if count.state in WAITING and count.queue not in served:
            waiting[count.queue] += count.jobs
    return [
        Finding(
            Level.WRONG,
            ngettext(
                "No live worker for queue %(queue)s, where %(jobs)s job waits",
                "No live worker for queue %(queue)s, where %(jobs)s jobs wait",
                jobs,
            )
            % {"queue": visible(queue), "jobs": number(jobs)},
        )
        for queue, jobs in sorted(waiting.items())
    ]


def _paused(counts: Sequence[Count], pauses: Sequence[Pause]) -> list[Finding]:
    """A pause is somebody's intention; it is wrong from when on jobs have waited for too long because of it."""
    found = []
    for pause in pauses:
        waiting = [count for count in counts if count.queue == pause.queue and count.state in WAITING]
        jobs = sum(count.jobs for count in waiting)
        if not jobs:
            continue
        longest = max(count.oldest_seconds or 0.0 for count in waiting)
        text = ngettext(
            "Queue %(queue)s is paused by %(by)s since %(since)s: %(reason)s. %(jobs)s job waits",
            "Queue %(queue)s is paused by %(by)s since %(since)s: %(reason)s. %(jobs)s jobs wait",
            jobs,
        )
        facts = {
            "queue": visible(pause.queue),
            "by": visible(pause.paused_by),
            "since": since(pause.paused_at, timezone.now()),
            "reason": visible(Truncator(pause.reason).chars(120)).rstrip("."),
            "jobs": number(jobs),
        }
        level = Level.WRONG if longest > TOLERATED_WAIT_SECONDS else Level.NOTE
        found.append(Finding(level, text % facts))
    return found


def _waiting_long(counts: Sequence[Count]) -> list[Finding]:
    waits = [(count.oldest_seconds or 0.0, count.queue) for count in counts if count.state is State.AVAILABLE]
    seconds, queue = max(waits, default=(0.0, ""))
    if seconds <= TOLERATED_WAIT_SECONDS:
        return []
    text = _("Oldest available job waits %(wait)s in queue %(queue)s")
    return [Finding(Level.WRONG, text % {"wait": duration(seconds), "queue": visible(queue)})]


def _late_workers(workers: Sequence[WorkerRow]) -> list[Finding]:
    late = [worker for worker in workers if is_late(worker)]
    if not late:
        return []
    worst = max(late, key=lambda worker: worker.heartbeat_age_seconds / worker.lease_seconds)
    text = ngettext(
        "Worker %(id)s on %(host)s is late: last heartbeat %(age)s ago, its lease is %(lease)s",
        "%(workers)s workers are late: the last heartbeat of worker %(id)s on %(host)s was %(age)s ago,"
        " its lease is %(lease)s",
        len(late),
    )
    facts = {
        "workers": number(len(late)),
        "id": f"#{worst.id}",
        "host": visible(worst.host),
        "age": duration(worst.heartbeat_age_seconds),
        "lease": duration(worst.lease_seconds),
    }
    return [Finding(Level.WRONG, text % facts)]


def late_after(worker: WorkerRow) -> float:
    """The age in seconds of a heartbeat from which on two in a row are missing, and the lease not yet over."""
    return min(3 * worker.heartbeat_seconds, 0.9 * worker.lease_seconds)


def is_late(worker: WorkerRow) -> bool:
    """Whether a worker that still lives has missed two heartbeats in a row."""
    return worker.alive and worker.heartbeat_age_seconds > late_after(worker)


def _lost_workers(workers: Sequence[WorkerRow]) -> list[Finding]:
    lost = sum(is_lost(worker) for worker in workers)
    if not lost:
        return []
    text = ngettext(
        "%(workers)s worker fell silent without a goodbye in the last hour",
        "%(workers)s workers fell silent without a goodbye in the last hour",
        lost,
    )
    return [Finding(Level.NOTE, text % {"workers": number(lost)})]


def is_lost(worker: WorkerRow) -> bool:
    """Whether its heartbeats ended although it never said that it stops."""
    return worker.state != "stopped" and not worker.alive


def _quarantined(counts: Sequence[Count]) -> list[Finding]:
    held = sum(count.jobs for count in counts if count.state is State.QUARANTINED)
    if not held:
        return []
    text = ngettext(
        "%(jobs)s job is quarantined and waits for a person",
        "%(jobs)s jobs are quarantined and wait for a person",
        held,
    )
    return [Finding(Level.NOTE, text % {"jobs": number(held)})]
