"""What waits: how long the jobs of queues have waited, and up to which job a look at them goes."""

from collections.abc import Sequence
from typing import Any

from shiftboss.queue.authority import Authority, queues_of, require_staff
from shiftboss.queue.buckets import merged
from shiftboss.queue.store.statement import Statement, Verb

SPAN_SECONDS = 600
"""Spans of ten minutes: a page reads six of a queue."""


def _row(queue: str, buckets: list[int], jobs: list[int]) -> tuple[str, dict[int, int]]:
    return queue, dict(zip(buckets, jobs, strict=True))


_WAITS = Statement("waits", _row)
_NEWEST = Statement("newest", lambda job_id: int(job_id))


def waits(
    queues: Sequence[str], *, authority: Authority, back_seconds: float = 3600.0
) -> Verb[dict[str, dict[int, int]]]:
    """For each of these queues, how many jobs waited how long, in the buckets of `shiftboss.queue.buckets`.

    Of attempts that ended within `back_seconds`, as far as that has been written; a queue without any is left out,
    and so is one that is not seen as a whole. For staff only.
    """
    within = queues_of(authority, "waits")
    queues = [name for name in queues if within is None or name in within]
    rows: list[tuple[str, dict[int, int]]] = yield _WAITS.call(
        queues=list(queues), seconds=SPAN_SECONDS, back_seconds=back_seconds
    )
    found: dict[str, Any] = {}
    for queue, histogram in rows:
        found[queue] = merged([found.get(queue, {}), histogram])
    return found


def newest(*, authority: Authority) -> Verb[int]:
    """The highest id of a live job, or 0: who acts up to it leaves alone what comes later. For staff only."""
    require_staff(authority, "newest")
    [job_id] = yield _NEWEST.call()
    return int(job_id)
