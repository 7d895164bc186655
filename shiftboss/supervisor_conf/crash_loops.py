"""Is this program in a loop of crashes, and is one job to blame? Plain functions over what is noted of its lives.

A program that dies again and again fails, also where it lives for long enough each time for supervisord to call it
started. What counts is in the record, so that the next agent judges as this one would have.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shiftboss.queue.store.holds import HoldRow, Looping, Poison
from shiftboss.queue.store.processes import ProcessRow

FIRST_SECONDS = 10.0
"""How long a program is held back at first; each further time in a row twice as long."""

LONGEST_SECONDS = 600.0
"""A program that has lived so long since its last hold has mended; none is held back for longer."""

REAP_SECONDS = 10.0
"""Within so long after its end a lease is taken back, and its job runs again."""

MOST_JOBS = 100
"""Of so many jobs in hand not all need be noted."""

APART_SECONDS = 5.0
LONGEST_APART_SECONDS = 60.0
"""Jobs that may have killed one another come back at least, and at most, so long apart."""

SHOWN_ENDS = 10
SHOWN_JOBS = 20
SHOWN_LINE = 500

_VARYING = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|[0-9]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is a loop: so many unexpected ends within so many seconds. `lease_seconds` is that of the jobs."""

    ends: int
    seconds: float
    lease_seconds: float

    @property
    def poison_seconds(self) -> float:
        """Within which time the deaths are looked at that one job may have caused.

        A job comes back once its lease has been taken back, so that the loop which it makes is a slow one.
        """
        return self.seconds + self.ends * (self.lease_seconds + REAP_SECONDS)


def is_unexpected(life: ProcessRow) -> bool:
    """Whether a life ended, by a failure or in a way that nobody knows, and nobody had asked for that."""
    return life.ending is not None and not life.asked and (life.ending, life.code) != ("code", 0)


def loop(lives: Sequence[ProcessRow], last: HoldRow | None, *, rule: Rule, now: datetime) -> Looping | None:
    """The loop that a program is in by its ended lives, the newest first; None where it is in none.

    `last` is its last hold. What ended before that one's end counts no more. After a hold that has run its time a
    program is on probation: its first unexpected end holds it back again, for twice as long. `now` is by the clock
    of the host, as the lives are.
    """
    if last is not None and last.taken_up_at is None:
        return None
    # By when it was noted: the record's clock, by which the hold ended too.
    since = None if last is None else last.released_at
    lived = [life for life in lives if since is None or life.noted_at > since]
    deaths = [life for life in lived if is_unexpected(life)]
    if not deaths or _ended(deaths[0]) < now - timedelta(seconds=rule.seconds):
        return None
    if last is not None and last.released_as == "time" and not any(map(_has_mended, lived)):
        return _looping(deaths, lives, last, step=last.step + 1)
    within = _ended(deaths[0]) - timedelta(seconds=rule.seconds)
    deaths = [life for life in deaths if _ended(life) >= within]
    return _looping(deaths, lives, last, step=1) if len(deaths) >= rule.ends else None


def poison(newest: ProcessRow, lives: Iterable[ProcessRow], *, rule: Rule) -> Poison | None:
    """The one job that killed whoever had it in hand; None where no job is to blame for sure.

    `lives` are ended ones of the same pool, on whatever host: a job goes from one worker to the next. It is to
    blame where so many deaths had it in hand as make a loop, and no other job was in hand at all of these: of
    several that were, one has killed the others, and nobody knows which. An end of which nobody knows how it
    came, or what was in hand, is nobody's fault.
    """
    since = _ended(newest) - timedelta(seconds=rule.poison_seconds)
    deaths = [life for life in lives if _tells(life) and _ended(life) >= since]
    if newest.worker_id is None or newest.id not in {life.id for life in deaths}:
        return None
    fences = {int(job["id"]): int(job["fence"]) for job in newest.jobs or []}
    blamed = []
    for job_id in fences:
        had_it = [_in_hand(life) for life in deaths if job_id in _in_hand(life)]
        if len(had_it) >= rule.ends and frozenset.intersection(*had_it) == {job_id}:
            blamed.append((job_id, len(had_it)))
    if len(blamed) != 1:
        return None
    [(job_id, times)] = blamed
    message = f"its worker died {times} times with it in hand, and with no other job each time"
    return Poison(job_id=job_id, fence=fences[job_id], worker_id=newest.worker_id, message=message)


