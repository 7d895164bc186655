"""What a dead executor's jobs come to. Innocents are never counted against."""

import json

from shiftboss.queue.outcomes import Lost, Outcome, Released
from shiftboss.queue.runtime.executor_process import Death
from shiftboss.queue.runtime.holdings import Held


def settle(death: Death, *, draining: bool) -> list[tuple[Held, Outcome]]:
    """The outcome of each job that a dead executor had in hand.

    Not begun: released. Begun, and killed by this keeper at the end of a drain: released. Otherwise lost; the
    death counts only where one job alone had begun, and several are suspects that next run alone (`Lost`). A job
    that had ended but whose outcome had not been heard is one of those that had begun. A death past the deadline
    was the sentinel's doing and is nobody's fault.
    """
    begun = (*death.started, *death.ended)
    released: list[tuple[Held, Outcome]] = [(held, Released("not_started")) for held in death.not_started]
    if draining:
        return [*released, *((held, Released("shutdown")) for held in begun)]
    blamed = not death.past_deadline
    was = "was " if death.exit_code < 0 else ""
    lost = Lost(
        alone=blamed and len(begun) == 1,
        suspect=blamed,
        code="executor_died",
        message=f"the executor {was}{death.cause}",
        evidence=json.dumps(death.evidence),
    )
    return [*released, *((held, lost) for held in begun)]
