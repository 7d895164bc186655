"""Backfills, as they go out."""

from datetime import datetime

from pydantic import Field

from shiftboss.console.api.schemas.strict import Id, Shown


class Backfill(Shown):
    """One task over many items, and how far it is: each item is counted once."""

    id: Id
    name: str = Field(description="unique among the backfills of its owner")
    owner: str | None
    task: str
    queue: str
    priority: int
    concurrency: int = Field(description="at most so many of its jobs live at once, those in quarantine apart")
    created_at: datetime
    paused_at: datetime | None
    state: str = Field(description="`running`, `paused`, or `finished` where nothing waits and nothing is live")
    items: int
    waiting: int = Field(description="they get a job when there is room")
    live: int
    quarantined: int
    completed: int
    cancelled: int
    discarded: int


class Backfills(Shown):
    """A page of backfills, the newest first."""

    backfills: list[Backfill]
    older: Id | None = Field(description="give it as `before` for the next page; null on the last")
