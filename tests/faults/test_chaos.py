"""A day of chaos in small, and that what would be wrong with one is found.

The whole of it: `python -m bench.chaos`.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.chaos.day import Day, stage_of
from tests.faults.chaos.kinds import COSTLY
from tests.faults.chaos.verdict import Attempt, Held, Job, judge
from tests.runtime.programs import Line

SIZE = int(os.environ.get("SHIFTBOSS_FAULTS", "1"))
CHEAP = (
    "executor killed",
    "some backends terminated",
    "connections reset",
    "answer of a commit lost",
    "bulk cancel",
    "queue paused",
    "limit changed",
    "running rows locked",
)


@pytest.mark.requirement("L30", "L4", "L5", "L29")
def test_a_small_day_of_chaos_leaves_nothing_to_find(tmp_path: Path) -> None:
    with stage_of(tmp_path / "house") as stage:
        small = {"seed": 5, "workers": 2, "gap": 0.3, "faults": CHEAP, "without": COSTLY if SIZE == 1 else ()}
        day = Day(stage, jobs=300 * SIZE, seconds=4 * SIZE, **small)
        findings = day.run(drain_seconds=240)
        print(*day.table(), sep="\n")
        assert findings == []
        assert day.held.ends.total() >= 300 * SIZE * 0.9


def said(*words: str, pid: int = 1) -> list[Line]:
    """A log, one second a line."""
    return [Line(pid, *word.split(), float(at)) for at, word in enumerate(words)]


def job(number: int, kind: str, state: str = "completed", **more: Any) -> Job:
    """A job that was run once."""
    given = {"queue": "default", "key": None, "reason": None, "cause": None, "failures": 0, "losses": 0}
    return Job(**{**given, "id": number, "kind": kind, "state": state, "fence": 1, **more})


IN_LINE = [job(number, "in line", queue="line") for number in (1, 2)]
KEYED = [job(number, "keyed", key="same") for number in (1, 2)]
LIMITED = [job(number, "limited", queue="limited") for number in (1, 2, 3, 4)]
FOUR = [f"{word} {number}.1" for word in ("began", "done") for number in (1, 2, 3, 4)]
FAILED = [Attempt(1, fence, "failed", "handler_raised", {}) for fence in (1, 2, 3)]
DEATHS = [Attempt(1, fence, "lost", "executor_died", {"signal": "SIGSEGV"}) for fence in (1, 2, 3)]
QUARANTINED = {"state": "quarantined", "fence": 3}


@pytest.mark.parametrize(
    ("words", "jobs", "attempts", "effects", "kinds"),
    [
        ([], [job(1, "quick")], [], [], []),
        ([], [job(1, "quick", "cancelled", cause="user")], [], [], ["end"]),
        ([], [job(9, "quick", "cancelled", cause="user")], [], [], []),
        ([], [job(1, "quick", "quarantined", reason="losses_exhausted")], [], [], ["end"]),
        ([], [job(1, "quick", fence=2)], [FAILED[0]], [], ["outcome"]),
        ([], [job(1, "fails at first", fence=2)], [FAILED[0]], [], []),
        ([], [job(1, "fails always")], [], [], ["end"]),
        ([], [job(1, "fails always", reason="failures_exhausted", failures=3, **QUARANTINED)], FAILED, [], []),
        (
            [],
            [job(1, "fails always", reason="failures_exhausted", failures=3, **QUARANTINED)],
            FAILED[:2],
            [],
            ["end"],
        ),
        ([], [job(1, "dies always", reason="poison", losses=3, **QUARANTINED)], DEATHS, [], []),
        ([], [job(1, "dies always", reason="poison", losses=3, **QUARANTINED)], DEATHS[1:], [], ["end"]),
        ([], [job(1, "keyed", "cancelled", cause="superseded")], [], [], []),
        ([], [job(1, "deadline", "cancelled", cause="deadline")], [], [], []),
        ([], [job(1, "deadline", "cancelled", cause="user")], [], [], ["end"]),
        ([], [job(1, "transaction")], [], [(1, 1)], []),
        ([], [job(1, "transaction")], [], [], ["effect"]),
        ([], [job(1, "transaction")], [], [(1, 1), (1, 1)], ["effect"]),
        ([], [job(1, "transaction", fence=2)], [DEATHS[0]], [(1, 1)], ["effect"]),
        ([], [job(9, "transaction", "cancelled", cause="user")], [], [(9, 1)], ["effect"]),
        (["began 1.1", "done 1.1", "began 2.1", "done 2.1"], IN_LINE, [], [], []),
        (["began 2.1", "done 2.1", "began 1.1", "done 1.1"], IN_LINE, [], [], ["line"]),
        (["began 1.1", "began 2.1", "done 1.1", "done 2.1"], IN_LINE, [], [], ["line", "line"]),
        (["began 1.1", "done 1.1", "began 2.1", "done 2.1"], KEYED, [], [], []),
        (["began 1.1", "began 2.1", "done 1.1", "done 2.1"], KEYED, [], [], ["key"]),
        (FOUR, LIMITED, [], [], ["limit"]),
        (FOUR[:3] + FOUR[4:5] + FOUR[3:4], LIMITED, [], [], []),
        (["saved-2 1.1", "found-2 1.2"], [job(1, "goes on")], [], [], []),
        (["saved-2 1.1", "found-1 1.2"], [job(1, "goes on")], [], [], ["checkpoint"]),
    ],
)
def test_what_would_be_wrong_with_a_day_is_found(
    words: list[str], jobs: list[Job], attempts: list[Attempt], effects: list[tuple[int, int]], kinds: list[str]
) -> None:
    held = Held({one.id: one for one in jobs}, {1: attempts}, effects)
    found = judge(said(*words), held, committed=[one.id for one in jobs], cancelled={9})
    assert [finding.kind for finding in found] == kinds


def test_the_runs_of_a_host_that_stood_still_are_no_reproach() -> None:
    held = Held({one.id: one for one in IN_LINE}, {}, [])
    lines = said("began 1.1", "done 1.1", pid=13) + said("began 2.1", "done 2.1")
    assert judge(lines, held, committed=[1, 2], frozen={13}) == []
    assert {finding.kind for finding in judge(lines, held, committed=[1, 2])} == {"line"}