def apart(
    newest: ProcessRow,
    lives: Iterable[ProcessRow],
    *,
    rule: Rule,
    held_seconds: float,
    order: Callable[[list[int]], None],
) -> dict[int, float]:
    """In how many seconds each job of the newest death is to come back, so that not all of them meet again.

    Of jobs that the same deaths had in hand one may have killed the others. Half of them, in the order that
    `order` brings them into, come back at once and the others later: so each death halves those that it can have
    been, and none is harmed by that. Empty where no two jobs were in hand together at more than one death.
    `held_seconds`: so long the program stays down first.
    """
    since = _ended(newest) - timedelta(seconds=rule.poison_seconds)
    deaths = [life for life in lives if _tells(life) and _ended(life) >= since]
    if newest.worker_id is None or newest.id not in {life.id for life in deaths}:
        return {}
    met = Counter(job_id for life in deaths for job_id in _in_hand(life) & _in_hand(newest))
    most = max(met.values(), default=0)
    suspects = sorted(job_id for job_id, times in met.items() if times == most)
    if most < 2 or len(suspects) < 2:
        return {}
    order(suspects)
    # Until then the first half has run for as long as it took to kill this time, its worker's start included.
    later = (
        held_seconds + min(max(newest.uptime_seconds or 0.0, APART_SECONDS), LONGEST_APART_SECONDS) + APART_SECONDS
    )
    second = suspects[len(suspects) // 2 :]
    return dict.fromkeys(sorted(met), 0.0) | dict.fromkeys(second, later)


def to_blame(newest: ProcessRow, lives: Sequence[ProcessRow], job_id: int, *, after: int) -> Looping:
    """Why a job is quarantined: the deaths that had it in hand, the newest first."""
    deaths = [life for life in lives if _tells(life) and job_id in _in_hand(life)]
    evidence = _evidence(deaths, ())
    return Looping(
        host=newest.host,
        program=newest.program,
        pool=newest.pool,
        step=1,
        seconds=0,
        evidence=evidence,
        after=after,
    )


def _looping(
    deaths: Sequence[ProcessRow], lives: Sequence[ProcessRow], last: HoldRow | None, *, step: int
) -> Looping:
    newest = deaths[0]
    before = [life for life in lives if (life.started_at, life.id) < (deaths[-1].started_at, deaths[-1].id)]
    return Looping(
        host=newest.host,
        program=newest.program,
        pool=newest.pool,
        step=step,
        seconds=min(FIRST_SECONDS * 2 ** min(step - 1, 30), LONGEST_SECONDS),
        evidence=_evidence(deaths, before),
        after=0 if last is None else last.id,
    )


def _evidence(deaths: Sequence[ProcessRow], before: Sequence[ProcessRow]) -> dict[str, Any]:
    """What is kept of a loop. `before`: lives before it, the newest first, for whether it began with a version."""
    newest, first = deaths[0], deaths[-1]
    versions = {life.code_version for life in deaths}
    earlier = next((life.code_version for life in before if life.code_version is not None), None)
    is_new = len(versions) == 1 and newest.code_version is not None and earlier not in (None, newest.code_version)
    return {
        "times": len(deaths),
        "seconds": round((_ended(newest) - _ended(first)).total_seconds(), 3),
        "ends": [_shown(life) for life in deaths[:SHOWN_ENDS]],
        "version": newest.code_version,
        "version_before": earlier if is_new else None,
    }


def _shown(life: ProcessRow) -> dict[str, Any]:
    return {
        "process": str(life.id),
        "host": life.host,
        "program": life.program,
        "ended_at": _ended(life).isoformat(),
        "ending": life.ending,
        "code": life.code,
        "signal": life.signal,
        "uptime_seconds": life.uptime_seconds,
        "version": life.code_version,
        "jobs": None if life.jobs is None else [job["id"] for job in life.jobs[:SHOWN_JOBS]],
        "more_jobs": max(0, len(life.jobs or ()) - SHOWN_JOBS),
    }


def with_last_words(looping: Looping, lives: Iterable[ProcessRow]) -> Looping:
    """The same, with the last line of the log that most of the deaths have in common; `lives` have their logs."""
    shown = {end["process"] for end in looping.evidence["ends"]}
    line, times = common_line(life.log for life in lives if str(life.id) in shown)
    return replace(looping, evidence={**looping.evidence, "line": line, "line_times": times})


def common_line(logs: Iterable[str | None]) -> tuple[str | None, int]:
    """The last line that most of these logs end with, numbers in it aside, and how many do; the first is told."""
    last = [line for log in logs if (line := _last_line(log))]
    if not last:
        return None, 0
    same = [_VARYING.sub("#", line) for line in last]
    # Of equally frequent ones the first: a counter keeps the order in which it met them.
    [(most, times)] = Counter(same).most_common(1)
    return last[same.index(most)][:SHOWN_LINE], times


def _last_line(log: str | None) -> str:
    lines = [line.strip() for line in (log or "").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _ended(life: ProcessRow) -> datetime:
    assert life.ended_at is not None, "only lives that have ended are looked at"
    return life.ended_at


def _has_mended(life: ProcessRow) -> bool:
    return (life.uptime_seconds or 0.0) >= LONGEST_SECONDS


def _tells(life: ProcessRow) -> bool:
    """Whether what was in hand at this death may be to blame for it."""
    known = is_unexpected(life) and life.ending != "unknown"
    return known and life.jobs is not None and 0 < len(life.jobs) < MOST_JOBS


def _in_hand(life: ProcessRow) -> frozenset[int]:
    return frozenset(int(job["id"]) for job in life.jobs or ())
