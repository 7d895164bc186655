"""How programs of hosts fared, and logs that are looked at again."""

import time
from dataclasses import replace
from typing import Any

import pytest

from shiftboss.queue.store import commands, processes, programs
from shiftboss.queue.store.commands import Order
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.programs import History
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, a_host, execute

pytestmark = pytest.mark.requirement("L28", "B1")

HOUR = 3600.0


def life(started_hours_ago: float, ended_hours_ago: float | None = None, **more: Any) -> Life:
    """A life of a worker that ended by a signal unless it is said how."""
    now = time.time()
    given: dict[str, Any] = {"ending": "signal", "signal": 9} | more
    return Life(
        program="worker-default-1",
        pool="default",
        launcher=int(1000 * started_hours_ago),
        started=now - HOUR * started_hours_ago,
        ended=None if ended_hours_ago is None else now - HOUR * ended_hours_ago,
        **(given if ended_hours_ago is not None else {}),
    )


def noted(*lives: Life) -> None:
    """Let the agent of a host note these."""
    assert run(processes.note(lives, authority=SYSTEM, host="web-1", fence=a_host()))


def history(perform: Perform, program: str = "worker-default-1") -> History:
    """How a program of the host fared."""
    [found] = perform(programs.history([("web-1", program)], authority=SYSTEM))
    return found


def test_ends_of_a_day_are_counted_by_hours_and_those_that_nobody_wanted_apart(perform: Perform) -> None:
    noted(
        life(400.0, 30.0),
        life(300.0, 23.5),  # it began long before the day, and ended within it
        life(20.0, 2.5, ending="code", signal=None, code=1),
        life(2.5, 2.4, asked=True),
        life(2.4, 0.5, ending="code", signal=None, code=0),
        life(0.4),
    )
    found = history(perform)
    assert sorted((hour.hours_ago, hour.ends, hour.wrong) for hour in found.hours) == [
        (0, 1, 0),
        (2, 2, 1),
        (23, 1, 1),
    ]
    assert (found.ending, found.code, found.signal, found.asked) == ("code", 0, None, False)


def test_a_program_of_which_nothing_is_noted_has_no_history(perform: Perform) -> None:
    noted(replace(life(1.0), program="web"))
    assert (history(perform).ended_at, history(perform).hours) == (None, [])
    assert (history(perform, "web").ended_at, history(perform, "web").hours) == (None, [])


def test_last_lines_are_read_where_they_are_asked_for(perform: Perform) -> None:
    wanted = life(1.5, 1.0, log="goodbye", asked=True, signal=15)
    noted(life(4.0, 3.0, log="earlier"), life(3.0, 2.0, log="the last line"), wanted, life(0.5))

    def logs(**which: Any) -> list[str | None]:
        return [row.log for row in perform(processes.lives(authority=SYSTEM, **which))]

    assert logs() == [None, "goodbye", "the last line", "earlier"]
    assert logs(logs=False) == logs(logs=False, log_of=0) == [None] * 4
    of_program = {"host": "web-1", "program": "worker-default-1", "logs": False}
    assert logs(**of_program, log_of=0) == [None, None, "the last line", None]
    _, asked, *_ = run(processes.lives(authority=SYSTEM))
    assert logs(**of_program, log_of=asked.id) == [None, "goodbye", None, None]


def test_what_was_asked_of_a_program_and_of_its_pool_is_told_without_its_log(perform: Perform) -> None:
    known = [{"name": "web", "pool": None}, {"name": "worker-default-1", "pool": "default"}]
    a_host(programs=known)
    for order in (
        Order(host="web-1", verb="restart", program="worker-default-1"),
        Order(host="web-1", verb="tail", program="worker-default-1"),
        Order(host="web-1", verb="restart", program="web"),
        Order(host="web-1", verb="scale", pool="default", count=1),
    ):
        run(commands.ask(order, authority=SYSTEM, by="kim"))
    asked = commands.asked_of("worker-default-1", authority=SYSTEM, host="web-1", pool="default")
    assert [row.verb for row in perform(asked)] == ["scale", "restart"]
    [one] = perform(commands.asked_of("web", authority=SYSTEM, host="web-1", pool=None))
    assert (one.verb, one.program) == ("restart", "web")
    assert perform(commands.asked_of("web", authority=SYSTEM, host="web-2", pool=None)) == []


def a_log_that_was_told() -> tuple[int, int]:
    """A command for a log that an agent has answered, and that agent's fence."""
    fence = a_host(programs=[{"name": "web", "pool": None}])
    asked = run(commands.ask(Order(host="web-1", verb="tail", program="web"), authority=SYSTEM, by="kim")).id
    assert asked
    told(asked, fence, "first")
    return asked, fence


def told(command: int, fence: int, line: str) -> None:
    """Let the agent answer."""
    assert [one.id for one in run(commands.claim(authority=SYSTEM, host="web-1", fence=fence))] == [command]
    assert run(commands.end(command, authority=SYSTEM, fence=fence, failed=False, result={"lines": [line]}))


def test_a_log_is_looked_at_again_by_the_same_command(perform: Perform) -> None:
    command, fence = a_log_that_was_told()
    assert not perform(commands.tail_again(command + 1, authority=SYSTEM, by="kim"))
    assert perform(commands.tail_again(command, authority=SYSTEM, by="kim"))
    row = run(commands.command(command, authority=SYSTEM))
    assert row
    assert (row.state, row.result, row.ended_at) == ("waiting", {"lines": ["first"]}, None)
    assert not perform(commands.tail_again(command, authority=SYSTEM, by="kim"))
    told(command, fence, "second")
    row = run(commands.command(command, authority=SYSTEM))
    assert row
    assert (row.state, row.result) == ("done", {"lines": ["second"]})


@pytest.mark.parametrize(
    "before",
    [
        "update shiftboss_command set asked_by = 'lee'",
        "update shiftboss_command set asked_at = asked_at - interval '11 minutes'",
        "update shiftboss_command set verb = 'restart'",
        "update shiftboss_host set stopped_at = now()",
        "update shiftboss_host set heartbeat_at = heartbeat_at - interval '1 minute'",
        "update shiftboss_host set name = 'web-2'",
    ],
)
def test_a_log_is_not_looked_at_again_by_others_or_later_or_where_nobody_answers(
    perform: Perform, before: str
) -> None:
    command, _ = a_log_that_was_told()
    execute(before)
    assert not perform(commands.tail_again(command, authority=SYSTEM, by="kim"))
