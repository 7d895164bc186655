"""Awaiting the end of a job: a waiter is noted, so that the end knows whom to wake."""

from shiftboss.queue.authority import Authority, owner_of, reach_of
from shiftboss.queue.errors import NoSuchJob
from shiftboss.queue.states import State
from shiftboss.queue.store.statement import Statement, Verb

CHANNEL = "shiftboss_rested"
"""Where the ids of awaited jobs are notified that have ended or are quarantined."""

_BEGIN = Statement("await_begin", lambda id: int(id))
_END = Statement("await_end", lambda id: int(id))
_STATE = Statement("job_state", lambda state: State(state))


def begin(job_id: int, *, authority: Authority, seconds: float) -> Verb[int]:
    """Note that somebody awaits a job's end for so long; the waiter's id. Notes that nobody ended are dropped."""
    owner_of(authority)
    [waiter] = yield _BEGIN.call(job_id=job_id, seconds=seconds)
    return int(waiter)


def end(waiter: int, *, authority: Authority) -> Verb[None]:
    """Note that the wait is over."""
    owner_of(authority)
    yield _END.call(waiter=waiter)


def state(job_id: int, *, authority: Authority) -> Verb[State]:
    """Where the job stands. Raises NoSuchJob where there is none that the authority may see."""
    rows = yield _STATE.call(id=job_id, **reach_of(authority))
    if not rows:
        raise NoSuchJob(f"there is no job {job_id}")
    found: State = rows[0]
    return found
