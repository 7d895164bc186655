"""The numbers of the pages, arranged for drawing. Plain functions over what was read."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Self

from shiftboss.console.whole import Flow, Served, Whole
from shiftboss.queue.states import State
from shiftboss.queue.store.backfill import BackfillRow
from shiftboss.queue.store.queues import Limited, Pause
from shiftboss.queue.store.read import WorkerRow
from shiftboss.queue.store.samples import Count, Rate

BAR = 8
GAP = 2
HEIGHT = 40
LEAST = 4
AT_A_GLANCE = (State.AVAILABLE, State.RUNNING, State.QUARANTINED, State.COMPLETED)


class CountKind(StrEnum):
    """How a count is to be taken."""

    EXACT = "exact"
    ESTIMATED = "estimated"
    CAPPED = "capped"


@dataclass(frozen=True, slots=True)
class Tally:
    """Jobs of one state: how many, at least how many where the count was capped, or about how many."""

    state: State
    jobs: int = 0
    capped: bool = False
    oldest_seconds: float | None = None
    estimated: bool = False

    @property
    def kind(self) -> CountKind:
        """How its number is to be taken."""
        if self.estimated:
            return CountKind.ESTIMATED
        return CountKind.CAPPED if self.capped else CountKind.EXACT

    def __add__(self, other: Count) -> "Tally":
        ages = [age for age in (self.oldest_seconds, other.oldest_seconds) if age is not None]
        return Tally(self.state, self.jobs + other.jobs, self.capped or other.capped, max(ages) if ages else None)


@dataclass(frozen=True, slots=True)
class Minute:
    """What finished within one minute, and the two parts of its bar, in whole units of the drawing."""

    minutes_ago: int
    completed: int
    not_completed: int
    x: int
    completed_y: int
    completed_height: int
    not_completed_y: int
    not_completed_height: int


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Finished jobs by minute, the oldest first, as bars scaled to the busiest minute."""

    minutes: list[Minute]
    peak: int

    bar = BAR
    height = HEIGHT

    @property
    def width(self) -> int:
        """The width of the drawing in its own units."""
        return len(self.minutes) * (BAR + GAP) - GAP

    @property
    def completed_path(self) -> str:
        """The outlines of all lower parts, as one path."""
        return _path((one.x, one.completed_y, one.completed_height) for one in self.minutes)

    @property
    def not_completed_path(self) -> str:
        """The outlines of all upper parts."""
        return _path((one.x, one.not_completed_y, one.not_completed_height) for one in self.minutes)

    @property
    def empty_path(self) -> str:
        """A mark for each minute in which nothing finished."""
        empty = (one for one in self.minutes if not one.completed and not one.not_completed)
        return _path((one.x, HEIGHT - 1, 1) for one in empty)

    @property
    def last(self) -> int:
        """Jobs that finished in the last sixty seconds."""
        return self.minutes[-1].completed + self.minutes[-1].not_completed

    @property
    def finished(self) -> int:
        """Jobs that finished in all the minutes together."""
        return sum(minute.completed + minute.not_completed for minute in self.minutes)

    @property
    def not_completed(self) -> int:
        """Those of them that were discarded or cancelled."""
        return sum(minute.not_completed for minute in self.minutes)

    @classmethod
    def of(cls, rates: Iterable[Rate], *, minutes: int) -> Self:
        """Draw the last `minutes` of these rates; minutes without any are drawn empty."""
        completed: Counter[int] = Counter()
        other: Counter[int] = Counter()
        for rate in rates:
            completed[rate.minutes_ago] += rate.completed
            other[rate.minutes_ago] += rate.not_completed
        peak = max((completed[ago] + other[ago] for ago in range(minutes)), default=0)
        bars = [
            _bar(position, ago, completed[ago], other[ago], peak)
            for position, ago in enumerate(range(minutes - 1, -1, -1))
        ]
        return cls(bars, peak)


def _bar(position: int, ago: int, completed: int, other: int, peak: int) -> Minute:
    upper, lower = _part(other, peak), _part(completed, peak)
    return Minute(
        minutes_ago=ago,
        completed=completed,
        not_completed=other,
        x=position * (BAR + GAP),
        completed_y=HEIGHT - lower,
        completed_height=lower,
        not_completed_y=max(0, HEIGHT - lower - upper),
        not_completed_height=upper,
    )


def _path(bars: Iterable[tuple[int, int, int]]) -> str:
    return "".join(f"M{x} {y}h{BAR}v{height}h-{BAR}z" for x, y, height in bars if height)


def _part(jobs: int, peak: int) -> int:
    """The height of a part; one job among thousands is still seen."""
    return max(2, round(HEIGHT * jobs / peak)) if jobs else 0


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the bar that shows how far a backfill is, in thousandths of its length."""

    kind: str
    items: int
    x: int
    width: int


def parts(row: BackfillRow) -> list[Part]:
    """What is completed, failed, was cancelled and is live, from the left; the rest of the bar waits."""
    counted = [
        (kind, items)
        for kind, items in (
            ("completed", row.completed),
            ("failed", failed(row)),
            ("cancelled", row.cancelled),
            ("live", row.live),
        )
        if items
    ]
    # One item among millions is still seen; the widest part makes room for it.
    widths = [max(LEAST, round(1000 * items / row.items)) for _, items in counted]
    over = sum(widths) + (LEAST if row.waiting else 0) - 1000
    if over > 0:
        widths[widths.index(max(widths))] -= over
    starts = accumulate(widths, initial=0)
    return [Part(kind, items, x, width) for (kind, items), x, width in zip(counted, starts, widths, strict=False)]


def failed(row: BackfillRow) -> int:
    """Items whose job is held back or was given up; who cancels one means it."""
    return row.quarantined + row.discarded


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue: its jobs by state, its throughput, the live workers that serve it, its pause and its limit.

    `served` and `flow` are of the sample: who serves it, and the jobs in and out within the last minute.
    """

    name: str
    tallies: list[Tally]
    oldest_wait_seconds: float | None
    sparkline: Sparkline
    workers: list[WorkerRow]
    pause: Pause | None
    limited: Limited | None
    served: Served | None = None
    flow: Flow = field(default_factory=Flow)

    @property
    def glance(self) -> list[Tally]:
        """The states that are looked at first."""
        return [one for one in self.tallies if one.state in AT_A_GLANCE]

    @property
    def later(self) -> int:
        """Jobs that are not due yet."""
        return sum(one.jobs for one in self.tallies if one.state in (State.SCHEDULED, State.RETRYABLE))

    @property
    def live_workers(self) -> int:
        """How many live workers serve it."""
        return self.served.live if self.served else len(self.workers)


