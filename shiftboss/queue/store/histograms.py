"""What ended when, and how long it waited and ran: histograms of minutes, of ten minutes and of hours.

The maintainer writes them from the history; whatever is written again comes out the same, so it may be done twice,
and after an absence it goes on where it was. Lengths are counted in the buckets of `shiftboss.queue.buckets`.
Minutes are kept for four hours, ten minutes for two days, hours for forty days.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from psycopg import errors as pg

from shiftboss.queue.authority import Authority, queues_of, require_system
from shiftboss.queue.buckets import merged
from shiftboss.queue.errors import OutOfScope
from shiftboss.queue.store.statement import Atomic, Statement, Verb

PART = "histograms"
"""The row of `shiftboss_sample` that says when they were last written, and is held meanwhile."""

MINUTE, TEN_MINUTES, HOUR = 60, 600, 3600

EVERY_SECONDS = 60.0
"""How often they are written."""

REST = 25.0
"""For each second that writing took, it is left alone for so many."""

ENQUEUED_BUDGET = 50_000
"""So many of the newest jobs of each table are looked at for those that came."""

DAYS = 7
"""How far back an absence is made up for."""

PATIENCE_MILLISECONDS = 100
"""How long the indexes of the history are waited for; an autovacuum that has them is not disturbed."""


@dataclass(frozen=True, slots=True)
class Span:
    """What ended within a span of time that begins at `at`.

    `completed`, `cancelled` and `discarded` are jobs, `failed` and `lost` attempts; `enqueued` are jobs that came,
    which are not counted for a task. `waits` and `runs`: for each bucket the jobs, or attempts, in it.
    """

    at: datetime
    completed: int
    cancelled: int
    discarded: int
    failed: int
    lost: int
    enqueued: int
    waits: Mapping[int, int]
    runs: Mapping[int, int]


def _span(at: datetime, *figures: Any) -> Span:
    completed, cancelled, discarded, failed, lost, enqueued, waits, waiting, runs, running = figures
    return Span(
        at=at,
        completed=completed,
        cancelled=cancelled,
        discarded=discarded,
        failed=failed,
        lost=lost,
        enqueued=enqueued,
        waits=dict(zip(waits, waiting, strict=True)),
        runs=dict(zip(runs, running, strict=True)),
    )


_SUMMARIZE = Statement("summarize", lambda *_: None)
_PATIENCE = Statement("lock_timeout", lambda *_: None)
_BEGIN_PART = Statement("sample_begin", lambda *_: None)
_BEGIN = Statement("histogram_begin", lambda since, until, more: (since, until, bool(more)))
_MINUTES = Statement("histogram_minutes", lambda *_: None)
_ENQUEUED = Statement("histogram_enqueued", lambda *_: None)
_LONGER = Statement("histogram_longer", lambda *_: None)
_DROP = Statement("histogram_drop", lambda *_: None)
_NOTE = Statement("sample_note", lambda *_: None)
_HISTOGRAM = Statement("histogram", _span)


def write(*, authority: Authority) -> Verb[bool]:
    """Write the minutes that have passed, at most an hour of them, and the longer spans that they belong to.

    The last ten minutes are written again. False where it is not yet time, or somebody is at it; it may then not
    be known whether there is more. True where more is left: this was a batch of a long absence.
    """
    require_system(authority, "write histograms")
    yield _BEGIN_PART.call(part=PART)
    more: bool = yield Atomic(_write())
    return more


def _write() -> Verb[bool]:
    batches = yield _BEGIN.call(part=PART, every_seconds=EVERY_SECONDS, rest=REST, days=DAYS)
    for since, until, more in batches:
        yield _MINUTES.call(since=since, until=until)
        yield _ENQUEUED.call(since=since, until=until, budget=ENQUEUED_BUDGET)
        yield _LONGER.call(seconds=TEN_MINUTES, finer=MINUTE, since=since, until=until)
        yield _LONGER.call(seconds=HOUR, finer=TEN_MINUTES, since=since, until=until)
        yield _DROP.call(until=until)
        yield _NOTE.call(part=PART, seen=json.dumps({"until": until.isoformat(), "more": more}))
        return bool(more)
    return False


def summarize(*, authority: Authority) -> Verb[None]:
    """Let the indexes by time know the newest pages of the history, where nobody else has them in hand."""
    require_system(authority, "summarize")
    try:
        yield Atomic(_summarize())
    except (pg.LockNotAvailable, pg.InsufficientPrivilege):
        pass  # it saves time, and changes no answer


def _summarize() -> Verb[None]:
    yield _PATIENCE.call(milliseconds=PATIENCE_MILLISECONDS)
    yield _SUMMARIZE.call()


def histogram(
    *, authority: Authority, seconds: int, back_seconds: float, queue: str = "", task: str = ""
) -> Verb[list[Span]]:
    """The spans of this length that began within `back_seconds`, the oldest first; of all, a queue, or a task.

    A span that is missing among those of all was not written: no maintainer ran. Within a scope all are its queues
    together, and a task is not told. For staff only. Raises NotAllowed.
    """
    within = queues_of(authority, "histogram")
    if within is None:
        queues = [queue]
    elif task or (queue and queue not in within):
        raise OutOfScope(f"the histogram of {task or queue!r}", str(authority))
    else:
        queues = [queue] if queue else sorted(within)
    rows: list[Span] = yield _HISTOGRAM.call(seconds=seconds, back_seconds=back_seconds, queues=queues, task=task)
    return [_together(list(spans)) for _at, spans in groupby(reversed(rows), key=lambda row: row.at)]


def _together(spans: list[Span]) -> Span:
    """Spans of several queues that begin at the same time, as one."""
    if len(spans) == 1:
        return spans[0]
    return Span(
        at=spans[0].at,
        completed=sum(one.completed for one in spans),
        cancelled=sum(one.cancelled for one in spans),
        discarded=sum(one.discarded for one in spans),
        failed=sum(one.failed for one in spans),
        lost=sum(one.lost for one in spans),
        enqueued=sum(one.enqueued for one in spans),
        waits=merged([one.waits for one in spans]),
        runs=merged([one.runs for one in spans]),
    )
