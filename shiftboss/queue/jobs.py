"""Jobs as values: what a client asks for, what an act answers, and how the record tells of them.

Alike for every store, in PostgreSQL and in memory.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from shiftboss import conf
from shiftboss.queue.authority import Owner
from shiftboss.queue.errors import InvalidJob
from shiftboss.queue.keys import Scope, scoped_key
from shiftboss.queue.revision import TaskConfig
from shiftboss.queue.states import State, Verb, legal_verbs

MAX_TASK_LENGTH = 500
MAX_TAGS = 20
MAX_TAG_LENGTH = 100
MAX_WATCHERS = 100
MAX_TENANT_LENGTH = 200


class OnConflict(StrEnum):
    """What to do where a live job holds the key: answer with that one, take its place, or refuse."""

    EXISTING = "existing"
    REPLACE = "replace"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be: `args` and `meta` are JSON texts, times are aware or None.

    `due_at` None: at once. `deadline`: when a job that still waits is cancelled. `key`: at most one live job has
    it, among those of the same authority or (scope) all; `on_conflict` says what happens where it is held, and
    with `follow_up` a job may wait for the end of the one that runs. `revision`: the configuration by which it
    runs. Raises InvalidJob where the record could not hold it.
    """

    queue: str
    task: str
    args: str
    failure_limit: int
    loss_limit: int
    priority: int = 0
    due_at: datetime | None = None
    meta: str = "{}"
    deadline: datetime | None = None
    tenant: str | None = None
    watchers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    key: str | None = None
    key_scope: Scope = Scope.OWNER
    on_conflict: OnConflict = OnConflict.EXISTING
    follow_up: bool = False
    revision: TaskConfig | None = None

    def __post_init__(self) -> None:
        check_queue(self.queue)
        if not 1 <= len(self.task) <= MAX_TASK_LENGTH:
            raise InvalidJob(f"a task name has 1 to {MAX_TASK_LENGTH} characters, not {len(self.task)}")
        if not -100 <= self.priority <= 100:
            raise InvalidJob(f"priority is a whole number from -100 to 100, not {self.priority}")
        for name, limit in (("max_attempts", self.failure_limit), ("max_losses", self.loss_limit)):
            if not 1 <= limit < 2**31:
                raise InvalidJob(f"{name} is a whole number from 1 on, not {limit}")
        for name, time in (("run_after", self.due_at), ("deadline", self.deadline)):
            if time is not None and time.utcoffset() is None:
                raise InvalidJob(f"{name} must be an aware datetime: add a time zone")
        check_tags(self.tags)
        if self.tenant is not None:
            check_tenant(self.tenant)
        check_watchers(self.watchers)
        if self.key is not None:
            check_key(self.key)
        if self.follow_up and self.key is None:
            raise InvalidJob("follow_up needs a key: it waits for the job that runs under the same one")


def check_tags(tags: Sequence[str]) -> None:
    """Raise InvalidJob where a job cannot have these tags."""
    _check_words("tags", tags, MAX_TAGS, MAX_TAG_LENGTH)


def check_tenant(tenant: str) -> None:
    """Raise InvalidJob where no tenant can have this name."""
    _check_words("tenant", (tenant,), 1, MAX_TENANT_LENGTH)


def check_watchers(watchers: Sequence[str]) -> None:
    """Raise InvalidJob where these cannot be a job's watchers: each is the id of an owner."""
    if len(watchers) > MAX_WATCHERS:
        raise InvalidJob(f"a job has at most {MAX_WATCHERS} watchers, not {len(watchers)}")
    for watcher in watchers:
        try:
            Owner(watcher)
        except (TypeError, ValueError) as problem:
            raise InvalidJob(f"watchers: {problem}") from None


def check_key(key: str) -> None:
    """Raise InvalidJob where no job can have this key."""
    try:
        scoped_key(key, authority=Owner("anyone"))
    except ValueError as problem:
        raise InvalidJob(str(problem)) from None


def _check_words(name: str, words: Sequence[str], most: int, longest: int) -> None:
    if len(words) > most:
        raise InvalidJob(f"{name}: at most {most}, not {len(words)}")
    for word in words:
        if not isinstance(word, str) or not 1 <= len(word) <= longest or not word.isprintable():
            raise InvalidJob(f"{name}: each is 1 to {longest} printable characters, not {str(word)[:120]!r}")


