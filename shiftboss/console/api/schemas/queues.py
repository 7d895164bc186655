"""Queues, and the whole, as they go out."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from shiftboss.console.api.schemas.strict import Shown
from shiftboss.console.api.schemas.workers import Worker


class Paused(Shown):
    """Since when, by whom and why a queue is paused."""

    paused_at: datetime
    paused_by: str
    reason: str


class Limit(Shown):
    """How many jobs of a queue run at once; both null and false where a person lifted what the settings say."""

    concurrency: int | None
    sequential: bool = Field(description="one at a time in strict order, a retry holds the line")
    set_by: str | None = Field(description="the person who set it; null: the settings")
    taken: int = Field(description="of its slots; of a sequential queue also by a job that waits for its next run")


class Queue(Shown):
    """A queue that has jobs or live workers, or is paused or limited."""

    queue: str
    states: dict[str, int] = Field(description="jobs by state; a state without any is left out")
    oldest_available_seconds: float | None
    paused: Paused | None
    limit: Limit | None
    live_workers: int


Ages = Annotated[
    dict[str, float],
    Field(
        description="how old what was seen is of `counts`, the live jobs, `finished`, `waits` and `leases`, the "
        "available and running ones, `quarantine`, `workers`, `rates` and `minutes`; a part that nobody has ever "
        "looked at is missing"
    ),
]
"""The maintainer looks at the whole, each part at its own pace, and all who ask share what it saw."""


Capped = Annotated[bool, Field(description="a count stops at a limit: there are at least that many")]


class Queues(Shown):
    """The queues by name."""

    queues: list[Queue]
    capped: Capped
    ages_seconds: Ages


class Status(Shown):
    """How the whole stands."""

    states: dict[str, int] = Field(description="jobs by state over all queues, every state")
    capped: Capped
    ages_seconds: Ages
    queues: list[Queue]
    workers: list[Worker]
    oldest_available_seconds: float | None
    warnings: list[str] = Field(
        description="no maintainer looks at the record; queues that are paused, or where jobs wait that no live "
        "worker serves"
    )
