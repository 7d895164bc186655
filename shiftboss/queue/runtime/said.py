"""What is said of the end of a run, by an executor or a slot of this process, as a value."""

from collections.abc import Sequence
from typing import Any

from shiftboss.queue.outcomes import Discarded, Done, Failed, Outcome, Quarantined, Released, Snoozed
from shiftboss.queue.states import QuarantineReason

LONGEST_RUN_MS = 2**31 - 1


def outcome_of(kind: str, facts: Sequence[Any]) -> Outcome:
    """The outcome. `evidence` stands last wherever the run had begun."""
    match kind, facts:
        case "done", [result, seconds]:
            return Done(result, milliseconds(seconds))
        case "failed", [code, type_, message, fingerprint, trace, wait, seconds, evidence]:
            return Failed(code, type_, message, fingerprint, trace, wait, milliseconds(seconds), evidence)
        case "released", [code, *evidence]:
            return Released(code, *evidence)
        case "snoozed", [wait, seconds, evidence]:
            return Snoozed(wait, milliseconds(seconds), evidence)
        case "discarded", [message, seconds, evidence]:
            return Discarded(message, milliseconds(seconds), evidence)
        case "quarantined", [reason, message, evidence]:
            return Quarantined(QuarantineReason(reason), message, evidence)
    raise ValueError(f"no outcome of a run: {kind!r}")


def milliseconds(seconds: float) -> int:
    """A duration as the record holds it."""
    return min(round(seconds * 1000), LONGEST_RUN_MS)