def check_queue(name: str) -> None:
    """Raise InvalidJob where no queue can have this name."""
    try:
        conf.check_queue(name)
    except conf.ConfigError as error:
        raise InvalidJob(str(error)) from None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A job that the record now holds (once the transaction commits); `existing`: it held its key already."""

    id: int
    state: State
    enqueued_at: datetime
    existing: bool = False


class Why(StrEnum):
    """Why a verb did not change a job."""

    MISSING = "missing"
    STATE = "state"
    KEY_HELD = "key_held"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Changed:
    """A job that a verb has changed. A running job whose end was asked for is running before and after."""

    id: int
    before: State
    after: State


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A job that a verb left as it is: where it stands now, and who holds its key where that is the reason."""

    id: int
    why: Why
    state: State | None = None
    holder: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb did to the jobs that it was given, each of them once."""

    changed: tuple[Changed, ...] = ()
    unchanged: tuple[Unchanged, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How often a job may fail and be lost: by task, and for tasks that are not named."""

    failures: int
    losses: int
    by_task: Mapping[str, tuple[int, int]]

    def params(self) -> dict[str, Any]:
        """The parameters of the statements that use them."""
        by_task = json.dumps({task: list(limits) for task, limits in self.by_task.items()})
        return {"failure_limit": self.failures, "loss_limit": self.losses, "limits": by_task}


class Kind(StrEnum):
    """How a job came to be: enqueued, run again by a person as a new job, or of a backfill (its `batch_id`)."""

    JOB = "job"
    RERUN = "rerun"
    BACKFILL = "backfill"


def kind_of(*, rerun_of: int | None, batch_id: int | None) -> Kind:
    """How a job came to be; a rerun of a backfill's job is a rerun."""
    if rerun_of is not None:
        return Kind.RERUN
    return Kind.JOB if batch_id is None else Kind.BACKFILL


class RetryKind(StrEnum):
    """Why an attempt of the same job was made after another: its worker was lost, or its handler failed."""

    INFRASTRUCTURE = "infrastructure"
    FAILURE = "failure"


_RETRIES = {"lost": RetryKind.INFRASTRUCTURE, "failed": RetryKind.FAILURE}


def retry_kinds(attempts: "Sequence[AttemptRow]") -> list[RetryKind | None]:
    """Of each attempt in their order, and then of the one after them: what kind of retry it is, if it is one."""
    return [None, *(_RETRIES.get(attempt.outcome) for attempt in attempts)]


def present_retry_kind(job: "JobDetail", attempts: "Sequence[AttemptRow]") -> RetryKind | None:
    """What kind of retry the attempt is that the job waits for, that runs, or that has completed it."""
    ended = job.state in {State.QUARANTINED, State.DISCARDED, State.CANCELLED}
    return None if ended else retry_kinds(attempts)[-1]


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as lists show it: no arguments, no result. `batch_id`: of a backfill."""

    id: int
    queue: str
    task: str
    state: State
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
    worker_id: int | None
    quarantine_reason: str | None
    error_type: str | None
    error_message: str | None
    run_ms: int | None
    rerun_of: int | None = None
    batch_id: int | None = None

    @property
    def kind(self) -> Kind:
        """How it came to be."""
        return kind_of(rerun_of=self.rerun_of, batch_id=self.batch_id)


@dataclass(frozen=True, slots=True)
class JobDetail:
    """A job with all that the record knows of it, live or finished.

    `key_holder`: another live job that holds its key, which a `follow_up` waits for. `revision`: the JSON text of
    the configuration that `revision_id` names, a `TaskConfig`. `progress`, `checkpoint`: the JSON texts that its
    handler has told and saved last.
    """

    id: int
    queue: str
    task: str
    state: State
    priority: int
    due_at: datetime
    deadline: datetime | None
    enqueued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    quarantined_at: datetime | None
    owner: str | None
    tenant: str | None
    key: str | None
    tags: list[str]
    meta: str
    args: str
    result: str | None
    failures: int
    losses: int
    failure_limit: int
    loss_limit: int
    suspect: bool
    fence: int
    worker_id: int | None
    lease_seconds_left: float | None
    cancel_cause: str | None
    quarantine_reason: str | None
    error_code: str | None
    error_type: str | None
    error_message: str | None
    error_fingerprint: str | None
    run_ms: int | None
    rerun_of: int | None
    code_version: str | None
    cancel_requested_at: datetime | None
    watchers: list[str]
    follow_up: bool
    key_holder: int | None
    revision_id: int | None = None
    revision: str | None = None
    progress: str | None = None
    checkpoint: str | None = None
    batch_id: int | None = None

    @property
    def kind(self) -> Kind:
        """How it came to be."""
        return kind_of(rerun_of=self.rerun_of, batch_id=self.batch_id)

    @property
    def legal_verbs(self) -> frozenset[Verb]:
        """What the state machine allows now."""
        return legal_verbs(self.state)


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt that did not succeed, with its evidence."""

    job_id: int
    fence: int
    worker_id: int | None
    outcome: str
    started_at: datetime | None
    ended_at: datetime
    run_ms: int | None
    error_code: str | None
    error_type: str | None
    error_message: str | None
    error_fingerprint: str | None
    traceback: str | None
    evidence: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """A stored event of a job, such as `write_rejected`."""

    job_id: int
    seq: int
    at: datetime
    kind: str
    worker_id: int | None
    fence: int | None
    data: str
