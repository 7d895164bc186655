"""What people and settings order of queues: pause and resume, and how many of their jobs run at once.

A limited queue has as many *slots* as its limit says. A claim takes a free one for each job, and each end of a
run frees its own; where there are more slots than the limit, after it was lowered, nothing is claimed until those
above it are free and gone. So the rows themselves are the limit, whatever a statement under way believes of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.conf import QueueOptions
from shiftboss.queue.authority import Authority, queues_of, require_queue_within, require_system
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.store.enqueue import check_queue
from shiftboss.queue.store.statement import Atomic, Statement, Verb

MAX_CONCURRENCY = 10_000


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue that is not claimed from: since when, by whom and why."""

    queue: str
    paused_at: datetime
    paused_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Limit:
    """How many jobs of a queue run at once; `concurrency` None: as many as its workers can.

    `sequential`: one at a time in strict order, a job that waits for its next attempt holds the line.
    """

    concurrency: int | None = None
    sequential: bool = False

    @classmethod
    def of(cls, options: QueueOptions | None) -> "Limit":
        """What the settings say of a queue."""
        if options is None:
            return cls()
        return cls(1 if options.sequential else options.concurrency, options.sequential)

    @property
    def word(self) -> str:
        """It as the audit says it: `unlimited`, `sequential` or the number."""
        if self.sequential:
            return "sequential"
        return "unlimited" if self.concurrency is None else str(self.concurrency)

    def __post_init__(self) -> None:
        if self.concurrency is not None and not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InvalidJob(f"a limit is a whole number from 1 to {MAX_CONCURRENCY}, not {self.concurrency}")
        if self.sequential and self.concurrency != 1:
            raise InvalidJob("a sequential queue runs one job at a time: its limit is 1")


@dataclass(frozen=True, slots=True)
class Limited:
    """The limit of a queue, who has set it (None: the settings), and how many of its slots are taken."""

    queue: str
    limit: Limit
    by: str | None
    taken: int


_PAUSE = Statement("pause", lambda name: str(name))
_RESUME = Statement("resume", lambda name, _: str(name))
_PAUSES = Statement("pauses", Pause)
_LIMIT = Statement("limit", lambda _, concurrency, sequential, *__: Limit(concurrency, sequential))
_LIMITS = Statement(
    "limits", lambda name, n, sequential, by, taken: Limited(name, Limit(n, sequential), by, taken)
)
_APPLY_LIMITS = Statement("apply_limits", lambda name: str(name))
_SETTLE_SLOTS = Statement("settle_slots", lambda _, limited, *__: bool(limited))
_AWAIT_CLAIMS = Statement("await_claims", lambda *_: None)
_ADOPT_RUNS = Statement("adopt_runs", lambda id: int(id))


def pause(queue: str, *, authority: Authority, by: str, reason: str) -> Verb[bool]:
    """Stop a queue from being claimed: no claim that starts after the commit takes its jobs.

    False where it is paused already. Jobs that run or were claimed go on. Raises InvalidJob for a name that no
    queue can have.
    """
    require_queue_within(authority, queue, "pause")
    check_queue(queue)
    rows = yield _PAUSE.call(queue=queue, by=by, reason=reason)
    return bool(rows)


def resume(queue: str, *, authority: Authority) -> Verb[bool]:
    """Let a queue be claimed again; False where it is not paused."""
    require_queue_within(authority, queue, "resume")
    rows = yield _RESUME.call(queue=queue)
    return bool(rows)


def pauses(*, authority: Authority) -> Verb[list[Pause]]:
    """The queues that are paused, by name; within a scope those of its queues."""
    queues = queues_of(authority, "pauses")
    rows: list[Pause] = yield _PAUSES.call()
    return [row for row in rows if queues is None or row.queue in queues]


def limit(
    queue: str, given: Limit, *, authority: Authority, by: str | None, reset: bool = False
) -> Verb[Limit | None]:
    """Say how many jobs of a queue run at once; answers the limit before, None where nothing changes.

    `by`: the person who says it, whose word stands until they or another change or `reset` it; None for settings.
    Jobs that run already go on and count, and so does what claims under way bring: they are waited for. A claim
    that has begun at this very moment, and has not asked for the queue yet, may pass by: what it brings counts
    after the next `reap`. Raises InvalidJob for a name that no queue can have.
    """
    require_queue_within(authority, queue, "limit")
    check_queue(queue)
    params = {"queue": queue, "concurrency": given.concurrency, "sequential": given.sequential, "by": by}
    before: Limit | None = yield Atomic(_limit({**params, "reset": reset}))
    return before


def _limit(params: dict[str, Any]) -> Verb[Limit | None]:
    before: list[Limit] = yield _LIMIT.call(**params)
    if not before:
        return None
    yield _AWAIT_CLAIMS.call(queues=[params["queue"]])
    yield from adopt()
    yield from settle(params["queue"])
    return before[0]


def apply_settings(limits: Mapping[str, Limit], *, authority: Authority) -> Verb[list[str]]:
    """Set what the settings say of all queues, where no person has said otherwise; answers whose limit changed."""
    require_system(authority, "limit")
    said = {queue: given for queue, given in limits.items() if given.concurrency is not None}
    changed: list[str] = yield _APPLY_LIMITS.call(
        queues=list(said),
        concurrency=[given.concurrency for given in said.values()],
        sequential=[given.sequential for given in said.values()],
    )
    if changed:
        yield _AWAIT_CLAIMS.call(queues=changed)
        yield from adopt()
        yield from settle()
    return changed


def limits(*, authority: Authority) -> Verb[list[Limited]]:
    """The queues with a limit, or of which a person has said that they have none, by name; as in `pauses`."""
    queues = queues_of(authority, "limits")
    rows: list[Limited] = yield _LIMITS.call()
    return [row for row in rows if queues is None or row.queue in queues]


def settle(queue: str | None = None) -> Verb[bool]:
    """Let the slots of a queue, or of all, follow its limit; whether one of them is limited. A part of verbs."""
    rows: list[bool] = yield _SETTLE_SLOTS.call(queue=queue)
    return any(rows)


def adopt() -> Verb[None]:
    """Give slots to what runs without one in limited queues. A part of verbs."""
    yield _ADOPT_RUNS.call()
