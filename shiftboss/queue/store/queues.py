"""What people order of queues: pause and resume."""

from dataclasses import dataclass
from datetime import datetime

from shiftboss.queue.authority import Authority, require_system
from shiftboss.queue.store.enqueue import check_queue
from shiftboss.queue.store.statement import Statement, Verb


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue that is not claimed from: since when, by whom and why."""

    queue: str
    paused_at: datetime
    paused_by: str
    reason: str


_PAUSE = Statement("pause", lambda name: str(name))
_RESUME = Statement("resume", lambda name, _: str(name))
_PAUSES = Statement("pauses", Pause)


def pause(queue: str, *, authority: Authority, by: str, reason: str) -> Verb[bool]:
    """Stop a queue from being claimed: no claim that starts after the commit takes its jobs.

    False where it is paused already. Jobs that run or were claimed go on. Raises InvalidJob for a name that no
    queue can have.
    """
    require_system(authority, "pause")
    check_queue(queue)
    rows = yield _PAUSE.call(queue=queue, by=by, reason=reason)
    return bool(rows)


def resume(queue: str, *, authority: Authority) -> Verb[bool]:
    """Let a queue be claimed again; False where it is not paused."""
    require_system(authority, "resume")
    rows = yield _RESUME.call(queue=queue)
    return bool(rows)


def pauses(*, authority: Authority) -> Verb[list[Pause]]:
    """The queues that are paused, by name."""
    require_system(authority, "pauses")
    rows: list[Pause] = yield _PAUSES.call()
    return rows
