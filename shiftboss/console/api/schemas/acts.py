"""What comes of acts, what the audit keeps of them, and what is wrong."""

from datetime import datetime
from uuid import UUID

from pydantic import ConfigDict, Field

from shiftboss.console.api.schemas.strict import Id, Json, Shown


class Acted(Shown):
    """What an act did."""

    act: str
    job_id: Id | None = None
    queue: str | None = None
    before: str | None = Field(
        None,
        description="the job's state, or `running` or `paused` of a queue or backfill; of a limit the number, "
        "`sequential` or `unlimited`; `running`, `draining` or `stopping` of a worker",
    )
    after: str | None = Field(None, description="a running job whose end was asked for is still `running`")
    new_job_id: Id | None = Field(None, description="of a rerun or an edit")
    backfill_id: Id | None = None
    worker_id: Id | None = None
    command_id: Id | None = Field(
        None, description="of what is asked of a host: `GET commands/{command_id}` tells what becomes of it"
    )
    roll_id: Id | None = Field(None, description="of a rolling restart: `GET rolls/{roll_id}` tells how far it is")
    items: int | None = Field(
        None,
        description="how many of a backfill were cancelled or asked to end, or are to run again; how many workers "
        "a rolling restart is of",
    )
    repeated: bool = Field(False, description="the same Idempotency-Key had done it before; it was not done again")


class Left(Shown):
    """A job that was left as it is."""

    job_id: Id
    why: str = Field(
        description="`missing`: there is none; `state`: its state does not allow it; `busy`: somebody else had it "
        "in hand; `key_held`: the job `holder` has its key"
    )
    state: str | None
    holder: Id | None


class ActedOnMany(Shown):
    """What an act did to chosen jobs, each of which is told once."""

    act: str
    operation: UUID | None = Field(description="under which the audit keeps it; null where nothing was changed")
    changed: list[Id]
    left: list[Left]
    before: dict[str, int] = Field(description="how many of the changed ones were in which state")
    after: dict[str, int] = Field(description="how many of them are now")
    new_jobs: dict[str, Id] = Field(description="of a rerun, the new job of each")
    repeated: bool = Field(description="the same Idempotency-Key had done it before; it was not done again")


class Revealed(Acted):
    """What was revealed."""

    args: Json = Field(description="the job's arguments, as they are stored")


class Problem(Shown):
    """What went wrong. `code` is stable; more facts may stand beside it."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str


class Entry(Shown):
    """An act as the audit keeps it."""

    id: Id
    at: datetime
    actor_kind: str
    actor_id: str | None
    actor_name: str
    via: str
    act: str
    job_id: Id | None
    queue: str | None
    reason: str
    jobs: int
    operation: UUID = Field(description="the batches of one bulk act have the same")
    request_id: str | None
    asked: Json
    before: Json
    after: Json


class Audit(Shown):
    """A page of the audit, the newest first."""

    entries: list[Entry]
    older: Id | None = Field(description="give it as `before` for the next page; null on the last")
