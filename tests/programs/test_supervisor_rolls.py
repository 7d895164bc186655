"""What an agent does for a rolling restart and for a pool's count: the decisions, as tables."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shiftboss import conf
from shiftboss.conf import Pool
from shiftboss.queue.store.rolls import Move, Step
from shiftboss.queue.store.scales import Pressure, ScaleRow
from shiftboss.supervisor_conf.rolls import Deed, Patience, Program, decide
from shiftboss.supervisor_conf.scaling import Pace, Standing, Streak, count_of, is_a_persons, unsettled
from shiftboss.supervisor_conf.scaling import decide as decide_count

pytestmark = pytest.mark.requirement("L31")

PATIENCE = Patience(stop=60.0, start=30.0, prove=100.0, claim=20.0, note=10.0)
STEP = Step(
    roll_id=1,
    number=1,
    program="worker-default-1",
    pool="default",
    state="waiting",
    code_wanted=None,
    seconds=1.0,
    launcher=100,
    launcher_after=None,
    life=None,
    ending=None,
    code=None,
    signal=None,
    log=None,
    worker_id=None,
    code_version=None,
    beats=False,
    claims=False,
    waits=False,
    fallen=None,
)
OLD, NEW, DOWN = Program("RUNNING", 100), Program("RUNNING", 200), Program("STOPPED", None)
ENDED: dict[str, Any] = {"life": 200, "ending": "code", "code": 1, "log": "Traceback\nImportError: no module\n\n"}
LIVES: dict[str, Any] = {"life": 200, "worker_id": 7, "code_version": "v2"}
FAILED = Move(to="failed")


@pytest.mark.parametrize(
    ("state", "known", "program", "next_one"),
    [
        # Before it is touched.
        ("waiting", {}, OLD, Move(to="draining", launcher=100)),
        ("waiting", {}, NEW, Move(to="draining", launcher=200)),
        ("waiting", {}, Program("BACKOFF", None), Move(to="draining")),
        ("waiting", {}, Program("STOPPING", 100), None),
        ("waiting", {}, DOWN, Move(to="done")),
        ("waiting", {}, None, Move(to="done")),
        # It finishes what it runs.
        ("draining", {}, OLD, Deed.DRAIN),
        ("draining", {}, Program("STOPPING", 100), None),
        ("draining", {}, Program("BACKOFF", None), Deed.DRAIN),
        ("draining", {}, DOWN, Move(to="starting")),
        ("draining", {}, NEW, Move(to="proving", launcher_after=200)),
        ("draining", {"seconds": 61.0}, Program("STOPPING", 100), FAILED),
        # It is started anew.
        ("starting", {}, DOWN, Deed.START),
        ("starting", {}, None, Deed.START),
        ("starting", {}, Program("STARTING", 200), Move(to="proving", launcher_after=200)),
        ("starting", {}, Program("BACKOFF", None), None),
        ("starting", {"seconds": 11.0}, Program("FATAL", None), FAILED),
        ("starting", ENDED, Program("BACKOFF", None), FAILED),
        ("starting", {"seconds": 31.0}, DOWN, FAILED),
        # It proves itself.
        ("proving", {}, NEW, None),
        ("proving", LIVES, NEW, None),
        ("proving", LIVES | {"beats": True}, NEW, None),
        ("proving", LIVES | {"claims": True}, NEW, None),
        ("proving", LIVES | {"beats": True, "seconds": 21.0}, NEW, Move(to="done")),
        ("proving", LIVES | {"beats": True, "seconds": 21.0, "waits": True}, NEW, FAILED),
        ("proving", LIVES | {"beats": True, "claims": True}, NEW, Move(to="done")),
        ("proving", LIVES | {"beats": True, "claims": True, "code_wanted": "v2"}, NEW, Move(to="done")),
        ("proving", LIVES | {"code_wanted": "v3"}, NEW, FAILED),
        ("proving", ENDED, Program("RUNNING", 300), FAILED),
        ("proving", {}, Program("RUNNING", 300), None),
        ("proving", {"seconds": 101.0}, NEW, FAILED),
        ("proving", {"seconds": 101.0}, Program("RUNNING", 300), FAILED),
    ],
)
def test_each_step_of_a_roll_is_decided_by_what_is_seen(
    state: str, known: dict[str, Any], program: Program | None, next_one: Deed | Move | None
) -> None:
    found = decide(replace(STEP, state=state, launcher_after=200, **known), program, PATIENCE)
    match next_one:
        case Move(to="failed"):
            assert isinstance(found, Move)
            assert (found.to, bool(found.why)) == ("failed", True)
        case Move(to="done") if state == "proving":
            assert found == Move(to="done", worker_id=7, code_version="v2")
        case _:
            assert found == next_one


def test_why_a_worker_does_not_come_up_is_its_exit_and_its_last_word() -> None:
    found = decide(replace(STEP, state="starting", **ENDED), Program("BACKOFF", None), PATIENCE)
    assert found == Move(
        to="failed", why="it does not come up: exit code 1; its log ends with: ImportError: no module"
    )
    killed = replace(STEP, state="proving", life=200, ending="signal", signal=9)
    assert decide(killed, DOWN, PATIENCE) == Move(to="failed", why="it does not come up: signal 9")
    other = replace(STEP, state="proving", code_wanted="v3", **LIVES)
    assert isinstance(found := decide(other, NEW, PATIENCE), Move)
    assert found.why == "it runs version v2, not v3"


POOL = Pool(name="default", workers=2, min_workers=1, max_workers=4, scale_wait_seconds=10.0)
PACE = Pace(long_looks=2, short_looks=3, grow_seconds=15.0, shrink_seconds=60.0)
LONG, SHORT = Streak(long=2), Streak(short=3)


@pytest.mark.parametrize(
    ("count", "streak", "since", "workers", "right"),
    [
        # Jobs wait for too long.
        (2, LONG, None, {"a": (2, 4)}, 3),
        (2, Streak(long=1), None, {"a": (2, 4)}, 2),
        (2, LONG, 14.0, {"a": (2, 4)}, 2),
        (2, LONG, 15.0, {"a": (2, 4)}, 3),
        (4, LONG, None, {"a": (4, 4)}, 4),
        # None waits.
        (2, SHORT, None, {"a": (2, 4)}, 1),
        (2, Streak(short=2), None, {"a": (2, 4)}, 2),
        (2, SHORT, 59.0, {"a": (2, 4)}, 2),
        (1, SHORT, None, {"a": (1, 4)}, 1),
        # They wait, but not for too long.
        (3, Streak(), 600.0, {"a": (3, 4)}, 3),
        # Of several hosts the smallest grows, the largest shrinks; of equals one.
        (2, LONG, None, {"a": (2, 4), "b": (1, 4)}, 2),
        (1, LONG, None, {"a": (1, 4), "b": (2, 4)}, 2),
        (2, LONG, None, {"a": (2, 4), "b": (2, 4)}, 3),
        (2, LONG, None, {"a": (2, 4), "b": (1, 1)}, 3),
        (2, SHORT, None, {"a": (2, 4), "b": (3, 4)}, 2),
        (3, SHORT, None, {"a": (3, 4), "b": (2, 4)}, 2),
        (2, SHORT, None, {"a": (2, 4), "b": (2, 4)}, 2),
        # A host that the record does not hear of decides nothing.
        (2, LONG, None, {"b": (1, 4)}, 2),
        # What is beyond the bounds comes back into them.
        (0, Streak(), 1.0, {"a": (0, 4)}, 1),
        (6, Streak(), 1.0, {"a": (6, 6)}, 5),
    ],
)
def test_a_pool_grows_and_shrinks_between_its_bounds(
    count: int, streak: Streak, since: float | None, workers: dict[str, tuple[int, int]], right: int
) -> None:
    standing = Standing(host="a", count=count, changed_seconds=since, pressure=Pressure(None, workers))
    assert decide_count(POOL, standing, streak, PACE) == right


def test_a_load_that_comes_and_goes_does_not_make_a_pool_flap() -> None:
    streak, counts, count, since = Streak(), [], 2, 600.0
    for look in range(200):
        oldest = 11.0 if look % 4 < 2 else 4.0
        streak = streak.with_one(oldest, 10.0)
        standing = Standing(
            host="a", count=count, changed_seconds=since, pressure=Pressure(oldest, {"a": (count, 4)})
        )
        right = decide_count(POOL, standing, streak, PACE)
        streak, since = (Streak(), 0.0) if right != count else (streak, since + 3.0)
        count = right
        counts.append(count)
    assert counts == sorted(counts)
    assert counts[-1] == 4


def info(state: str, *, start: int = 0, stop: int = 0) -> dict[str, Any]:
    """What supervisord says of a program."""
    up = state in ("RUNNING", "STARTING")
    return {"statename": state, "start": start, "stop": stop, "pid": 7 if up else 0}


@pytest.mark.parametrize(
    ("count", "infos", "start", "stop"),
    [
        # supervisord began anew: two by its settings, the rest never started.
        (4, ["RUNNING", "RUNNING", "", ""], [3, 4], []),
        (1, ["RUNNING", "RUNNING", "", ""], [], [2]),
        (0, ["RUNNING", "STARTING", "", ""], [], [1, 2]),
        (2, ["RUNNING", "RUNNING", "", ""], [], []),
        # What a person has stopped or started since stays so.
        (4, ["RUNNING", "stopped", "RUNNING", "stopped"], [], []),
        (1, ["RUNNING", "again", "RUNNING", ""], [], []),
        # A supervisord that does not know them yet.
        (4, ["RUNNING"], [], []),
    ],
)
def test_a_supervisord_that_began_anew_is_brought_to_the_count_that_was_said(
    count: int, infos: list[str], start: list[int], stop: list[int]
) -> None:
    known = {
        "": info("STOPPED"),
        "RUNNING": info("RUNNING", start=5),
        "STARTING": info("STARTING", start=5),
        "stopped": info("STOPPED", start=5, stop=6),
        "again": info("RUNNING", start=7, stop=6),
    }
    found = {f"sb-worker-default-{number}": known[one] for number, one in enumerate(infos, 1)}
    wanted = tuple([f"sb-worker-default-{number}" for number in numbers] for numbers in (start, stop))
    assert unsettled(POOL, count, found, "sb-") == wanted


def test_the_settings_count_again_once_they_say_another_number() -> None:
    row = ScaleRow("a", "default", 3, 2, "kim", datetime(2026, 1, 1, tzinfo=UTC), False, 5.0)
    assert count_of(POOL, row) == 3
    assert count_of(replace(POOL, workers=1), row) == 1
    assert count_of(POOL, None) == 2
    assert is_a_persons(row)
    assert not is_a_persons(replace(row, age_seconds=601.0))
    assert not is_a_persons(replace(row, automatic=True))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"min_workers": 3}, "'min_workers'] \\(3\\) must be at most its 'workers' \\(2\\)"),
        ({"min_workers": True}, "whole number from 0 to 1000"),
        ({"scale_wait_seconds": 0}, "number above 0"),
        ({"scale_wait_seconds": 5}, "can neither grow nor shrink"),
    ],
)
def test_bounds_between_which_no_pool_could_scale_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(conf.ConfigError, match=why):
        conf.read({"POOLS": {"default": {"workers": 2} | given}})
    read = conf.read({"POOLS": {"default": {"workers": 2, "min_workers": 1, "scale_wait_seconds": 5}}})
    assert (read.pools["default"].least_workers, read.pools["default"].most_workers) == (1, 2)
