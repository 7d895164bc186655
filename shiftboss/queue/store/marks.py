"""What happened to the whole, to be seen beside its figures: deploys, lost workers, pauses, limits.

Deploys and losses are noted by the maintainer, once each; rolling restarts are told by their own rows; pauses and
limits stand in the audit.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shiftboss.queue.authority import Authority, queues_of, require_system
from shiftboss.queue.store.statement import Statement, Verb

ACTS = frozenset({"pause", "resume", "limit"})
"""Acts on a queue, which are among the marks."""

MARKS = 100
"""So many are read at once, the newest."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened: `deploy` of a version, `worker_lost` or `roll` with its id, or a word of an act on queues."""

    kind: str
    subject: str
    at: datetime
    facts: Mapping[str, Any]


_NOTE = Statement("mark", lambda kind: str(kind))
_UNMARK = Statement("unmark", lambda *_: None)
_MARKS = Statement("marks", lambda kind, subject, at, facts: Mark(kind, subject, at, json.loads(facts)))


def note(*, authority: Authority) -> Verb[int]:
    """Keep what has happened since, and drop what is older than any chart; answers how much is new."""
    require_system(authority, "mark")
    rows: list[str] = yield _NOTE.call()
    yield _UNMARK.call()
    return len(rows)


def marks(*, authority: Authority, back_seconds: float, limit: int = MARKS) -> Verb[list[Mark]]:
    """What happened within `back_seconds`, the newest first. For staff only.

    Within a scope: of pauses, resumptions and limits those of its queues.
    """
    queues = queues_of(authority, "marks")
    rows: list[Mark] = yield _MARKS.call(back_seconds=back_seconds, limit=limit)
    return [row for row in rows if queues is None or row.kind not in ACTS or row.subject in queues]