def queues(
    counts: Sequence[Count],
    rates: Sequence[Rate],
    workers: Sequence[WorkerRow],
    pauses: Sequence[Pause],
    limits: Sequence[Limited],
    *,
    minutes: int,
) -> list[QueueLine]:
    """A line for each queue that has jobs, that a live worker serves, or that is paused or limited, by name."""
    served: dict[str, list[WorkerRow]] = defaultdict(list)
    for worker in sorted((worker for worker in workers if worker.alive), key=lambda worker: worker.id):
        for queue in worker.queues:
            served[queue].append(worker)
    paused = {pause.queue: pause for pause in pauses}
    limited = {one.queue: one for one in limits}
    by_queue: dict[str, list[Count]] = defaultdict(list)
    for count in counts:
        by_queue[count.queue].append(count)
    lines = []
    for name in sorted({*by_queue, *served, *paused, *limited}):
        tallies = tally(by_queue[name])
        lines.append(
            QueueLine(
                name=name,
                tallies=tallies,
                oldest_wait_seconds=_oldest(tallies, State.AVAILABLE),
                sparkline=Sparkline.of((r for r in rates if r.queue == name), minutes=minutes),
                workers=served.get(name, []),
                pause=paused.get(name),
                limited=limited.get(name),
            )
        )
    return lines


def seen_queues(seen: Whole, limits: Sequence[Limited], *, minutes: int) -> list[QueueLine]:
    """A line for each queue that has jobs, or is served, paused or limited, by name; all as it was sampled."""
    paused = {pause.queue: pause for pause in seen.pauses}
    limited = {one.queue: one for one in limits}
    served = {name: one for name, one in seen.workers.queues.items() if one.live}
    counts: dict[str, list[Count]] = defaultdict(list)
    for count in seen.counts:
        counts[count.queue].append(count)
    rates: dict[str, list[Rate]] = defaultdict(list)
    for rate in seen.rates:
        rates[rate.queue].append(rate)
    lines = []
    for name in sorted({*counts, *served, *paused, *limited}):
        tallies = tally(counts[name])
        lines.append(
            QueueLine(
                name=name,
                tallies=tallies,
                oldest_wait_seconds=_oldest(tallies, State.AVAILABLE),
                sparkline=Sparkline.of(rates[name], minutes=minutes),
                workers=[],
                pause=paused.get(name),
                limited=limited.get(name),
                served=served.get(name, Served()),
                flow=seen.flows.get(name, Flow()),
            )
        )
    return lines


def tally(counts: Iterable[Count], *, finished: int | None = None) -> list[Tally]:
    """The counts added up by state, every state once, in the order of a job's life.

    `finished`: about how many have finished in all; of more completed ones than were counted it tells the number.
    """
    sums = {state: Tally(state) for state in State}
    for count in counts:
        sums[count.state] += count
    completed = sums[State.COMPLETED]
    others = sums[State.CANCELLED].jobs + sums[State.DISCARDED].jobs
    if finished is not None and completed.capped and finished - others > completed.jobs:
        sums[State.COMPLETED] = Tally(State.COMPLETED, _rounded(finished - others), estimated=True)
    return list(sums.values())


def _rounded(jobs: int) -> int:
    """An estimate to three digits."""
    return round(jobs, 3 - len(str(jobs)))


@dataclass(frozen=True, slots=True)
class Total:
    """All queues together."""

    available: Tally
    running: Tally
    quarantined: Tally
    later: int
    sparkline: Sparkline


def total(counts: Sequence[Count], rates: Sequence[Rate], *, minutes: int) -> Total:
    """What the figures at the top of the overview say."""
    by_state = {line.state: line for line in tally(counts)}
    return Total(
        available=by_state[State.AVAILABLE],
        running=by_state[State.RUNNING],
        quarantined=by_state[State.QUARANTINED],
        later=by_state[State.SCHEDULED].jobs + by_state[State.RETRYABLE].jobs,
        sparkline=Sparkline.of(rates, minutes=minutes),
    )


def _oldest(tallies: Iterable[Tally], state: State) -> float | None:
    return next(line.oldest_seconds for line in tallies if line.state is state)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the live workers can run at once, and what they run."""

    workers: int
    slots: int
    in_use: int


def capacity(workers: Sequence[WorkerRow]) -> Capacity:
    """The live workers together."""
    alive = [worker for worker in workers if worker.alive]
    return Capacity(
        workers=len(alive),
        slots=sum(worker.slots for worker in alive),
        in_use=sum(worker.in_use for worker in alive),
    )
