"""The whole as pages show it: what the maintainer last saw of it, part by part, and how old that is.

Reading it costs one small statement, and not even that where this process has read it within `KEPT_SECONDS`:
twenty people who look cost no more than one. Nothing here counts a table. Where no maintainer runs, what is shown
stays as old as it is, and says so: a page that counted for itself would be slow, and would hide that nobody makes
due jobs available either. Who asks from a shell may look themselves, with `looked`.

>>> seen = whole()
>>> seen.counts, seen.age_seconds
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import Error
from django.utils import timezone

from shiftboss import conf
from shiftboss.console.kept import Kept, Made
from shiftboss.console.record import bounded
from shiftboss.queue.authority import System
from shiftboss.queue.shortage import Shortage, shortages
from shiftboss.queue.states import State
from shiftboss.queue.store import samples
from shiftboss.queue.store.queues import Pause
from shiftboss.queue.store.samples import Count, Part, Rate, Sample
from shiftboss.queue.store.statement import run

KEPT_SECONDS = 1.0
"""So long a process shows what it has read without asking again."""

NOW_SECONDS = 15.0
"""Younger counts are as good as new; their age, told on the page, would change the page each time."""

ABANDONED_SECONDS = 10.0
"""A part that is older than this and twice its pace has no maintainer."""

OLD_SECONDS = 10.0
"""Where a light part is older than this, and than three times its pace, the page says how old."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One worker's heartbeat against its lease, in seconds: how old it is, or how late it came."""

    worker_id: int
    host: str
    seconds: float
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class Served:
    """Who serves a queue: live workers, their slots, and when any worker of it was last heard of."""

    live: int = 0
    slots: int = 0
    in_use: int = 0
    last_heard: datetime | None = None


@dataclass(frozen=True, slots=True)
class Workers:
    """The live workers together.

    `silent`: fell silent without a goodbye within the last hour. `late`: have missed two heartbeats in a row while
    their lease still runs; `latest` is the worst of them. `lag`: the worst delay of a heartbeat now against its
    lease, `worst_lag` since the workers' start.
    """

    live: int = 0
    slots: int = 0
    in_use: int = 0
    silent: int = 0
    late: int = 0
    latest: Beat | None = None
    lag: Beat | None = None
    worst_lag: Beat | None = None
    last_heard: datetime | None = None
    queues: dict[str, Served] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stuck:
    """A lease that is over although its job still counts as running."""

    job_id: int
    queue: str
    task: str
    worker_id: int
    over_seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """Quarantined jobs of one reason and queue; `fresh` of them within the last hour."""

    reason: str
    queue: str
    jobs: int
    fresh: int
    first: datetime
    last: datetime
    newest_id: int


@dataclass(frozen=True, slots=True)
class Flow:
    """Jobs of a queue within the last minute: in, and out as completed or otherwise."""

    came: float = 0.0
    completed: int = 0
    not_completed: int = 0

    @property
    def went(self) -> int:
        """Jobs that left it, however they ended."""
        return self.completed + self.not_completed

    def __add__(self, other: "Flow") -> "Flow":
        return Flow(
            self.came + other.came,
            self.completed + other.completed,
            self.not_completed + other.not_completed,
        )


