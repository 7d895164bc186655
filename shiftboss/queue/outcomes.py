"""How a leased run ended, as values. A worker reports them; the store turns them into states.

`evidence`, wherever there is one, is a JSON text: what is known of the attempt beside its error.
"""

from dataclasses import dataclass

from shiftboss.queue.states import QuarantineReason


@dataclass(frozen=True, slots=True)
class Done:
    """The handler returned. `result` is JSON text or None; `run_ms` is the handler's time."""

    result: str | None
    run_ms: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised. `code` is stable; `backoff_seconds` is what a retry would wait, already capped.

    Without a backoff (None) the task wants no retry after such a failure: the job is quarantined at once.
    """

    code: str
    type: str
    message: str
    fingerprint: str
    traceback: str
    backoff_seconds: float | None
    run_ms: int
    evidence: str = "{}"


@dataclass(frozen=True, slots=True)
class Released:
    """Given back unharmed; `code` says why: shutdown, not_started, task_not_here, or the cause of a cancellation.

    Where somebody has asked for the job's end, giving it back ends it: cancelled.
    """

    code: str
    evidence: str = "{}"


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The handler asked to run again later; nothing is counted. `seconds` from now, 0 or more."""

    seconds: float
    run_ms: int
    evidence: str = "{}"


@dataclass(frozen=True, slots=True)
class Discarded:
    """The handler gave the job up for good; `message` says why."""

    message: str
    run_ms: int
    evidence: str = "{}"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The job cannot run at all."""

    reason: QuarantineReason
    message: str
    evidence: str = "{}"


@dataclass(frozen=True, slots=True)
class Lost:
    """The executor died with the job in hand.

    `alone`: nothing else had started in it, so the death counts. `suspect`: the job runs alone next time.
    `evidence` holds the exit code or signal.
    """

    alone: bool
    suspect: bool
    code: str
    message: str
    evidence: str


Outcome = Done | Failed | Snoozed | Released | Discarded | Quarantined | Lost
