"""What the auditor of single jobs does not see: whether each kind ended as it must, limits, lines, keys, effects.

As the auditor it reads handlers' own logs and the record alone. Where a client or a person knows more (what was
committed, what was cancelled, which processes were stopped), that is given.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import psycopg

from tests.faults.audit import KINDS as WORDS
from tests.faults.audit import WHO, Finding
from tests.faults.chaos.faults import LIMITS
from tests.faults.chaos.kinds import FEW, KINDS, LIMITED, LINE
from tests.runtime.programs import Line

QUARANTINED = {
    "fails always": ("failures_exhausted",),
    "deaf": ("failures_exhausted",),
    "dies always": ("poison", "losses_exhausted"),
}
DEATH = ("signal", "exit_code")


class Job(NamedTuple):
    """A job as the record holds it."""

    id: int
    kind: str
    queue: str
    key: str | None
    state: str
    fence: int
    reason: str | None
    cause: str | None
    failures: int
    losses: int


class Attempt(NamedTuple):
    """An attempt that was no success."""

    job: int
    fence: int
    outcome: str
    code: str | None
    evidence: Mapping[str, object]


class Run(NamedTuple):
    """What handlers' logs say of one attempt: from its first line to its last one."""

    job: int
    fence: int
    first: float
    last: float
    pids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Held:
    """What the record and the user's own table hold."""

    jobs: Mapping[int, Job]
    attempts: Mapping[int, Sequence[Attempt]]
    effects: Sequence[tuple[int, int]]

    @property
    def ends(self) -> Counter[str]:
        """Jobs by kind and end."""
        return Counter(f"{job.kind}: {job.state}" for job in self.jobs.values())

    @property
    def outcomes(self) -> Counter[str]:
        """Attempts by outcome and code; the successes are the completed jobs."""
        found = Counter(f"{one.outcome} {one.code or ''}".strip() for of in self.attempts.values() for one in of)
        return found + Counter(completed=sum(job.state == "completed" for job in self.jobs.values()))


def read(dsn: str) -> Held:
    """All of it."""
    columns = "id, tags[1], queue, key, state, fence, quarantine_reason, cancel_cause, failures, losses"
    with psycopg.connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        jobs = [
            Job(*row)
            for table in ("shiftboss_job", "shiftboss_finished")
            for row in connection.execute(f"select {columns} from {table}")
        ]
        attempts: defaultdict[int, list[Attempt]] = defaultdict(list)
        for row in connection.execute(
            "select job_id, fence, outcome, error_code, evidence from shiftboss_attempt order by fence"
        ):
            attempts[row[0]].append(Attempt(*row))
        effects = connection.execute("select job, fence from ledger").fetchall()
    return Held({job.id: job for job in jobs}, attempts, [(job, fence) for job, fence in effects])


def judge(
    lines: Iterable[Line],
    held: Held,
    *,
    committed: Sequence[int] = (),
    cancelled: Collection[int] = (),
    frozen: Collection[int] = (),
) -> list[Finding]:
    """All that is wrong.

    `end`: a job that ended as its kind does not, and whom nobody has cancelled; one in quarantine without the
    evidence for it. `outcome`: an attempt that failed as its kind does not. `effect`: a row of the user's own
    without its completion, or the other way round. `limit`, `line`, `key`: what ran at the same time, or out of
    order, by what handlers say; runs of `frozen` processes are left out. `checkpoint`: an attempt that found
    less than one before it had saved.
    """
    lines = list(lines)
    runs = [run for run in _runs(lines) if not run.pids & set(frozen)]
    by_job: defaultdict[int, list[Run]] = defaultdict(list)
    for run in runs:
        by_job[run.job].append(run)
    return [
        *(finding for job in held.jobs.values() for finding in _of_job(job, held, cancelled)),
        *_effects(held),
        *_limit([run for run in runs if _queue(held, run) == LIMITED]),
        *_in_line([job for job in committed if job in held.jobs and held.jobs[job].queue == LINE], by_job),
        *_apart("line", [run for run in runs if _queue(held, run) == LINE]),
        *_keys(held, runs),
        *_checkpoints(lines, frozen),
    ]


def _queue(held: Held, run: Run) -> str | None:
    return held.jobs[run.job].queue if run.job in held.jobs else None


def _of_job(job: Job, held: Held, cancelled: Collection[int]) -> Iterator[Finding]:
    kind, attempts = KINDS[job.kind], held.attempts.get(job.id, ())
    excused = job.state == "cancelled" and (
        job.id in cancelled or (job.kind == "keyed" and job.cause == "superseded")
    )
    if job.state not in kind.ends and not excused:
        yield Finding("end", job.id, job.fence, f"{job.kind}: {job.state} ({job.reason or job.cause})")
    if job.kind == "deadline" and job.state == "cancelled" and job.cause != "deadline" and not excused:
        yield Finding("end", job.id, job.fence, f"{job.kind}: cancelled ({job.cause})")
    if job.state == "quarantined" and job.state in kind.ends:
        yield from _quarantined(job, attempts)
    for one in attempts:
        if one.outcome == "failed" and one.code not in kind.fails and not (excused and one.code == "timeout"):
            yield Finding("outcome", job.id, one.fence, f"{job.kind}: failed ({one.code})")