@dataclass(frozen=True, slots=True)
class Heard:
    """A host as its agent last told of it. `trouble`: why its supervisor does not answer, None where it does."""

    name: str
    at: datetime
    alive: bool
    trouble: str | None
    short_of: tuple[Shortage, ...]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A program that crashes in a loop: how often it ended within how many seconds, and until when it is down."""

    host: str
    program: str
    at: datetime
    until: datetime
    times: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Whole:
    """What was seen of the whole.

    `counts`: jobs per queue and state; finished ones among the newest `samples.FINISHED_CAP`, then `capped`.
    `finished`: about how many finished jobs there are in all, None where that is not known. `rates`: finished jobs
    per queue and minute, counted back from `minute`. `ages`: for each part how old it is in seconds; a part that
    was never seen is missing, and its figures are empty. `overdue_seconds`: how old the figures are where nobody
    looks any more. `unattended`: no maintainer looks, whoever else did. `pauses`, `hosts` and `holds` are of the
    reading. `stuck_in`: stuck leases by queue. `within`: the queues that it is narrowed to, None where it is not.
    """

    counts: list[Count] = field(default_factory=list)
    finished: int | None = None
    workers: Workers = field(default_factory=Workers)
    stuck_in: dict[str, int] = field(default_factory=dict)
    longest_stuck: list[Stuck] = field(default_factory=list)
    quarantine: list[Held] = field(default_factory=list)
    flows: dict[str, Flow] = field(default_factory=dict)
    rates: list[Rate] = field(default_factory=list)
    minute: datetime | None = None
    pauses: list[Pause] = field(default_factory=list)
    hosts: list[Heard] = field(default_factory=list)
    holds: list[HeldBack] = field(default_factory=list)
    ages: dict[Part, float] = field(default_factory=dict)
    overdue_seconds: float | None = None
    within: frozenset[str] | None = None
    unattended: bool = False

    @property
    def tells_of_queues(self) -> bool:
        """Whether queues are told of at all: who sees the jobs of some owners sees no queue as a whole."""
        return self.within is None or bool(self.within)

    @property
    def stuck(self) -> int:
        """Leases that are over for longer than a reaper needs."""
        return sum(self.stuck_in.values())

    @property
    def age_seconds(self) -> float | None:
        """How old the counts are; None where nothing was ever counted."""
        return self.ages.get(Part.COUNTS)

    @property
    def counted_at(self) -> datetime | None:
        """When the counts were made, where that is not just now."""
        age = self.age_seconds
        return None if age is None or age < NOW_SECONDS else timezone.now() - timedelta(seconds=age)

    @property
    def is_known(self) -> bool:
        """Whether anybody has ever looked."""
        return any(part in self.ages for part in samples.LIGHT)

    @property
    def flow(self) -> Flow:
        """All queues together."""
        return sum(self.flows.values(), Flow())

    @property
    def held(self) -> int:
        """Quarantined jobs."""
        return sum(one.jobs for one in self.quarantine)

    @property
    def held_fresh(self) -> int:
        """Those of them that came within the last hour."""
        return sum(one.fresh for one in self.quarantine)


_last: Kept[dict[str, Sample]] = Kept()


def whole() -> Whole:
    """What is known of the whole now: at most one statement."""
    return _made(_aged(_last.get(conf.get().database, _found, seconds=KEPT_SECONDS)))


def looked() -> Whole:
    """The same, after a look of one's own at the parts at which no maintainer looks; for who may take the time.

    A part at which one cannot look, as where the database is only to be read or does not answer in time, stays as
    old as it is.
    """
    found = _found()
    for part in _abandoned(found):
        with suppress(Error), bounded():
            run(samples.look(part, authority=System()))
    forget()
    return replace(whole(), unattended=_made(found).unattended)


def last_known() -> Whole | None:
    """What this process has read before, without asking the database; None where that is nothing."""
    kept = _last.last(conf.get().database)
    return _made(_aged(kept)) if kept else None


def forget() -> None:
    """Read anew, because somebody has just changed what is seen."""
    _last.forget()


def _aged(read: Made[dict[str, Sample]]) -> dict[str, Sample]:
    """The samples, as old as they are now."""
    since = read.age_seconds
    return {part: replace(sample, age_seconds=sample.age_seconds + since) for part, sample in read.value.items()}


def _found() -> dict[str, Sample]:
    return run(samples.samples(authority=System()))


def _abandoned(found: dict[str, Sample]) -> list[Part]:
    """Parts at which nobody looks any more, or never did."""

    def left(sample: Sample | None) -> bool:
        return sample is None or sample.age_seconds >= max(ABANDONED_SECONDS, 2 * sample.pace_seconds)

    return [part for part in Part if left(found.get(part))]


def _made(found: dict[str, Sample]) -> Whole:
    def seen(part: str, otherwise: Any) -> Any:
        return found[part].seen if part in found else otherwise

    finished: dict[str, Any] = seen(Part.FINISHED, {})
    leases: dict[str, Any] = seen(Part.LEASES, {})
    minute, rates = _rates(seen(Part.MINUTES, []), found.get(Part.MINUTES))
    overdue = _overdue(found)
    return Whole(
        counts=[*_live(found), *_finished(finished)],
        finished=finished.get("estimate"),
        workers=_workers(seen(Part.WORKERS, {})),
        stuck_in=dict(leases.get("stuck_in", [])),
        longest_stuck=[Stuck(*row) for row in leases.get("longest", [])],
        quarantine=[
            Held(reason, queue, jobs, fresh, _moment(first), _moment(last), newest)
            for reason, queue, jobs, fresh, first, last, newest in seen(Part.QUARANTINE, [])
        ],
        flows=_flows(seen(Part.RATES, {})),
        rates=rates,
        minute=minute,
        pauses=[
            Pause(queue, datetime.fromisoformat(paused_at), by, reason)
            for queue, paused_at, by, reason in seen(samples.PAUSES, [])
        ],
        hosts=[
            Heard(name, datetime.fromisoformat(at), alive, trouble, shortages(resources) if alive else ())
            for name, at, alive, trouble, resources in seen(samples.HOSTS, [])
        ],
        holds=[
            HeldBack(host, program, datetime.fromisoformat(at), datetime.fromisoformat(until), times, seconds)
            for host, program, at, until, times, seconds in seen(samples.HOLDS, [])
        ],
        ages={part: found[part].age_seconds for part in Part if part in found},
        overdue_seconds=overdue,
        unattended=overdue is not None or not any(part in found for part in samples.LIGHT),
    )


def _overdue(found: dict[str, Sample]) -> float | None:
    """How old the oldest part is that should have been looked at long since."""
    light = [found[part] for part in samples.LIGHT if part in found]
    overdue = [one.age_seconds for one in light if one.age_seconds > max(OLD_SECONDS, 3 * one.pace_seconds)]
    return max(overdue, default=None)


def _live(found: dict[str, Sample]) -> list[Count]:
    """Live jobs as they were counted; those of states that are looked at more often as they were seen there."""
    counted = {
        (queue, State(state)): Count(queue, State(state), jobs, None, False)
        for queue, state, jobs in (found[Part.COUNTS].seen if Part.COUNTS in found else [])
    }
    seen = [(part, _seen_apart(found[part])) for part in _APART if part in found]
    for part, counts in seen:
        state = _APART[part]
        before = {key: counted.pop(key) for key in list(counted) if key[1] is state}
        for count in counts:
            key = count.queue, state
            counted[key] = _at_least(count, before[key]) if count.capped and key in before else count
    return [counted[key] for key in sorted(counted)]


_APART = {Part.WAITS: State.AVAILABLE, Part.LEASES: State.RUNNING, Part.QUARANTINE: State.QUARANTINED}
"""Parts that see all jobs of a state."""


def _seen_apart(sample: Sample) -> list[Count]:
    match sample.part:
        case Part.WAITS:
            cap = samples.WAITS_CAP
            return [
                Count(queue, State.AVAILABLE, jobs, oldest, jobs >= cap) for queue, jobs, oldest in sample.seen
            ]
        case Part.LEASES:
            return [
                Count(queue, State.RUNNING, jobs, longest, False)
                for queue, jobs, longest in sample.seen["running"]
            ]
    held = Counter[str]()
    for _reason, queue, jobs, *_rest in sample.seen:
        held[queue] += jobs
    return [Count(queue, State.QUARANTINED, jobs, None, False) for queue, jobs in held.items()]


def _at_least(seen: Count, counted: Count) -> Count:
    """A count that was capped, by the full count that was made before it, if that is larger."""
    if counted.jobs <= seen.jobs:
        return seen
    return replace(seen, jobs=counted.jobs, capped=False)


def _finished(seen: dict[str, Any]) -> list[Count]:
    return [
        Count(queue, State(state), jobs, None, bool(seen["capped"]))
        for queue, state, jobs in seen.get("counts", [])
    ]


def _workers(seen: dict[str, Any]) -> Workers:
    if not seen:
        return Workers()
    latest = seen["latest"]
    return Workers(
        live=seen["live"],
        slots=seen["slots"],
        in_use=seen["in_use"],
        silent=seen["silent"],
        late=seen["late"],
        latest=Beat(latest["id"], latest["host"], latest["age"], latest["lease"]) if latest else None,
        lag=_beat(seen["lag"]),
        worst_lag=_beat(seen["worst"]),
        last_heard=_moment(seen["seen_at"]) if seen["seen_at"] else None,
        queues={
            queue: Served(live, slots, in_use, _moment(heard))
            for queue, live, slots, in_use, heard in seen["queues"]
        },
    )


def _beat(seen: dict[str, Any] | None) -> Beat | None:
    return Beat(seen["id"], seen["host"], max(0.0, seen["now"]), seen["lease"]) if seen else None


def _flows(seen: dict[str, Any]) -> dict[str, Flow]:
    if not seen:
        return {}
    came = {queue: jobs * 60 / seen["seconds"] for queue, jobs in seen["in"]}
    went = {queue: (completed, other) for queue, completed, other in seen["out"]}
    return {queue: Flow(came.get(queue, 0.0), *went.get(queue, (0, 0))) for queue in sorted({*came, *went})}


def _rates(seen: Iterable[Sequence[Any]], sample: Sample | None) -> tuple[datetime | None, list[Rate]]:
    """The minute in which was looked, and the finished jobs by minutes before it."""
    if sample is None:
        return None, []
    looked = sample.at.replace(second=0, microsecond=0)
    now = int(looked.timestamp())
    return looked, [Rate(queue, (now - at) // 60, completed, other) for queue, at, completed, other in seen]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
