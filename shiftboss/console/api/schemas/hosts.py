"""Hosts, their programs, what is asked of them, and rolling restarts, as they go out."""

from datetime import datetime
from typing import Any

from pydantic import Field

from shiftboss.console.api.schemas.strict import Id, Shown


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
