"""What a dead executor's jobs come to. Innocents are never counted against."""

import json
from collections.abc import Callable
from dataclasses import replace

from shiftboss.queue.outcomes import Failed, Lost, Outcome, Released
from shiftboss.queue.payload import args_digest
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
        evidence="{}",
    )
    found: list[tuple[Held, Outcome]] = []
    outcome: Released | Failed | Lost
    for held in begun:
        if ours and held.cause is not None:
            outcome = _ended(held, held.cause, now, backoff_seconds)
        else:
            outcome = Released("shutdown") if draining else lost
        found.append((held, replace(outcome, evidence=_evidence(held, death))))
    return [*released, *found]


def _evidence(held: Held, death: Death) -> str:
    told = {**death.evidence, "args_sha256": args_digest(held.job.args)}
    return json.dumps({**told, **output_of(held, death.output)}, ensure_ascii=False)


def output_of(held: Held, output: str) -> dict[str, str]:
    """What a run has written, for its evidence. Of one that may have been given secrets nothing is kept here."""
    may_be_kept = output and not (held.config and held.config.secrets)
    return {"output": output} if may_be_kept else {}


def _ended(held: Held, cause: Cause, now: float, backoff_seconds: Callable[[Held], float]) -> Released | Failed:
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
