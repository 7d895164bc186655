"""What passes between a worker and the record: leases, claimed jobs and answers, alike for every client."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Lease(NamedTuple):
    """The time-limited right to write for a job: its id and the fence of the claim."""

    job_id: int
    fence: int


class Claimed(NamedTuple):
    """A job that has just been leased. `args` and `checkpoint` are JSON texts."""

    id: int
    fence: int
    queue: str
    task: str
    args: str
    priority: int
    due_at: datetime
    failures: int
    losses: int
    suspect: bool
    revision_id: int | None = None
    checkpoint: str | None = None

    @property
    def lease(self) -> Lease:
        """The right that came with the claim."""
        return Lease(self.id, self.fence)


class NoteKind(StrEnum):
    """What a running handler can tell of itself."""

    PROGRESS = "progress"
    CHECKPOINT = "checkpoint"
    EVENT = "event"


class Note(NamedTuple):
    """Something that a running handler tells: `data` is JSON text, `name` that of an event."""

    kind: NoteKind
    data: str
    name: str = ""


class Mark(NamedTuple):
    """A place in a queue: claims of one priority start past it."""

    priority: int
    due_at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The answer to a heartbeat, by lease. Busy ones are to be asked again within a second or so.

    `cancelled` are those of the renewed whose end somebody has asked for, with the cause.
    """

    renewed: frozenset[Lease]
    busy: frozenset[Lease]
    lost: frozenset[Lease]
    cancelled: dict[Lease, str] = field(default_factory=dict)


@dataclass(slots=True)
class Settlement:
    """What became of a batch of outcomes, by lease: a job may stand in it under two fences.

    settled: the record holds them (now, or already from an identical earlier report); lost: the lease was no
    longer held, nothing changed; busy: somebody holds the row's lock, to be offered again; refused: the record
    cannot hold what was told under this lease, and holds none of it.
    """

    settled: set[Lease] = field(default_factory=set)
    lost: set[Lease] = field(default_factory=set)
    busy: set[Lease] = field(default_factory=set)
    refused: set[Lease] = field(default_factory=set)

    def add(self, other: "Settlement") -> "Settlement":
        """Take in the answer for another part of the batch."""
        self.settled |= other.settled
        self.lost |= other.lost
        self.busy |= other.busy
        self.refused |= other.refused
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A keeper as it announces itself. Durations in seconds."""

    pool: str
    host: str
    pid: int
    code_version: str | None
    queues: tuple[str, ...]
    processes: int
    threads: int
    lease_seconds: float
    heartbeat_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """What a keeper reports with each heartbeat. `lag_ms`: how much later than planned the heartbeat was sent.

    `tainted`: executors that only wait for their end; `dropped`: observations that no observer got; `resources`:
    JSON text, for each resource how many there are, are lent out and are waited for. `memory_kb` is what keeper
    and executors hold together now, `cpu_ms` what they have used so far, dead executors too; None where nobody
    can tell.
    """

    state: str
    in_use: int
    idle: bool
    tasks: tuple[str, ...]
    lag_ms: int
    losses: int
    tainted: int = 0
    dropped: int = 0
    resources: str = "{}"
    memory_kb: int | None = None
    cpu_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The answer to a worker that the record knows. `order`: `drain` or `stop`, as a person has ordered."""

    order: str | None = None
