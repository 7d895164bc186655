"""A small model of the record, written from the design alone: what each verb has to do to jobs.

Times are whole seconds of the model's own clock; what is due at the same time is told apart by `tick`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

LEASE_SECONDS, BACKOFF_SECONDS, SNOOZE_SECONDS = 1000, 300, 700
WAITING = ("scheduled", "available", "retryable")
FINAL = ("completed", "cancelled", "discarded")
TRACES = {
    "complete": "completed",
    "fail": "failed",
    "release": "released",
    "snooze": "snoozed",
    "discard": "discarded",
    "quarantine": "quarantined",
    "reap_own": "lost",
}
REINSTATED_FAILURES, REINSTATED_LOSSES = 4, 2

Due = tuple[int, int]
Lease = tuple[int, int]


@dataclass
class Job:
    """What the model knows of a job."""

    id: int
    queue: str
    task: str
    owner: str | None
    watchers: tuple[str, ...]
    key: str | None
    priority: int
    due: Due
    deadline: int | None
    failure_limit: int
    loss_limit: int
    state: str
    follow_up: bool = False
    fence: int = 0
    worker: int | None = None
    expires: int | None = None
    failures: int = 0
    losses: int = 0
    suspect: bool = False
    cause: str | None = None
    reason: str | None = None
    checkpoint: str | None = None
    rerun_of: int | None = None
    # (fence, worker, outcome, whether it is the reaper's word)
    attempts: list[tuple[int, int | None, str, bool]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    @property
    def live(self) -> bool:
        """Whether it is not finished."""
        return self.state not in FINAL

    def seen_by(self, owner: str | None) -> bool:
        """Whether this owner (None: the system) may see it."""
        return owner is None or owner == self.owner or owner in self.watchers

    def told(self) -> tuple[Any, ...]:
        """What the record has to say of it."""
        return (
            self.id,
            self.state,
            self.fence,
            self.worker,
            self.failures,
            self.losses,
            self.failure_limit,
            self.loss_limit,
            self.suspect,
            self.priority,
            self.cause,
            self.reason,
            self.follow_up,
            self.owner,
            self.key,
            self.rerun_of,
        )


class Model:
    """All jobs. Each verb answers what the record should answer."""

    def __init__(self) -> None:
        self.now = 0
        self.tick = 0
        self.jobs: dict[int, Job] = {}
        self.paused: set[str] = set()
        self.limits: dict[str, int] = {}
        self.sequential: set[str] = set()
        self.lines: dict[str, int] = {}

    def moment(self, later: int = 0) -> Due:
        """A due time, after all that were set for the same second before."""
        self.tick += 1
        return self.now + later, self.tick

    def live(self) -> Iterator[Job]:
        """Jobs that are not finished."""
        return (job for job in self.jobs.values() if job.live)

    def holder(self, key: str | None, *, follow_up: bool = False) -> Job | None:
        """Who holds a key, or waits for it."""
        for job in self.live():
            if key is not None and job.key == key and job.state != "quarantined" and job.follow_up == follow_up:
                return job
        return None

    # -- clients -------------------------------------------------------------------------------------------

    def meets(self, key: str | None, owner: str | None, on_conflict: str, follow_up: bool) -> tuple[str, Any]:
        """What becomes of a job with this key: new (whether a follow-up), existing, replace or held (by whom)."""
        holder, waiting = self.holder(key), self.holder(key, follow_up=True)
        if holder is None and waiting is None:
            return "new", False
        if follow_up and waiting is None and holder is not None and holder.state == "running":
            return "new", True
        met = waiting if waiting is not None and (follow_up or holder is None) else holder
        assert met is not None
        if on_conflict == "existing":
            return "existing", met
        if on_conflict == "replace" and met.seen_by(owner) and met.state in WAITING:
            return "replace", met
        return "held", met

    def add(self, job: Job) -> None:
        """A new job."""
        self.jobs[job.id] = job

    # -- workers -------------------------------------------------------------------------------------------

    def running(self, queue: str) -> int:
        """How many jobs of the queue run."""
        return sum(job.queue == queue and job.state == "running" for job in self.live())

    def order(self, job: Job) -> tuple[int, Due]:
        """Jobs are claimed in this order."""
        return -job.priority, job.due

    def claimable(self, queue: str, tasks: Iterable[str], limit: int) -> list[Job]:
        """What a claim should bring, but for which of equals."""
        if queue in self.paused:
            return []
        ready = [
            job
            for job in self.live()
            if job.queue == queue
            and job.state == "available"
            and (job.deadline is None or job.deadline > self.now)
        ]
        ready.sort(key=self.order)
        if queue in self.sequential:
            if self.running(queue):
                return []
            if queue in self.lines:
                ready = [job for job in ready if job.id == self.lines[queue]]
            return [job for job in ready[: min(1, limit)] if job.task in tasks]
        if queue in self.limits:
            limit = min(limit, max(0, self.limits[queue] - self.running(queue)))
        return [job for job in ready if job.task in tasks][:limit]

    def claimed(self, job: Job, worker: int) -> Lease:
        """A worker has got it."""
        job.state, job.worker = "running", worker
        job.fence += 1
        job.expires = self.now + LEASE_SECONDS
        if job.queue in self.sequential:
            self.lines[job.queue] = job.id
        return job.id, job.fence

    def held(self, lease: Lease, worker: int) -> Job | None:
        """The job, where the worker holds it by this lease."""
        job = self.jobs.get(lease[0])
        if job is None or job.state != "running" or (job.fence, job.worker) != (lease[1], worker):
            return None
        return job if job.expires is not None and job.expires > self.now else None

    def heartbeat(self, lease: Lease, worker: int) -> tuple[str, str | None]:
        """("renewed", cause of a cancellation) or ("lost", None)."""
        if (job := self.held(lease, worker)) is not None:
            job.expires = self.now + LEASE_SECONDS
            return "renewed", job.cause
        job = self.jobs[lease[0]]
        own = [of_reaper for fence, who, _, of_reaper in job.attempts if (fence, who) == (lease[1], worker)]
        ended = not job.live and (job.fence, job.worker) == (lease[1], worker)
        if not ended and all(own):
            job.events.append("write_rejected")
        return "lost", None

    def note(self, lease: Lease, worker: int, kind: str, data: str) -> str:
        """A handler tells something."""
        if (job := self.held(lease, worker)) is None:
            self.jobs[lease[0]].events.append("write_rejected")
            return "lost"
        if kind == "event":
            job.events.append("event")
        elif kind == "checkpoint":
            job.checkpoint = data
        return "settled"

    def report(self, lease: Lease, worker: int, verb: str) -> str:
        """A worker says how a run ended."""
        trace = TRACES[verb]
        if (job := self.held(lease, worker)) is not None:
            self._end_run(job, verb, trace)
            return "settled"
        job = self.jobs[lease[0]]
        traces = {what for fence, who, what, _ in job.attempts if (fence, who) == (lease[1], worker)}
        if not job.live and (job.fence, job.worker) == (lease[1], worker):
            traces.add(job.state if job.state != "cancelled" else "")
        if trace in traces or (
            "cancelled" in traces and trace in ("released", "snoozed", "discarded", "quarantined")
        ):
            return "settled"
        job.events.append("write_rejected")
        return "lost"

    def _end_run(self, job: Job, verb: str, trace: str) -> None:
        asked = job.cause is not None
        if verb == "complete":
            self._finish(job, "completed", worker=job.worker)
            return
        kept = trace if not asked or verb in ("fail", "reap_own") else "cancelled"
        job.attempts.append((job.fence, job.worker, kept, False))
        if asked or verb == "discard":
            self._finish(job, "cancelled" if asked else "discarded", worker=job.worker)
            return
        job.worker = job.expires = None
        match verb:
            case "fail":
                job.failures += 1
                job.suspect = False
                job.due = self.moment(BACKOFF_SECONDS)
                self._retry(job, job.failures >= job.failure_limit, "failures_exhausted")
            case "release":
                job.state = "available"
            case "snooze":
                job.state, job.due = "scheduled", self.moment(SNOOZE_SECONDS)
            case "quarantine":
                self._retry(job, True, "invalid_arguments")
            case "reap_own":
                job.losses += 1
                job.suspect = True
                job.due = self.moment()
                self._retry(job, job.losses >= job.loss_limit, "poison")

    def _retry(self, job: Job, held: bool, reason: str) -> None:
        job.state, job.reason = ("quarantined", reason) if held else ("retryable", None)
        if held:
            self._rest(job)

    def _finish(self, job: Job, state: str, *, worker: int | None = None, cause: str | None = None) -> None:
        job.state, job.worker, job.expires, job.reason, job.follow_up = state, worker, None, None, False
        job.cause = job.cause or cause
        self._rest(job)

    def _rest(self, job: Job) -> None:
        if self.lines.get(job.queue) == job.id:
            del self.lines[job.queue]

    # -- people --------------------------------------------------------------------------------------------

    def cancel(self, job_id: int, owner: str | None, cause: str = "user") -> tuple[str, str | None]:
        """(state after or why not, state)."""
        job = self.jobs.get(job_id)
        if job is None or not job.seen_by(owner):
            return "missing", None
        if job.state == "running":
            job.cause = job.cause or cause
            return "changed", "running"
        if job.state in WAITING or (job.state == "quarantined" and owner is None):
            self._finish(job, "cancelled", cause=cause)
            return "changed", "cancelled"
        return "state", job.state

    def operate(self, verb: str, job_id: int, value: int = 0) -> tuple[str, str | None]:
        """An operator's verb on one job, likewise."""
        job = self.jobs.get(job_id)
        if job is None:
            return "missing", None
        legal = {
            "expedite": ("scheduled", "retryable"),
            "reinstate": ("quarantined",),
            "discard": ("quarantined",),
            "quarantine": WAITING,
            "reprioritise": WAITING,
            "reschedule": WAITING,
        }[verb]
        if job.state not in legal:
            return "state", job.state
        holder = self.holder(job.key)
        if verb in ("expedite", "reinstate") and holder is not None and holder is not job:
            return "key_held", job.state
        match verb:
            case "expedite":
                job.state, job.due, job.follow_up = "available", min(job.due, self.moment()), False
            case "reinstate":
                job.state, job.due, job.follow_up, job.reason = "available", self.moment(), False, None
                job.failure_limit = job.failures + REINSTATED_FAILURES
                job.loss_limit = job.losses + REINSTATED_LOSSES
            case "discard":
                self._finish(job, "discarded")
            case "quarantine":
                job.state, job.reason = "quarantined", "operator"
                self._rest(job)
            case "reprioritise":
                job.priority = value
            case "reschedule":
                job.due = self.moment(value)
                job.state = "scheduled" if job.state == "available" else job.state
        if verb != "discard":
            job.events.append(verb)
        return "changed", job.state

    # -- upkeep --------------------------------------------------------------------------------------------

    def stage(self) -> int:
        """Jobs that are due become available."""
        staged = 0
        for job in list(self.live()):
            due = job.state in ("scheduled", "retryable") and job.due[0] <= self.now
            if due and not (job.follow_up and self.holder(job.key) is not None):
                job.state, job.follow_up = "available", False
                staged += 1
        return staged

    def reap(self) -> list[int]:
        """Jobs are taken from expired leases."""
        expired = [job for job in self.live() if job.expires is not None and job.expires <= self.now]
        moment = self.moment()
        for job in expired:
            job.attempts.append((job.fence, job.worker, "lost", True))
            if job.cause is not None:
                self._finish(job, "cancelled")
                continue
            job.worker = job.expires = None
            job.losses += 1
            job.due = moment
            self._retry(job, job.losses >= job.loss_limit, "losses_exhausted")
        return sorted(job.id for job in expired)

    def expire(self) -> int:
        """Waiting jobs end at their deadlines."""
        late = [
            job
            for job in self.live()
            if job.state in WAITING and job.deadline is not None and job.deadline <= self.now
        ]
        for job in late:
            self._finish(job, "cancelled", cause="deadline")
        return len(late)

    # -- what always holds ---------------------------------------------------------------------------------

    def check(self) -> None:
        """No queue runs more than its limit, no key is held twice."""
        keys = [
            (job.key, job.follow_up) for job in self.live() if job.key is not None and job.state != "quarantined"
        ]
        assert all(n == 1 for n in Counter(keys).values())
        assert all(self.running(queue) <= 1 for queue in self.sequential)

    def told(self) -> Sequence[tuple[Any, ...]]:
        """What the record has to say of all jobs."""
        return [job.told() for _, job in sorted(self.jobs.items())]
