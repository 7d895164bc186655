"""What a dead executor's jobs come to. Innocents are never counted against."""

import json
from collections.abc import Callable

from shiftboss.queue.outcomes import Failed, Lost, Outcome, Released
from shiftboss.queue.runtime.context import Cause
from shiftboss.queue.runtime.executor_process import Death
from shiftboss.queue.runtime.holdings import Held


def settle(
    death: Death, *, draining: bool, now: float, backoff_seconds: Callable[[Held], float]
) -> list[tuple[Held, Outcome]]:
    """The outcome of each job that a dead executor had in hand.

    Not begun: released. Begun, and killed by this keeper: what its cause says, see `_ended`; without a cause
    released at the end of a drain, else lost through no fault of its own. Otherwise lost; the death counts only
    where one job alone had begun, and several are suspects that next run alone (`Lost`). A job that had ended but
    whose outcome had not been heard is one of those that had begun. A death past the deadline was the sentinel's
    doing and is nobody's fault.
    """
    begun = (*death.started, *death.ended)
    released: list[tuple[Held, Outcome]] = [(held, Released("not_started")) for held in death.not_started]
    ours = draining or death.put_down
    blamed = not death.past_deadline and not ours
    was = "was " if death.exit_code < 0 else ""
    lost = Lost(
        alone=blamed and len(begun) == 1,
        suspect=blamed,
        code="executor_died",
        message=f"the executor {was}{death.cause}",
        evidence=json.dumps(death.evidence),
    )
    found: list[tuple[Held, Outcome]] = []
    for held in begun:
        if ours and held.cause is not None:
            found.append((held, _ended(held, held.cause, now, backoff_seconds)))
        else:
            found.append((held, Released("shutdown") if draining else lost))
    return [*released, *found]


def _ended(held: Held, cause: Cause, now: float, backoff_seconds: Callable[[Held], float]) -> Outcome:
    """A run that was asked to end, did not, and was ended with its process."""
    if cause is not Cause.TIMEOUT:
        return Released(cause.value)  # whoever asked for its end has it: the record cancels it
    return Failed(
        "timeout",
        "TimeoutError",
        f"it ran longer than {held.timeout_seconds or 0:g} s and did not end when asked to: its process was ended",
        "timeout:killed",
        "",
        backoff_seconds(held),
        round(max(0.0, now - held.began_at) * 1000) if held.began_at else 0,
    )
