"""Jobs, as they go out."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from shiftboss.console.api.schemas.strict import Id, Json, Shown


class Job(Shown):
    """A job as lists show it: no arguments, no result."""

    id: Id
    queue: str
    task: str
    state: str
    priority: int
    due_at: datetime
    enqueued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    quarantined_at: datetime | None
    owner: str | None
    failures: int
    losses: int
    failure_limit: int
    loss_limit: int
    fence: int
    worker_id: Id | None
    quarantine_reason: str | None
    error_type: str | None
    error_message: str | None
    run_ms: int | None
    kind: str = Field(description="`job`, or `rerun` of another by a person, or one of a `backfill`")
    rerun_of: Id | None
    batch_id: Id | None = Field(description="the backfill that it is of")


class Jobs(Shown):
    """A page of jobs, the newest first."""

    jobs: list[Job]
    older: Id | None = Field(description="give it as `before` for the next page; null on the last")
    newer: Id | None = Field(description="give it as `after` for the page before; null on the first")


class Withheld(Shown):
    """What the caller may not see."""

    permission: str = Field(description="which it would need", examples=["shiftboss.view_traceback"])
    parts: list[str] = Field(
        description="`traceback`, `output` or `not_storable` of the evidence, or the whole `evidence`"
    )


class Attempt(Shown):
    """An attempt that did not succeed."""

    job_id: Id
    fence: int
    worker_id: Id | None
    outcome: str
    started_at: datetime | None
    ended_at: datetime
    run_ms: int | None
    error_code: str | None
    error_type: str | None
    error_message: str | None
    error_fingerprint: str | None
    traceback: str | None
    evidence: Annotated[
        Any,
        Field(
            description="JSON, as it is stored. What is known of: `host` and `pid`; `exit_code` or `signal`, and "
            "`cause`, of a process that died; `cpu_ms`; `memory_kb`, the peak, with `memory_shared` where it is "
            "that of all jobs of the process; `args_sha256`; `checkpoint`, or `checkpoint_characters` of a long "
            "one; `output`, the last that the handler wrote. More may come"
        ),
    ]
    withheld: Withheld | None = Field(description="null where all that is kept of it is shown")
    retry_kind: str | None = Field(
        description="`infrastructure`: a retry after its worker was lost; `failure`: after a failure; else null"
    )


class Event(Shown):
    """A stored event of a job."""

    job_id: Id
    seq: int
    at: datetime
    kind: str
    worker_id: Id | None
    fence: int | None
    data: Json


class JobDetail(Job):
    """A job with all that the record knows of it."""

    deadline: datetime | None
    tenant: str | None
    key: str | None
    tags: list[str]
    meta: Json
    args: None = Field(
        description="arguments are not told here: to reveal them is an act, `POST jobs/{job_id}/reveal`"
    )
    args_sha256: str = Field(description="the digest by which they can be told from others")
    result: Json
    suspect: bool
    lease_seconds_left: float | None
    cancel_cause: str | None
    error_code: str | None
    error_fingerprint: str | None
    retry_kind: str | None = Field(
        description="what kind of retry the attempt is that it waits for, that runs, or that has completed it"
    )
    code_version: str | None
    cancel_requested_at: datetime | None
    watchers: list[str]
    follow_up: bool
    key_holder: Id | None
    revision_id: Id | None = Field(description="of the task's configuration by which it runs")
    revision: Json = Field(
        description="that configuration: the task, and the options that are not at their defaults"
    )
    progress: Json = Field(description="what its handler has told last, such as value, total and message")
    checkpoint: Json = Field(description="what its handler has saved last, for the next attempt")
    acts: list[str] = Field(description="what the job's state allows; each wants its permission too")
    attempts: list[Attempt] = Field(description="those that did not succeed, the oldest first; at most 1000")
    events: list[Event] = Field(description="in order; at most 1000")
