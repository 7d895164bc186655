"""Queues as an operator weighs them: what a pause would stop, and whether what is promised is kept."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shiftboss.conf import QueueOptions
from shiftboss.console.roster import standing
from shiftboss.console.whole import Flow, Whole
from shiftboss.queue.buckets import percentiles, share_within
from shiftboss.queue.states import State
from shiftboss.queue.store.read import WorkerRow

SHARES = (0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Radius:
    """What a pause of a queue stops: jobs that would be finished each minute, and workers with nothing else to do.

    `waiting` jobs wait longer, `running` ones go on. `sole`: workers that would be idle; `served`: all that serve
    it.
    """

    a_minute: int
    waiting: int
    running: int
    served: int
    sole: int


def radius(queue: str, seen: Whole, workers: Iterable[WorkerRow]) -> Radius:
    """What pausing this queue would stop now."""
    paused = {pause.queue for pause in seen.pauses}
    serving = [one for one in workers if one.alive and queue in one.queues and standing(one) == "running"]
    tallies = {count.state: count.jobs for count in seen.counts if count.queue == queue}
    return Radius(
        a_minute=seen.flows.get(queue, Flow()).went,
        waiting=tallies.get(State.AVAILABLE, 0),
        running=tallies.get(State.RUNNING, 0),
        served=len(serving),
        sole=sum(all(name == queue or name in paused for name in one.queues) for one in serving),
    )


@dataclass(frozen=True, slots=True)
class Objective:
    """The wait that a queue is to keep, and the share of the last hour's jobs that kept it; None without any."""

    target_seconds: float
    share: float | None
    jobs: int

    @property
    def percent(self) -> str:
        """The share, never rounded up to all."""
        return "" if self.share is None else f"{int(self.share * 1000) / 10:.1f}"


def targets(options: Mapping[str, QueueOptions]) -> dict[str, float]:
    """The queues that have an objective."""
    return {name: one.target_wait_seconds for name, one in options.items() if one.target_wait_seconds is not None}


def objectives(wanted: Mapping[str, float], waits: Mapping[str, Mapping[int, int]]) -> dict[str, Objective]:
    """How each of these queues keeps its target."""
    return {
        name: Objective(
            seconds, share_within(waits.get(name, {}), seconds * 1000), sum(waits.get(name, {}).values())
        )
        for name, seconds in wanted.items()
    }


@dataclass(frozen=True, slots=True)
class Waited:
    """How long the jobs of a queue waited within the last hour, in seconds; half of them, and 95 %, at most."""

    jobs: int
    half: float
    most: float


def waited(histogram: Mapping[int, int]) -> Waited | None:
    """In short, or None where no job began."""
    half, most = percentiles(histogram, SHARES)
    if half is None or most is None:
        return None
    return Waited(sum(histogram.values()), half / 1000, most / 1000)


def drained_in(available: int, flow: Flow) -> float | None:
    """How many seconds what is available takes at the present rate; None where it does not get less."""
    less = flow.went - flow.came
    return 60 * available / less if available and less > 0 else None


def serving(queue: str, workers: Sequence[WorkerRow]) -> list[WorkerRow]:
    """The live workers that serve a queue, by their ids."""
    return sorted((one for one in workers if one.alive and queue in one.queues), key=lambda one: one.id)
