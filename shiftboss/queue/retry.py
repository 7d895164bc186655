"""When to try again: plain functions of failures, settings and chance."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from shiftboss.queue.errors import InvalidJob, shown

LONGEST_SECONDS = 365 * 24 * 3600.0
"""No backoff is longer, whatever a task asks for: PostgreSQL's make_interval overflows silently."""

Backoff = float | Sequence[float] | Callable[[BaseException, int], float]
"""Seconds, seconds for each failure (the last one repeats), or a function of exception and failure number."""

_BACKOFF_IS = "backoff must be seconds, a list of seconds or a function of exception and failure number"


def check_backoff(backoff: Any) -> None:
    """Raise InvalidJob where `backoff` cannot be one, at declaration and not at the first failure."""
    if callable(backoff):
        return
    values = [backoff] if isinstance(backoff, int | float) else backoff
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidJob(f"{_BACKOFF_IS}, not {shown(backoff)}")
    if not values:
        raise InvalidJob("backoff must have at least one number of seconds; leave it out for the exponential one")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidJob(f"{_BACKOFF_IS}, not {shown(value)}")
        if not 0 <= value <= LONGEST_SECONDS:
            raise InvalidJob(f"backoff must be from 0 to {LONGEST_SECONDS:.0f} seconds, not {shown(value)}")


def exponential(failures: int, *, base_seconds: float, cap_seconds: float) -> float:
    """`base · 2^(failures-1)` up to the cap, with half of it left to chance.

    The jitter keeps failures of one moment from coming back in one moment ("equal jitter", M. Brooker,
    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    longest: float = min(cap_seconds, base_seconds * 2 ** min(max(failures, 1) - 1, 60))
    return longest * (0.5 + random.random() / 2)


def backoff_seconds(
    backoff: Backoff | None, error: BaseException, failures: int, *, base_seconds: float, cap_seconds: float
) -> float:
    """Seconds to wait after failure number `failures` (from 1). Never raises.

    A callable that raises or returns nonsense falls back to the exponential default.
    """
    default = exponential(failures, base_seconds=base_seconds, cap_seconds=cap_seconds)
    if backoff is None:
        return default
    try:
        if callable(backoff):
            seconds = float(backoff(error, failures))
        elif isinstance(backoff, Sequence):
            seconds = float(backoff[min(failures, len(backoff)) - 1])
        else:
            seconds = float(backoff)
    except (Exception, SystemExit):
        return default
    return min(max(seconds, 0.0), LONGEST_SECONDS) if not math.isnan(seconds) else default