def _quarantined(job: Job, attempts: Sequence[Attempt]) -> Iterator[Finding]:
    """Whether the record has the evidence for it."""
    if job.reason not in QUARANTINED[job.kind]:
        yield Finding("end", job.id, job.fence, f"{job.kind}: quarantined for {job.reason}")
    failed = sum(one.outcome == "failed" for one in attempts)
    died = [one for one in attempts if one.outcome == "lost" and one.code == "executor_died"]
    if job.reason == "failures_exhausted" and not job.failures == failed == KINDS[job.kind].failures:
        yield Finding("end", job.id, job.fence, f"{job.failures} failures, {failed} attempts that failed")
    if job.reason == "poison" and (
        len(died) < FEW or not all(any(x in one.evidence for x in DEATH) for one in died)
    ):
        yield Finding("end", job.id, job.fence, f"poison by {[(one.code, one.evidence) for one in attempts]}")


def _effects(held: Held) -> Iterator[Finding]:
    effects = Counter(job for job, _ in held.effects)
    fences = dict(held.effects)
    for job in held.jobs.values():
        if job.kind == "transaction" and effects[job.id] != (job.state == "completed"):
            yield Finding("effect", job.id, job.fence, f"{job.state}, and written {effects[job.id]} times")
        elif job.state == "completed" and fences.get(job.id, job.fence) != job.fence:
            yield Finding("effect", job.id, job.fence, f"written by attempt {fences[job.id]}")
    yield from (Finding("effect", job, 0, "of no job") for job in effects if job not in held.jobs)


def _limit(runs: Sequence[Run]) -> Iterator[Finding]:
    """More at once than the largest limit ever. Who died said its last word before: this is the least."""
    going: list[Run] = []
    for run in sorted(runs, key=lambda run: run.first):
        going = [other for other in going if other.last > run.first] + [run]
        if len(going) > max(LIMITS):
            yield Finding(
                "limit", run.job, run.fence, f"{len(going)} at once: {[(r.job, r.fence) for r in going]}"
            )


def _in_line(jobs: Sequence[int], runs: Mapping[int, Sequence[Run]]) -> Iterator[Finding]:
    """In the order in which they were known to be enqueued: each is over when the next one begins."""
    over, whose = float("-inf"), 0
    for job in jobs:
        if not (mine := runs.get(job)):
            continue
        if (first := min(run.first for run in mine)) < over:
            yield Finding("line", job, 0, f"began {over - first:.3f} s before the end of {whose}")
        over, whose = max(run.last for run in mine), job


def _apart(kind: str, runs: Iterable[Run]) -> Iterator[Finding]:
    """Runs of different jobs that were at the same time."""
    last: Run | None = None
    for run in sorted(runs, key=lambda run: run.first):
        if last is not None and run.first < last.last and run.job != last.job:
            yield Finding(
                kind, run.job, run.fence, f"began {last.last - run.first:.3f} s before the end of {last.job}"
            )
        if last is None or run.last > last.last:
            last = run


def _keys(held: Held, runs: Iterable[Run]) -> Iterator[Finding]:
    by_key: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.job in held.jobs and (key := held.jobs[run.job].key) is not None:
            by_key[key].append(run)
    for of_one in by_key.values():
        yield from _apart("key", of_one)


def _checkpoints(lines: Sequence[Line], frozen: Collection[int]) -> Iterator[Finding]:
    saved: dict[str, int] = {}
    for line in lines:
        word, _, number = line.kind.partition("-")
        if line.pid in frozen or word not in ("found", "saved"):
            continue
        job, fence = line.name.split(".")
        if word == "saved":
            saved[job] = int(number)
        elif int(number) < saved.get(job, 0):
            yield Finding("checkpoint", int(job), int(fence), f"found {number} after {saved[job]} had been saved")


def _runs(lines: Iterable[Line]) -> list[Run]:
    found: dict[tuple[int, int], Run] = {}
    for line in lines:
        if line.kind not in WORDS or (who := WHO.fullmatch(line.name)) is None:
            continue
        name = (int(who[1]), int(who[2]))
        old = found.get(name, Run(*name, line.at, line.at, frozenset()))
        found[name] = Run(*name, min(old.first, line.at), max(old.last, line.at), old.pids | {line.pid})
    return list(found.values())
