"""What is a loop of crashes, and which job is to blame: decided by the lives of a program alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftboss.queue.store.holds import HoldRow, Looping, Poison
from shiftboss.queue.store.processes import ProcessRow
from shiftboss.supervisor_conf import crash_loops
from shiftboss.supervisor_conf.crash_loops import Rule, common_line

pytestmark = pytest.mark.requirement("B2")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULE = Rule(ends=3, seconds=60.0, lease_seconds=30.0)


def life(at: float, *, ending: str = "code", **more: Any) -> ProcessRow:
    """One that ended so many seconds before now, by exit code 1 where nothing else is said."""
    ended = NOW - timedelta(seconds=at)
    given: dict[str, Any] = {
        "id": 100_000 - round(at * 10),
        "host": "web-1",
        "program": "worker-default-1",
        "pool": "default",
        "launcher": 7,
        "pid": 8,
        "started_at": ended - timedelta(seconds=5),
        "ended_at": ended,
        "ending": ending,
        "code": 1 if ending == "code" else None,
        "signal": 9 if ending == "signal" else None,
        "asked": False,
        "uptime_seconds": 5.0,
        "peak_memory_kb": None,
        "cpu_seconds": None,
        "worker_id": 1,
        "code_version": None,
        "log": None,
        "jobs": None,
        "noted_at": ended,
    }
    return ProcessRow(**{**given, **more})


def jobs(*ids: int) -> list[dict[str, Any]]:
    """What was in hand, as it is noted."""
    return [{"id": str(n), "queue": "default", "task": "t", "fence": 100 + n} for n in ids]


def hold(*, over: float | None, how: str = "time", step: int = 1) -> HoldRow:
    """One that ended so many seconds before now; None: it is open."""
    ended = None if over is None else NOW - timedelta(seconds=over)
    return HoldRow(
        id=4,
        host="web-1",
        program="worker-default-1",
        pool="default",
        step=step,
        held_at=NOW - timedelta(hours=1),
        until=NOW,
        evidence={},
        poison_job=None,
        stopped_at=None,
        released_at=ended,
        released_as=None if over is None else how,
        released_by=None,
        taken_up_at=ended,
        is_in_force=over is None,
    )


def judged(*lives: ProcessRow, last: HoldRow | None = None, rule: Rule = RULE) -> Looping | None:
    """The verdict of now over lives, the newest first."""
    return crash_loops.loop(lives, last, rule=rule, now=NOW)


def test_the_third_unexpected_end_within_the_window_is_a_loop() -> None:
    assert judged(life(1), life(20)) is None
    found = judged(life(1), life(20), life(41))
    assert found
    assert (found.step, found.seconds, found.after) == (1, 10.0, 0)
    assert (found.evidence["times"], found.evidence["seconds"]) == (3, 40.0)
    assert judged(life(1), life(20), life(62)) is None


@pytest.mark.parametrize(
    ("lives", "loops"),
    [
        ([life(1, ending="signal"), life(2, ending="unknown"), life(3)], True),
        ([life(1), life(2), life(3, asked=True)], False),
        ([life(1), life(2), life(3, code=0)], False),
        ([life(1), life(2, asked=True), life(3), life(4, code=0), life(5)], True),
        ([life(61), life(62), life(63)], False),
        ([life(59), life(62), life(63)], True),
        ([], False),
    ],
)
def test_only_what_nobody_asked_for_and_is_of_now_counts(lives: list[ProcessRow], loops: bool) -> None:
    assert (judged(*lives) is not None) is loops


def test_who_is_held_is_not_judged_again() -> None:
    assert judged(life(1), life(2), life(3), last=hold(over=None)) is None


def test_after_a_hold_one_end_is_enough_and_each_hold_is_twice_as_long() -> None:
    lives = [life(1), life(50), life(51), life(52)]
    found = judged(*lives, last=hold(over=10))
    assert found
    assert (found.step, found.seconds, found.after, found.evidence["times"]) == (2, 20.0, 4, 1)
    steps = [judged(*lives, last=hold(over=10, step=step)) for step in (2, 5, 6, 7, 1000)]
    assert [one.seconds for one in steps if one] == [40.0, 320.0, 600.0, 600.0, 600.0]


def test_who_has_lived_long_since_its_hold_starts_over() -> None:
    mended = life(3, uptime_seconds=600.0)
    assert judged(life(1), life(2), mended, last=hold(over=700)) is not None
    found = judged(life(1), mended, last=hold(over=700))
    assert found is None
    again = judged(life(1), life(2), mended, last=hold(over=700, step=5))
    assert again
    assert again.step == 1


@pytest.mark.parametrize("how", ["release", "start", "stop", "others", "poison"])
def test_what_was_before_somebody_let_it_go_counts_no_more(how: str) -> None:
    lives = [life(1), life(2), life(30), life(31)]
    assert judged(*lives, last=hold(over=10, how=how)) is None
    found = judged(life(1), life(2), life(3), life(30), last=hold(over=10, how=how, step=5))
    assert found
    assert (found.step, found.evidence["times"]) == (1, 3)


@given(
    ends=st.lists(st.floats(0.0, 300.0), max_size=12, unique=True),
    needed=st.integers(1, 6),
    seconds=st.floats(1.0, 200.0),
)
def test_a_loop_is_so_many_ends_within_the_window_before_the_last(
    ends: list[float], needed: int, seconds: float
) -> None:
    lives = [life(at) for at in sorted(ends)]
    rule = Rule(ends=needed, seconds=seconds, lease_seconds=30.0)
    found = judged(*lives, rule=rule)
    newest = lives[0].ended_at if lives else None
    window = timedelta(seconds=seconds)
    near = [one for one in lives if newest and one.ended_at and one.ended_at >= newest - window]
    is_now = newest is not None and newest >= NOW - window
    assert (found is not None) is (is_now and len(near) >= needed)
    assert found is None or found.evidence["times"] == len(near)


def blamed(*lives: ProcessRow) -> Poison | None:
    """The job to blame for the first of these, which is the newest."""
    return crash_loops.poison(lives[0], lives, rule=RULE)


def test_the_one_job_that_was_there_each_time_is_to_blame() -> None:
    found = blamed(
        life(1, ending="signal", jobs=jobs(1, 2, 3)),
        life(40, ending="signal", jobs=jobs(1, 4)),
        life(80, ending="signal", jobs=jobs(1, 2, 5), program="worker-default-2", host="web-2"),
    )
    assert found
    assert (found.job_id, found.fence, found.worker_id) == (1, 101, 1)


@pytest.mark.parametrize(
    "lives",
    [
        [life(1, jobs=jobs(1, 2)), life(2, jobs=jobs(1, 2)), life(3, jobs=jobs(1, 2, 3))],
        [life(1, jobs=jobs(1)), life(2, jobs=jobs(1))],
        [life(1, jobs=jobs(1)), life(2, jobs=jobs(1)), life(3, jobs=[])],
        [life(1, jobs=jobs(1)), life(2, jobs=jobs(1)), life(3, jobs=None)],
        [life(1, jobs=jobs(1)), life(2, jobs=jobs(1)), life(3, jobs=jobs(1), asked=True)],
        [life(1, jobs=jobs(1)), life(2, jobs=jobs(1)), life(3, jobs=jobs(1), ending="unknown")],
        [life(1, jobs=jobs(1)), life(2, jobs=jobs(1)), life(300, jobs=jobs(1))],
        [life(1, jobs=jobs(1), worker_id=None), life(2, jobs=jobs(1)), life(3, jobs=jobs(1))],
        [life(1, jobs=jobs(9)), life(2, jobs=jobs(1)), life(3, jobs=jobs(1)), life(4, jobs=jobs(1))],
        # so many that some may not have been noted
        [life(n, jobs=jobs(*range(n, n + crash_loops.MOST_JOBS))) for n in (1, 2, 3)],
    ],
)
def test_where_it_is_not_sure_no_job_is_to_blame(lives: list[ProcessRow]) -> None:
    assert blamed(*lives) is None


@given(st.lists(st.frozensets(st.integers(2, 9)), min_size=3, max_size=6))
def test_no_innocent_is_ever_blamed_for_what_another_did(beside: list[frozenset[int]]) -> None:
    """Job 1 kills its keeper each time, whatever else is in hand."""
    lives = [life(n + 1, jobs=jobs(1, *sorted(others))) for n, others in enumerate(beside)]
    found = blamed(*lives)
    assert found is None or found.job_id == 1
    assert (found is None) is bool(frozenset.intersection(*beside))


def test_the_evidence_tells_what_to_look_at() -> None:
    lives = [
        life(1, ending="signal", code_version="v8", jobs=jobs(*range(1, 31))),
        life(10, code=3, code_version="v8"),
        life(20, code_version="v8", jobs=[]),
    ]
    before = life(900, code_version="v7", asked=True)
    found = judged(*lives, before)
    assert found
    first, second, third = found.evidence["ends"]
    assert (first["signal"], first["code"], second["code"]) == (9, None, 3)
    assert (len(first["jobs"]), first["more_jobs"], second["jobs"], third["jobs"]) == (20, 10, None, [])
    assert (found.evidence["version"], found.evidence["version_before"]) == ("v8", "v7")
    same = judged(*lives, replace(before, code_version="v8"))
    assert same
    assert same.evidence["version_before"] is None


@pytest.mark.parametrize(
    ("logs", "line", "times"),
    [
        (["", None, " \n"], None, 0),
        (["a\n12:01 no disk 0xfe\n", "b\n12:02 no disk 0x01", "other"], "12:01 no disk 0xfe", 2),
        (["one", "two"], "one", 1),
        (["x" * 900], "x" * crash_loops.SHOWN_LINE, 1),
    ],
)
def test_the_common_last_line_may_vary_in_its_numbers(
    logs: list[str | None], line: str | None, times: int
) -> None:
    assert common_line(logs) == (line, times)


def told_apart(lives: list[ProcessRow], *, held: float = 10.0) -> dict[int, float]:
    """When the jobs of the newest death come back; the order stays as it is."""
    return crash_loops.apart(lives[0], lives, rule=RULE, held_seconds=held, order=lambda ids: None)


def test_jobs_that_several_deaths_had_in_common_come_back_apart() -> None:
    before, again = life(30, jobs=jobs(1, 2, 3, 4)), life(1, jobs=jobs(1, 2, 3, 4, 5), uptime_seconds=8.0)
    assert told_apart([before]) == {}
    assert told_apart([again, before]) == {1: 0.0, 2: 0.0, 3: 23.0, 4: 23.0, 5: 0.0}
    assert told_apart([life(1, jobs=jobs(1, 5)), before]) == {}
    assert told_apart([replace(again, ending="unknown", code=None), before]) == {}
    assert told_apart([replace(again, uptime_seconds=9000.0), before], held=0.0)[4] == 65.0


@given(st.randoms(use_true_random=False), st.integers(2, 8))
def test_the_poison_among_jobs_that_take_longer_than_it_does_is_found_and_no_other_is_blamed(
    chance: Random, n: int
) -> None:
    """All are in hand together again and again, each time those of them that come back with job 1."""
    in_hand, lives = set(range(1, n + 1)), [life(170, jobs=jobs(*range(1, n + 1)))]
    rule = replace(RULE, seconds=9000.0)
    for death in range(40):
        newest = life(169 - death, jobs=jobs(*sorted(in_hand)))
        lives.insert(0, newest)
        found = crash_loops.poison(newest, lives, rule=rule)
        if found is not None:
            assert found.job_id == 1
            return
        returning = crash_loops.apart(newest, lives, rule=rule, held_seconds=10.0, order=chance.shuffle)
        in_hand = {job for job, after in returning.items() if after == returning[1]} if returning else {1}
    raise AssertionError("it was never found")
