"""The states of a job and the verbs that move it: the state machine as data.

Code, documentation and buttons read `TRANSITIONS`; the statements in `store/sql` enforce it.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a job stands."""

    SCHEDULED = "scheduled"
    AVAILABLE = "available"
    RETRYABLE = "retryable"
    RUNNING = "running"
    QUARANTINED = "quarantined"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


WAITING = frozenset({State.SCHEDULED, State.AVAILABLE, State.RETRYABLE})
FINAL = frozenset({State.COMPLETED, State.CANCELLED, State.DISCARDED})
LIVE = frozenset(State) - FINAL


class Verb(StrEnum):
    """What can be done to a job; the one name of it in code, SQL, events and pages."""

    ENQUEUE = "enqueue"
    BACKFILL = "backfill"
    RERUN = "rerun"
    STAGE = "stage"
    EXPEDITE = "expedite"
    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    PROGRESS = "progress"
    CHECKPOINT = "checkpoint"
    EVENT = "event"
    COMPLETE = "complete"
    FAIL = "fail"
    SNOOZE = "snooze"
    RELEASE = "release"
    DISCARD = "discard"
    QUARANTINE = "quarantine"
    CANCEL = "cancel"
    REAP = "reap"
    REPRIORITISE = "reprioritise"
    RESCHEDULE = "reschedule"
    REINSTATE = "reinstate"
    PRUNE = "prune"
    PURGE = "purge"


class Actor(StrEnum):
    """Who may use a verb."""

    CLIENT = "client"
    OWNER = "owner"
    WATCHER = "watcher"
    OPERATOR = "operator"
    WORKER = "worker"
    KEEPER = "keeper"
    MAINTAINER = "maintainer"


class QuarantineReason(StrEnum):
    """Why a job is held back from running again by itself."""

    FAILURES_EXHAUSTED = "failures_exhausted"
    LOSSES_EXHAUSTED = "losses_exhausted"
    POISON = "poison"
    DELIVERIES_EXHAUSTED = "deliveries_exhausted"
    UNKNOWN_TASK = "unknown_task"
    INVALID_ARGUMENTS = "invalid_arguments"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The effect of one verb on one state.

    `at_limit` replaces `to` when the verb has used up the job's last failure or loss;
    `if_cancel_requested` replaces both when somebody has asked for the running job's end.
    """

    to: State
    by: frozenset[Actor]
    at_limit: State | None = None
    if_cancel_requested: State | None = None


_WORKER = frozenset({Actor.WORKER})
_UPKEEP = frozenset({Actor.MAINTAINER, Actor.KEEPER})
_OPERATOR = frozenset({Actor.OPERATOR})
_CLIENTS = frozenset({Actor.OWNER, Actor.WATCHER, Actor.OPERATOR, Actor.CLIENT, Actor.MAINTAINER})


def _running(to: State, *, at_limit: State | None = None, by: frozenset[Actor] = _WORKER) -> Rule:
    return Rule(to=to, by=by, at_limit=at_limit, if_cancel_requested=State.CANCELLED)


# (state before, verb) → rule. `None` before the first state; a pair that is missing is refused.
TRANSITIONS: dict[tuple[State | None, Verb], Rule] = {
    (None, Verb.ENQUEUE): Rule(to=State.AVAILABLE, by=frozenset({Actor.CLIENT, Actor.OPERATOR})),
    (None, Verb.BACKFILL): Rule(to=State.AVAILABLE, by=frozenset({Actor.CLIENT, Actor.OPERATOR})),
    (None, Verb.RERUN): Rule(to=State.AVAILABLE, by=_OPERATOR),
    (State.SCHEDULED, Verb.STAGE): Rule(to=State.AVAILABLE, by=_UPKEEP),
    (State.RETRYABLE, Verb.STAGE): Rule(to=State.AVAILABLE, by=_UPKEEP),
    (State.SCHEDULED, Verb.EXPEDITE): Rule(to=State.AVAILABLE, by=_OPERATOR),
    (State.RETRYABLE, Verb.EXPEDITE): Rule(to=State.AVAILABLE, by=_OPERATOR),
    (State.AVAILABLE, Verb.CLAIM): Rule(to=State.RUNNING, by=_WORKER),
    **{
        (State.RUNNING, verb): Rule(to=State.RUNNING, by=_WORKER)
        for verb in (Verb.HEARTBEAT, Verb.PROGRESS, Verb.CHECKPOINT, Verb.EVENT)
    },
    (State.RUNNING, Verb.COMPLETE): Rule(to=State.COMPLETED, by=_WORKER),
    (State.RUNNING, Verb.SNOOZE): _running(State.SCHEDULED),
    (State.RUNNING, Verb.RELEASE): _running(State.AVAILABLE),
    (State.RUNNING, Verb.DISCARD): _running(State.DISCARDED),
    (State.RUNNING, Verb.FAIL): _running(State.RETRYABLE, at_limit=State.QUARANTINED),
    (State.RUNNING, Verb.QUARANTINE): _running(State.QUARANTINED),
    (State.RUNNING, Verb.REAP): _running(State.RETRYABLE, at_limit=State.QUARANTINED, by=_UPKEEP),
    (State.RUNNING, Verb.CANCEL): Rule(to=State.RUNNING, by=_CLIENTS),
    **{(state, Verb.CANCEL): Rule(to=State.CANCELLED, by=_CLIENTS) for state in sorted(WAITING)},
    **{
        (state, Verb.QUARANTINE): Rule(to=State.QUARANTINED, by=frozenset({Actor.MAINTAINER, Actor.OPERATOR}))
        for state in sorted(WAITING)
    },
    **{(state, Verb.REPRIORITISE): Rule(to=state, by=_OPERATOR) for state in sorted(WAITING)},
    (State.SCHEDULED, Verb.RESCHEDULE): Rule(to=State.SCHEDULED, by=_OPERATOR),
    # Staged again when it is due: a claim never looks at the time.
    (State.AVAILABLE, Verb.RESCHEDULE): Rule(to=State.SCHEDULED, by=_OPERATOR),
    (State.RETRYABLE, Verb.RESCHEDULE): Rule(to=State.RETRYABLE, by=_OPERATOR),
    (State.QUARANTINED, Verb.CANCEL): Rule(to=State.CANCELLED, by=_OPERATOR),
    (State.QUARANTINED, Verb.REINSTATE): Rule(to=State.AVAILABLE, by=_OPERATOR),
    (State.QUARANTINED, Verb.DISCARD): Rule(to=State.DISCARDED, by=frozenset({Actor.OPERATOR, Actor.MAINTAINER})),
}


def legal_verbs(state: State) -> frozenset[Verb]:
    """The verbs that `TRANSITIONS` allows on a job in this state."""
    return frozenset(verb for before, verb in TRANSITIONS if before is state)
