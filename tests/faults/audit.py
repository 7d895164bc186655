"""The auditor of all fault tests: reads only what handlers wrote down themselves and what the record holds.

>>> findings = audit(house.lines(), dsn, committed_ids)
>>> assert findings == []

Handlers that are to be audited log their attempts by `tests.faults.witness.tasks.witnessed`: lines of the kinds
`began`, `tick`, `done`, `broke` with the name JOB.FENCE, by one clock. Other lines are not looked at. A handler
that completes its job in its own transaction writes `commits` there in the place of `done`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from tests.runtime.programs import Line

WHO = re.compile(r"(\d+)\.(\d+)")
KINDS = ("began", "tick", "done", "broke", "commits")
WAITING = ("scheduled", "available", "retryable")
CUT_SHORT = ("lost", "released", "cancelled")
"""What the record may say of a handler that went on to its end: the news of that did not arrive."""


class Finding(NamedTuple):
    """Something that must not be: which, of which job and attempt (0: of the whole job), in words."""

    kind: str
    job: int
    fence: int
    words: str


class Standing(NamedTuple):
    """Where a job stands: its state, its last attempt, and whether the row is a worker's own word."""

    state: str
    fence: int
    by_worker: bool
    finished: bool


class Told(NamedTuple):
    """What the record holds of an attempt that was no success."""

    outcome: str
    code: str | None


@dataclass(slots=True)
class Record:
    """What the record holds: the rows of each job, and those of the attempts that were no successes."""

    rows: Mapping[int, list[Standing]]
    attempts: Mapping[tuple[int, int], list[Told]]


@dataclass(slots=True)
class Witness:
    """What handlers said of one attempt."""

    pids: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    first: float = float("inf")
    last: float = float("-inf")


def audit(
    lines: Iterable[Line],
    dsn: str,
    jobs: Iterable[int | str] = (),
    *,
    frozen: Collection[int] = (),
    at_rest: bool = True,
) -> list[Finding]:
    """All that is wrong with the jobs of the record and of `jobs`, which a client knows to be committed.

    `loss`: a committed job that the record does not hold, or twice. `unfinished`: `at_rest` means that nothing
    should wait or run any more. `no_outcome`, `two_outcomes`, `unexplained`: an attempt without, with two, or with
    one that says nothing. `double`: a run that the record cannot explain: one attempt that began twice, one that
    the record does not know, a handler that went to its end though the record says that it failed, a success that
    no handler reached. `overlap`: two runs of one job at the same time, but for processes that were `frozen`.
    """
    return judge(lines, _read(dsn), {int(job) for job in jobs}, frozen=frozenset(frozen), at_rest=at_rest)


def judge(
    lines: Iterable[Line],
    record: Record,
    jobs: Collection[int],
    *,
    frozen: Collection[int] = (),
    at_rest: bool = True,
) -> list[Finding]:
    """As `audit`, with the record in hand."""
    seen = _heard(lines)
    findings = [Finding("loss", job, 0, "the record does not hold it") for job in jobs if job not in record.rows]
    for job, rows in record.rows.items():
        if len(rows) > 1:
            findings.append(Finding("loss", job, 0, f"the record holds it {len(rows)} times: {rows}"))
        if at_rest and rows[0].state in (*WAITING, "running"):
            findings.append(Finding("unfinished", job, rows[0].fence, rows[0].state))
        findings += _of_attempts(job, rows[0], record, seen.get(job, {}))
    for job, runs in seen.items():
        known = record.rows[job][0].fence if job in record.rows else 0
        findings += [
            Finding("double", job, fence, "the record knows of no such attempt") for fence in runs if fence > known
        ]
        findings += _overlaps(job, runs, frozen)
    return sorted(findings, key=lambda finding: (finding.job, finding.fence, finding.kind))


def _of_attempts(job: int, row: Standing, record: Record, runs: Mapping[int, Witness]) -> list[Finding]:
    found = []
    for fence in range(1, row.fence + 1):
        told = [*record.attempts.get((job, fence), ())]
        if row.state == "completed" and fence == row.fence:
            told.append(Told("completed", None))
        goes_on = row.state == "running" and fence == row.fence
        if len(told) != (not goes_on):
            kind = "two_outcomes" if told else "no_outcome"
            found.append(Finding(kind, job, fence, f"{row.state}; {[one.outcome for one in told]}"))
        found += [
            Finding("unexplained", job, fence, f"{one.outcome} without a code")
            for one in told
            if one.outcome in ("failed", "lost", "released") and not one.code
        ]
        found += _contradictions(job, fence, told, runs.get(fence))
    return found


def _contradictions(job: int, fence: int, told: list[Told], run: Witness | None) -> list[Finding]:
    """Where the record says something else than the handler."""
    kinds = run.kinds if run is not None else Counter()
    words = []
    if kinds["began"] > 1:
        words.append(f"began {kinds['began']} times")
    for one in told:
        if one.outcome == "completed" and run is not None and not kinds["done"] + kinds["commits"]:
            words.append("completed, though its handler did not come to its end")
        if kinds["done"] and one.outcome not in (*CUT_SHORT, "completed") and one.code != "result_not_storable":
            words.append(f"{one.outcome} ({one.code}), though its handler came to its end")
    return [Finding("double", job, fence, text) for text in words]


def _overlaps(job: int, runs: Mapping[int, Witness], frozen: Collection[int]) -> list[Finding]:
    found = []
    last, whose = float("-inf"), 0
    for fence in sorted(runs):
        run = runs[fence]
        if run.first < last and not runs[whose].pids & set(frozen):
            late = round(last - run.first, 3)
            found.append(Finding("overlap", job, fence, f"began {late} s before the end of attempt {whose}"))
        if run.last > last:
            last, whose = run.last, fence
    return found


def _heard(lines: Iterable[Line]) -> dict[int, dict[int, Witness]]:
    seen: defaultdict[int, defaultdict[int, Witness]] = defaultdict(lambda: defaultdict(Witness))
    for line in lines:
        who = WHO.fullmatch(line.name)
        if who is None or line.kind not in KINDS:
            continue
        run = seen[int(who[1])][int(who[2])]
        run.pids.add(line.pid)
        run.kinds[line.kind] += 1
        run.first, run.last = min(run.first, line.at), max(run.last, line.at)
    return {job: dict(runs) for job, runs in seen.items()}


def _read(dsn: str) -> Record:
    rows: defaultdict[int, list[Standing]] = defaultdict(list)
    attempts: defaultdict[tuple[int, int], list[Told]] = defaultdict(list)
    with psycopg.connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        for job, *standing in connection.execute(
            "select id, state, fence, worker_id is not null, false from shiftboss_job"
            " union all select id, state, fence, worker_id is not null, true from shiftboss_finished"
        ):
            rows[job].append(Standing(*standing))
        for job, fence, *told in connection.execute(
            "select job_id, fence, outcome, error_code from shiftboss_attempt"
        ):
            attempts[job, fence].append(Told(*told))
    return Record(rows, attempts)
