"""The verdict: is anything wrong, what, and since when. Plain functions over what was seen of the whole."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from shiftboss.console import short
from shiftboss.console.text import duration, number, visible
from shiftboss.console.whole import Heard, HeldBack, Whole
from shiftboss.queue.states import WAITING, State
from shiftboss.queue.store.queues import Pause
from shiftboss.queue.store.read import WorkerRow
from shiftboss.queue.store.samples import Count, Part

TOLERATED_WAIT_SECONDS = 300
"""An available job that waits longer is worth a look."""

MAINTAINER = "manage.py shiftboss_maintainer"
"""By which it is started."""


class Level(IntEnum):
    """How much a finding matters."""

    WELL = 0
    NOTE = 1
    WRONG = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about the whole, how much it matters, and since when it is so where that is known.

    `page` and `query` lead to what it is about. `until`: of a program, so long it is held back.
    """

    level: Level
    text: str
    since: datetime | None = None
    page: str = ""
    query: str = ""
    until: datetime | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether somebody should do something now."""
        return self.level is Level.WRONG


def findings(seen: Whole) -> list[Finding]:
    """What there is to say, the worst first: never empty, and the first one is the headline."""
    if not seen.tells_of_queues:
        text = _("You see the jobs of some owners: how the queues stand is not told to you")
        return [*_unseen(seen), Finding(Level.NOTE, text, page="jobs")]
    paused = {pause.queue for pause in seen.pauses}
    said = [
        *_unseen(seen),
        *_looping(seen.holds),  # before what comes of it
        *_without_worker(seen),
        *_paused(seen.counts, seen.pauses),
        *_stuck(seen),
        *_waiting_long([count for count in seen.counts if count.queue not in paused]),
        *_hosts(seen.hosts),
        *_late_workers(seen),
        *_lost_workers(seen),
        *_quarantined(seen),
    ]
    if not any(finding.is_wrong for finding in said):
        said.insert(0, Finding(Level.WELL, _("All well") if seen.within is None else _("All well in your queues")))
    return sorted(said, key=_urgency)


def _urgency(finding: Finding) -> int:
    # Wrong first, then "All well", then notes.
    return {Level.WRONG: 0, Level.WELL: 1, Level.NOTE: 2}[finding.level]


def _unseen(seen: Whole) -> list[Finding]:
    """Without a maintainer nobody knows how the whole stands."""
    if not seen.is_known:
        text = _("No maintainer has looked at the record yet, so nothing is known of it. Start one: %(command)s")
        return [Finding(Level.WRONG, text % {"command": MAINTAINER})]
    age = seen.overdue_seconds
    if age is None:
        return []
    text = _("No maintainer looks at the record: what is shown is old. Start one: %(command)s")
    return [Finding(Level.WRONG, text % {"command": MAINTAINER}, timezone.now() - timedelta(seconds=age))]


def _without_worker(seen: Whole) -> list[Finding]:
    if Part.WORKERS not in seen.ages:
        return []
    if not seen.workers.live:
        text = _("No live worker: nothing runs")
        return [Finding(Level.WRONG, text, seen.workers.last_heard, "workers")]
    waiting: Counter[str] = Counter()
    for count in seen.counts:
        served = seen.workers.queues.get(count.queue)
        if count.state in WAITING and not (served and served.live):
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
            seen.workers.queues[queue].last_heard if queue in seen.workers.queues else None,
            "queues",
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
            "%(jobs)s job waits in queue %(queue)s, which is paused by %(by)s (%(reason)s)",
            "%(jobs)s jobs wait in queue %(queue)s, which is paused by %(by)s (%(reason)s)",
            jobs,
        )
        facts = {
            "queue": visible(pause.queue),
            "by": visible(pause.paused_by),
            "reason": visible(Truncator(pause.reason).chars(120)).rstrip("."),
            "jobs": number(jobs),
        }
        level = Level.WRONG if longest > TOLERATED_WAIT_SECONDS else Level.NOTE
        found.append(Finding(level, text % facts, pause.paused_at, "queues"))
    return found


def _stuck(seen: Whole) -> list[Finding]:
    if not seen.stuck:
        return []
    worst = max((one.over_seconds for one in seen.longest_stuck), default=0.0)
    text = ngettext(
        "%(leases)s lease is over and its job was not taken back, for %(over)s now",
        "%(leases)s leases are over and their jobs were not taken back, the first for %(over)s now",
        seen.stuck,
    )
    facts = {"leases": number(seen.stuck), "over": duration(worst)}
    return [Finding(Level.WRONG, text % facts, page="jobs", query="?state=running")]


def _waiting_long(counts: Sequence[Count]) -> list[Finding]:
    waits = [(count.oldest_seconds or 0.0, count.queue) for count in counts if count.state is State.AVAILABLE]
    late = sorted((wait for wait in waits if wait[0] > TOLERATED_WAIT_SECONDS), reverse=True)
    if not late:
        return []
    seconds, queue = late[0]
    text = ngettext(
        "Oldest available job waits %(wait)s in queue %(queue)s",
        "%(queues)s queues are late; the oldest available job waits %(wait)s in queue %(queue)s",
        len(late),
    )
    facts = {"queues": number(len(late)), "wait": duration(seconds), "queue": visible(queue)}
    return [Finding(Level.WRONG, text % facts, page="queues")]


def _looping(holds: Sequence[HeldBack]) -> list[Finding]:
    """Programs that crash in a loop: their agents hold them back, and somebody has to find out why."""
    found = []
    for held in holds:
        if held.times > 1:
            text = _("Crash loop: %(program)s on %(host)s ended %(times)s times in %(seconds)s")
        else:
            text = _("Crash loop: %(program)s on %(host)s ended again after it had been held back")
        facts = {
            "program": visible(held.program),
            "host": visible(held.host),
            "times": number(held.times),
            "seconds": duration(held.seconds),
        }
        query = f"?{urlencode({'host': held.host})}"
        found.append(Finding(Level.WRONG, text % facts, held.at, "hosts", query, held.until))
    return found


def _hosts(hosts: Sequence[Heard]) -> list[Finding]:
    found = []
    for host in hosts:
        name = visible(host.name)
        if not host.alive:
            text = _("The agent of host %(host)s is silent: nobody sees what runs there, or can steer it")
            found.append(Finding(Level.NOTE, text % {"host": name}, host.at, "hosts"))
        elif host.trouble:
            text = _("The supervisor of host %(host)s does not answer its agent")
            found.append(Finding(Level.WRONG, text % {"host": name}, page="hosts"))
        for shortage in host.short_of:
            level = Level.NOTE if shortage.kind in ("processor", "supervisor") else Level.WRONG
            text = _("Host %(host)s: %(short)s")
            found.append(Finding(level, text % {"host": name, "short": short.told(shortage)}, page="hosts"))
    return found


def _late_workers(seen: Whole) -> list[Finding]:
    worst = seen.workers.latest
    if not seen.workers.late or worst is None:
        return []
    text = ngettext(
        "Worker %(id)s on %(host)s is late: last heartbeat %(age)s ago, its lease is %(lease)s",
        "%(workers)s workers are late: the last heartbeat of worker %(id)s on %(host)s was %(age)s ago,"
        " its lease is %(lease)s",
        seen.workers.late,
    )
    facts = {
        "workers": number(seen.workers.late),
        "id": f"#{worst.worker_id}",
        "host": visible(worst.host),
        "age": duration(worst.seconds),
        "lease": duration(worst.lease_seconds),
    }
    return [Finding(Level.WRONG, text % facts, page="workers")]


def _lost_workers(seen: Whole) -> list[Finding]:
    lost = seen.workers.silent
    if not lost:
        return []
    text = ngettext(
        "%(workers)s worker fell silent without a goodbye in the last hour",
        "%(workers)s workers fell silent without a goodbye in the last hour",
        lost,
    )
    return [Finding(Level.NOTE, text % {"workers": number(lost)}, page="workers")]


def _quarantined(seen: Whole) -> list[Finding]:
    held = sum(count.jobs for count in seen.counts if count.state is State.QUARANTINED)
    if not held:
        return []
    text = ngettext(
        "%(jobs)s job is quarantined and waits for a person",
        "%(jobs)s jobs are quarantined and wait for a person",
        held,
    )
    said = text % {"jobs": number(held)}
    if seen.held_fresh:
        said = _("%(said)s, %(fresh)s of the last hour") % {"said": said, "fresh": number(seen.held_fresh)}
    return [Finding(Level.NOTE, said, page="quarantine")]


def late_after(worker: WorkerRow) -> float:
    """The age in seconds of a heartbeat from which on two in a row are missing, and the lease not yet over."""
    return min(3 * worker.heartbeat_seconds, 0.9 * worker.lease_seconds)


def is_late(worker: WorkerRow) -> bool:
    """Whether a worker that still lives has missed two heartbeats in a row."""
    return worker.alive and worker.heartbeat_age_seconds > late_after(worker)


def is_lost(worker: WorkerRow) -> bool:
    """Whether its heartbeats ended although it never said that it stops."""
    return worker.state != "stopped" and not worker.alive
