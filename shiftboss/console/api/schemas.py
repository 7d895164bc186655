"""What comes in and goes out. Fields have the names of the record; ids are text, which no reader rounds."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from ninja import Schema
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr

from shiftboss.acts import MAX_REASON_LENGTH, MOST, LimitWord, Revision
from shiftboss.console.roster import STATES
from shiftboss.queue.store.backfill import PAGE as BACKFILLS
from shiftboss.queue.store.queues import MAX_CONCURRENCY
from shiftboss.queue.store.read import PAGE

MAX_LIMIT = 200

Id = Annotated[str, Field(pattern=r"^[0-9]+$", examples=["4711"])]
"""An id as it is given out."""

Json = Annotated[Any, Field(description="JSON, as it is stored")]


class Given(Schema):
    """What comes in; a field that is not known is an error, not a wish that nobody hears."""

    model_config = ConfigDict(extra="forbid")


class Shown(Schema):
    """What goes out."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


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


class WhichBackfills(Schema):
    """Which page of the backfills."""

    before: str | None = Field(None, description="only backfills with a smaller id: the next page")
    limit: int = Field(BACKFILLS, ge=1, le=MAX_LIMIT)


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


class Ends(Shown):
    """How often a program has ended within the last 24 hours."""

    ends: int
    wrong: int = Field(description="those that nobody had asked for and that were no success")


class End(Shown):
    """How a program ended the last time."""

    at: datetime
    ending: str = Field(description="`code`, `signal`, or `unknown` where nobody saw it")
    code: int | None
    signal: int | None
    asked: bool = Field(description="somebody had asked it to")
    uptime_seconds: float | None


class Program(Shown):
    """A program as the agent of its host saw it last."""

    name: str
    state: str = Field(description="supervisord's word: `RUNNING`, `STOPPED`, `FATAL` and others")
    pid: int | None
    since: datetime | None = Field(description="from when on it is in this state")
    pool: str | None = Field(description="of a worker")
    memory_kb: int | None = Field(
        description="held by it and all that it has started; what they share counts in each"
    )
    cores: float | None = Field(description="kept busy by it and all that it has started, over the last seconds")
    trouble: str | None = Field(description="why supervisord could not start it")
    held_until: datetime | None = Field(description="it crashes in a loop, and its agent holds it back until then")
    code_version: str | None
    worker_id: Id | None = Field(description="the worker that it is, where one of the record is this process")
    jobs: list[Id] = Field(description="the longest-running of those that it has in hand")
    last_day: Ends
    last_end: End | None


class ShortOf(Shown):
    """What a host runs short of."""

    kind: str = Field(description="`disk`, `memory`, `files`, `processor` or `supervisor`")
    of: str | None = Field(description="which disk, or whose files")
    percent: int = Field(description="how much is used, or for how much of the last minute programs waited")


class Host(Shown):
    """A host with its programs. Of one that is not alive, or has a trouble, they are as they were seen last."""

    name: str
    hostname: str
    alive: bool = Field(description="its agent was heard of within its lease")
    heartbeat_at: datetime
    heartbeat_age_seconds: float
    trouble: str | None = Field(description="why its supervisor does not answer")
    gap_from: datetime | None = Field(description="the last time for which nobody watched it")
    gap_until: datetime | None
    dropped: int = Field(description="lives of programs that could not be remembered")
    home: str
    code_version: str | None = Field(description="of its agent")
    resources: dict[str, Any] | None = Field(
        description="what its agent has measured: `memory`, `processor`, `disks`, `files`, `supervisor`"
    )
    short_of: list[ShortOf]
    programs: list[Program]


class Hosts(Shown):
    """The hosts by name."""

    hosts: list[Host]


class InHand(Shown):
    """A job that a worker had in hand at its end."""

    id: Id
    queue: str
    task: str
    fence: int


class LifeOf(Shown):
    """One life of a program."""

    id: Id
    pid: int | None
    started_at: datetime
    ended_at: datetime | None = Field(description="of an end that nobody saw, when it was noticed")
    ending: str | None
    code: int | None
    signal: int | None
    asked: bool
    uptime_seconds: float | None
    peak_memory_kb: int | None
    cpu_seconds: float | None
    worker_id: Id | None
    code_version: str | None
    jobs: list[InHand] | None = Field(description="in hand at the end; null where nobody knows")
    log: str | None = Field(
        description="its last lines, of the newest ends; null without the permission `shiftboss.tail_program`"
    )


class Hold(Shown):
    """A time for which a program was held back, because it crashed in a loop."""

    held_at: datetime
    until: datetime
    step: int = Field(description="how often in a row, with this time")
    why: Any = Field(
        description="how many `times` it ended within `seconds`, its `ends` with what was in hand, the last "
        "`line` that most of their logs have in common, the `version`, and the `version_before` where the loop "
        "began with that one"
    )
    poison_job: Id | None = Field(description="the job that is quarantined for it; then nothing was held back")
    released_at: datetime | None
    released_as: str | None = Field(
        description="`time`; a person's `release`, `start` or `stop`; `others`: somebody started it on its host; "
        "`poison`"
    )
    released_by: str | None


class ProgramDetail(Program):
    """A program with its lives."""

    host: str
    alive: bool = Field(description="whether its host is")
    holds: list[Hold] = Field(description="the newest first; at most 3")
    lives: list[LifeOf] = Field(description="the newest first; at most 50")
    acts: list[str] = Field(description="what the caller may ask of it now")


class Command(Shown):
    """What was asked of a host, and what became of it."""

    id: Id
    host: str
    verb: str = Field(description="`start`, `drain`, `stop`, `restart`, `tail` or `scale`")
    program: str | None
    pool: str | None
    count: int | None
    asked_by: str
    asked_at: datetime
    state: str = Field(
        description="`waiting`, `claimed`, `done`, `failed`; `expired`: no agent took it in time, and none does "
        "any more; `lost`: its agent was gone before it ended, and nobody knows whether it was done"
    )
    progress: str | None
    result: Any = Field(
        description="an object: `states` of programs, or `error`; `lines` of a log for the caller who asked for it"
    )
    claimed_at: datetime | None
    ended_at: datetime | None


class Roll(Shown):
    """A rolling restart."""

    id: Id
    pool: str | None = Field(description="null: of all pools")
    reason: str
    asked_by: str
    asked_at: datetime
    code_wanted: str | None
    state: str = Field(description="`running`, `done`, `stopped` (`why` says why) or `cancelled`")
    why: str | None
    silent: list[str] = Field(description="hosts that were left out: their agents did not answer")
    ended_at: datetime | None
    workers: int
    done: int
    code_before: list[str]
    code_after: list[str]
    silent_seconds: float | None = Field(description="it waits for a host whose agent has been silent for so long")


class Rolls(Shown):
    """The last rolling restarts."""

    rolls: list[Roll]


class RollStep(Shown):
    """One worker of a rolling restart."""

    number: int
    host: str
    program: str
    pool: str
    state: str = Field(description="`waiting`, `draining`, `starting`, `proving`, `done`, or `failed`")
    worker_id: Id | None
    code_before: str | None
    code_after: str | None
    began_at: datetime | None
    moved_at: datetime | None
    why: str | None


class RollDetail(Roll):
    """A rolling restart with its workers."""

    steps: list[RollStep] = Field(description="in their order")
