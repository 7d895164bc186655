"""Workers, as they go out."""

from datetime import datetime

from pydantic import Field

from shiftboss.console.api.schemas.strict import Id, Json, Shown


class Lent(Shown):
    """How many of a resource a worker has made, has lent out, and how many jobs wait for one."""

    made: int
    lent: int
    waiting: int


class Worker(Shown):
    """A worker that lives, or ended within the last hour."""

    id: Id
    pool: str
    host: str
    pid: int
    state: str
    alive: bool
    slots: int
    in_use: int
    heartbeat_age_seconds: float
    heartbeat_seconds: float
    lease_seconds: float
    lag_ms: int
    worst_lag_ms: int
    losses: int = Field(description="runs lost to a death of its own processes")
    memory_kb: int | None = Field(description="what its processes hold together; null where nobody can tell")
    cpu_ms: int | None = Field(description="processor time that they have used so far")
    code_version: str | None
    started_at: datetime
    ordered: str | None = Field(description="`drain` or `stop`, where a person has ordered that")
    ordered_by: str | None
    ordered_at: datetime | None
    tainted: int = Field(description="executors that only wait for their end")
    dropped: int = Field(description="observations that reached no observer")
    queues: list[str]
    resources: dict[str, Lent] = Field(description="what its jobs are lent, by name")


class Workers(Shown):
    """The workers, the most recently seen first."""

    workers: list[Worker]


class Run(Shown):
    """A job that runs in a worker."""

    id: Id
    queue: str
    task: str
    fence: int
    running_seconds: float
    lease_seconds_left: float
    progress: Json = Field(description="what its handler has told last")
    cancel_requested: bool


class WorkerDetail(Worker):
    """A worker and what runs in it."""

    runs: list[Run] = Field(description="the longest-running first; at most 200")
    running: int = Field(description="how many run in it by the record")
    acts: list[str] = Field(description="what the caller may order of it now")
