"""The auditor finds what must not be, and nothing else."""

from typing import Any

import pytest

from shiftboss.queue.states import State
from tests.faults.audit import Record, Standing, Told, audit, judge
from tests.faults.witness import tasks
from tests.runtime.programs import House, Line, wait_for_state

DONE = Standing("completed", 1, True, True)
AGAIN = Standing("completed", 2, True, True)
LOST = Told("lost", "lease_expired")


def said(*words: str, pid: int = 1) -> list[Line]:
    """A log, one second a line."""
    return [Line(pid, *word.split(), float(at)) for at, word in enumerate(words)]


ONCE = said("began 7.1", "done 7.1")
TWICE = said("began 7.1", "began 7.2", "done 7.2")


@pytest.mark.parametrize(
    ("lines", "rows", "attempts", "kinds"),
    [
        (ONCE, [DONE], {}, []),
        (TWICE, [AGAIN], {1: [LOST]}, []),
        (said("began 7.1", "done 7.1", "began 7.2", "done 7.2"), [AGAIN], {1: [LOST]}, []),
        (
            said("began 7.1", "broke 7.1"),
            [Standing("quarantined", 1, False, False)],
            {1: [Told("failed", "x")]},
            [],
        ),
        (ONCE, [], {}, ["loss", "double"]),
        (ONCE, [DONE, DONE], {}, ["loss"]),
        (ONCE, [Standing("available", 1, False, False)], {1: [LOST]}, ["unfinished"]),
        (TWICE, [AGAIN], {}, ["no_outcome"]),
        (TWICE, [AGAIN], {1: [LOST, LOST]}, ["two_outcomes"]),
        (ONCE, [DONE], {1: [LOST]}, ["two_outcomes"]),
        (TWICE, [AGAIN], {1: [Told("lost", None)]}, ["unexplained"]),
        (said("began 7.1", "began 7.1", "done 7.1"), [DONE], {}, ["double"]),
        (said("began 7.1", "done 7.1", "began 7.2", "done 7.2"), [DONE], {}, ["double"]),
        (said("began 7.1", "done 7.1", "began 7.2", "done 7.2"), [AGAIN], {1: [Told("failed", "x")]}, ["double"]),
        (said("began 7.1"), [DONE], {}, ["double"]),
        (said("began 7.1", "broke 7.1"), [DONE], {}, ["double"]),
        (said("began 7.1", "began 7.2", "tick 7.1", "done 7.2"), [AGAIN], {1: [LOST]}, ["overlap"]),
    ],
)
def test_each_fault_is_found_and_named(
    lines: list[Line], rows: list[Standing], attempts: dict[int, Any], kinds: list[str]
) -> None:
    record = Record({7: rows} if rows else {}, {(7, fence): told for fence, told in attempts.items()})
    assert sorted(finding.kind for finding in judge(lines, record, {7})) == sorted(kinds)


def test_an_overlap_with_a_process_that_was_frozen_is_explained() -> None:
    lines = said("began 7.1", "tick 7.1", "tick 7.1", pid=13) + said("tick 1.1", "began 7.2", "done 7.2")
    record = Record({7: [AGAIN], 1: [Standing("running", 1, True, False)]}, {(7, 1): [LOST]})
    assert [finding.kind for finding in judge(lines, record, {7}, at_rest=False)] == ["overlap"]
    assert judge(lines, record, {7}, frozen={13}, at_rest=False) == []


def test_an_honest_worker_leaves_nothing_to_find(house: House) -> None:
    house.worker(apps="tests.runtime,tests.faults.witness")
    jobs = [
        kind.enqueue().id
        for kind in (tasks.work, tasks.work_alone, tasks.work_in_loop, tasks.fail_at_first, tasks.put_off_at_first)
    ]
    for one in jobs:
        wait_for_state(one, State.COMPLETED, seconds=40)
    assert audit(house.lines(), house.dsn, jobs) == []
    assert [finding.kind for finding in audit([], house.dsn, [*jobs, 10**15])] == ["loss"]
