"""The command line on programs that are held back: who they are, why, and how a person lets them go."""

from collections.abc import Iterator

import pytest

from shiftboss.queue.store import holds
from shiftboss.queue.store.statement import run
from tests.programs.shell import Shell
from tests.store import making
from tests.store.conftest import COMMITTED

pytestmark = [pytest.mark.requirement("B2", "L28"), COMMITTED]

PROGRAMS = [
    {"name": name, "pool": None, "state": "STOPPED", "pid": None, "launcher": None} for name in ("web", "x")
]


@pytest.fixture(autouse=True)
def fence() -> Iterator[int]:
    """The fence of an agent that holds a program back."""
    making.empty()
    fence = making.a_host(programs=PROGRAMS, lease_seconds=3600.0)
    making.a_hold(fence)
    yield fence
    making.empty()


def test_who_is_held_back_is_told_until_when_and_why(sh: Shell) -> None:
    _, web, other = sh("ps").lines
    assert web.split()[2:4] == ["HELD", "until"]
    assert other.split()[2] == "STOPPED"
    one, two = sh("ps", "--format", "json").json["hosts"][0]["programs"]
    assert (one["hold"]["step"], one["hold"]["why"]["line"], two["hold"]) == (1, "no disk", None)
    assert "  crash loop: web on web-1, 3 ends in 40 s, held back until 20" in sh("status").out
    [warning] = [text for text in sh("status", "--format", "json").json["warnings"] if "crash loop" in text]
    assert warning.endswith("Z")


def test_a_program_is_let_go_once_and_started_by_its_agent(sh: Shell, fence: int) -> None:
    ran = sh("release", "web", "--wait", "0")
    assert (ran.code, ran.out) == (0, "web on web-1: held back no more, its agent starts it once it answers\n")
    again = sh("release", "web")
    assert (again.code, again.out) == (1, "")
    assert "web is held back on no host" in again.err
    assert "web on web-1 is not held back" in sh("release", "web", "--host", "web-1").err
    [row] = run(holds.open_holds(authority=making.SYSTEM, host="web-1"))
    assert run(holds.take_up(row.id, authority=making.SYSTEM, fence=fence))
    making.a_hold(fence, after=row.id)
    told = sh("release", "web", "--wait", "0", "--format", "json").json
    assert told["programs"] == [{"host": "web-1", "program": "web", "done": True, "started": False}]


def test_of_programs_that_are_held_on_several_hosts_one_has_to_be_named(sh: Shell) -> None:
    making.a_hold(making.a_host("web-2", programs=PROGRAMS, lease_seconds=3600.0), host="web-2")
    ran = sh("release", "web")
    assert ran.code == 1
    assert "web is held back on web-1, web-2: say which with --host" in ran.err
    assert sh("release", "web", "--host", "web-2", "--wait", "0").code == 0
