"""A job of the memory record, as a value: a change makes a new one."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from shiftboss.queue.contract import Claimed, Lease
from shiftboss.queue.jobs import JobDetail, JobRow, NewJob
from shiftboss.queue.states import State

Place = tuple[int, datetime, int]
"""Where an available job stands in its queue; the lowest is claimed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, live or finished. The fields are the columns of the tables."""

    id: int
    queue: str
    task: str
    args: str
    state: State
    priority: int
    due_at: datetime
    enqueued_at: datetime
    failure_limit: int
    loss_limit: int
    deadline: datetime | None = None
    owner: str | None = None
    tenant: str | None = None
    key: str | None = None
    follow_up: bool = False
    watchers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    meta: str = "{}"
    rerun_of: int | None = None
    batch_id: int | None = None
    revision_id: int | None = None
    failures: int = 0
    losses: int = 0
    suspect: bool = False
    fence: int = 0
    worker_id: int | None = None
    lease_expires_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    cancel_cause: str | None = None
    cancel_requested_at: datetime | None = None
    quarantine_reason: str | None = None
    quarantined_at: datetime | None = None
    progress: str | None = None
    checkpoint: str | None = None
    error_code: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    error_fingerprint: str | None = None
    result: str | None = None
    run_ms: int | None = None

    @classmethod
    def new(cls, job: NewJob, **rest: Any) -> "Job":
        """The job that was asked for, with what the record adds."""
        taken = {f.name for f in fields(NewJob)} & {f.name for f in fields(cls)} - set(rest)
        return cls(**{name: getattr(job, name) for name in taken}, **rest)

    @property
    def place(self) -> Place:
        """Its place among the available jobs of its queue."""
        return -self.priority, self.due_at, self.id

    def held(self, lease: Lease, worker_id: int, now: datetime) -> bool:
        """The guard of every write by a worker: fence, worker, unexpired."""
        mine = self.fence == lease.fence and self.worker_id == worker_id
        return mine and self.lease_expires_at is not None and self.lease_expires_at > now

    def visible(self, owner: str | None) -> bool:
        """Whether this owner (None: System) sees it."""
        return owner is None or owner == self.owner or owner in self.watchers

    def claimed(self) -> Claimed:
        """The job as the worker gets it that has just leased it."""
        return Claimed(**{name: getattr(self, name) for name in Claimed._fields})

    def row(self) -> JobRow:
        """The job as lists show it."""
        return JobRow(**{f.name: getattr(self, f.name) for f in fields(JobRow)})

    def detail(self, *, now: datetime, key_holder: int | None, revision: str | None) -> JobDetail:
        """The job with all that the record knows of it."""
        told: dict[str, Any] = {f.name: getattr(self, f.name, None) for f in fields(JobDetail)}
        left = None if self.lease_expires_at is None else (self.lease_expires_at - now).total_seconds()
        lists = {"tags": list(self.tags), "watchers": list(self.watchers)}
        rest = {"lease_seconds_left": left, "key_holder": key_holder, "revision": revision}
        return JobDetail(**{**told, **lists, **rest})
