"""What comes in: acts with their fields, and what is looked for."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import AwareDatetime, BeforeValidator, Field, StrictInt, StrictStr

from shiftboss.acts import MAX_REASON_LENGTH, MOST, LimitWord, Revision
from shiftboss.console.api.schemas.strict import Given, Id
from shiftboss.console.roster import STATES
from shiftboss.queue.store.backfill import PAGE as BACKFILLS
from shiftboss.queue.store.queues import MAX_CONCURRENCY
from shiftboss.queue.store.read import PAGE

MAX_LIMIT = 200


def _iso(value: Any) -> datetime:
    # Numbers would be taken for seconds since 1970, and so would "2026".
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("a time is written as in 2026-01-31T12:00:00Z") from None


class Reasoned(Given):
    """An act, and why it is done; some acts are not done without."""

    reason: StrictStr = Field("", description=f"kept in the audit; at most {MAX_REASON_LENGTH} characters")


class OnMany(Reasoned):
    """An act on chosen jobs: one transaction, and one entry of the audit."""

    jobs: list[Id] = Field(description=f"ids, up to {MOST}")


class Rerun(Reasoned):
    """By which revision of its task's configuration."""

    revision: Revision = Field(Revision.SAME, description="that of the job, or what the task's code says now")


class Arguments(Given):
    """The arguments of a call."""

    args: list[Any]
    kwargs: dict[str, Any]


class Edit(Reasoned):
    """Other arguments for a new job of the same task."""

    arguments: Arguments = Field(description="as `POST jobs/{job_id}/reveal` tells those of the job")


class Reprioritise(Reasoned):
    """Another priority."""

    priority: StrictInt = Field(description="from -100 to 100, higher first", examples=[10])


class Reschedule(Reasoned):
    """Another time."""

    due_at: Annotated[AwareDatetime, BeforeValidator(_iso)] = Field(
        description="ISO 8601 with an offset", examples=["2026-01-31T12:00:00Z"]
    )


class OnQueue(Reasoned):
    """An act on a queue; its name may hold any printable character, so it is not a part of the address."""

    queue: StrictStr


class OnLimit(OnQueue):
    """How many jobs of a queue run at once."""

    limit: StrictInt | LimitWord = Field(
        description=f"from 1 to {MAX_CONCURRENCY}; `sequential`: one at a time in strict order, a retry holds the "
        "line; `none`; `settings`: what the settings say, which nobody's word stands against any more",
        examples=[3],
    )


class WhichJobs(Schema):
    """What a list of jobs is narrowed to."""

    state: str | None = Field(None, description="one state, or several with commas between them; else all")
    queue: str | None = None
    q: str | None = Field(
        None,
        description="a query in the language of the console's list of jobs",
        examples=["error:timeout run>5m"],
    )
    before: str | None = Field(None, description="only jobs with a smaller id: the next page")
    after: str | None = Field(None, description="only jobs with a greater id: the page before")
    limit: int = Field(
        PAGE,
        ge=1,
        le=MAX_LIMIT,
        description="a list looks at so many jobs and no more: where few of them are wanted, a page may hold "
        "fewer than `limit`, none even, and go on from `older` or `newer` all the same",
    )


class WhichWorkers(Schema):
    """What a list of workers is narrowed to."""

    pool: str = ""
    host: str = ""
    queue: str = Field("", description="only those that serve it")
    state: str = Field("", description=f"one of {', '.join(STATES)}; `late`: it has missed heartbeats, and lives")


class WhichEntries(Schema):
    """What a list of the audit is narrowed to."""

    job_id: str | None = Field(None, description="only acts on this job")
    queue: str | None = Field(None, description="only acts on this queue")
    act: str | None = Field(None, description="only this act, as `cancel`")
    via: str | None = Field(None, description="only acts that came by `console`, `api`, `cli` or `code`")
    by: str | None = Field(None, description="only those of people whose name holds this, in any case")
    before: str | None = Field(None, description="only entries with a smaller id: the next page")
    limit: int = Field(PAGE, ge=1, le=MAX_LIMIT)


class Scale(Reasoned):
    """How many workers of a pool run on a host."""

    count: StrictInt = Field(description="at most as many as the settings of the host allow", examples=[3])


class RollPool(Reasoned):
    """Which workers are restarted one after the other."""

    pool: StrictStr | None = Field(None, description="of this pool; null: of all")
    code_wanted: StrictStr | None = Field(None, description="stop at a worker that comes up with another version")


class WhichBackfills(Schema):
    """Which page of the backfills."""

    before: str | None = Field(None, description="only backfills with a smaller id: the next page")
    limit: int = Field(BACKFILLS, ge=1, le=MAX_LIMIT)
