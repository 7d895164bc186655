"""A program that crashes in a loop under a real supervisord: held back, taken up by the next agent, released."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shiftboss import acts
from shiftboss.queue.store import holds, hosts
from shiftboss.queue.store.holds import HoldRow
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf.listener import Listener
from tests.acts.people import person
from tests.programs.supervisords import START_SECONDS, Supervisord
from tests.programs.test_supervisor_listener import Watching, program, serving
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.waiting import wait_for

pytestmark = [pytest.mark.requirement("B2", "L28"), COMMITTED]

LOOPS = program("web", "echo at $$ no disk; sleep 1.1; exit 3", restart=True, start_seconds=1)
"""It lives past its `startsecs` each time, so supervisord starts it for ever."""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Watching]:
    """The agent of the host."""
    making.empty()
    loop = asyncio.new_event_loop()
    watching = Watching(tmp_path, loop)
    yield watching
    watching.do(watching.listener._connection.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    making.empty()


def until(agent: Watching, condition: Callable[[], Any]) -> Any:
    """Let the agent work until this holds."""

    def worked() -> Any:
        agent.once()
        agent.do(agent.listener.hold())
        return condition()

    return wait_for(worked, seconds=START_SECONDS, every=0.1)


def newest() -> HoldRow | None:
    """The newest hold."""
    found = run(holds.holds(authority=making.SYSTEM, limit=1))
    return found[0] if found else None


def dead(agent: Watching, listener: Listener) -> None:
    """End an agent as by SIGKILL: it says nothing more, and its lease runs out."""
    agent.do(listener._connection.close())
    making.execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '11 seconds'")


def test_a_program_that_crashes_in_a_loop_is_held_back_taken_up_and_released(
    tmp_path: Path, agent: Watching
) -> None:
    first = agent.listener
    with serving(tmp_path, [LOOPS]) as host:
        held = until(agent, lambda: newest() if state(host) == "STOPPED" else None)
        assert (held.program, held.step, held.evidence["times"]) == ("web", 1, 3)
        assert [end["code"] for end in held.evidence["ends"]] == [3, 3, 3]
        assert min(end["uptime_seconds"] for end in held.evidence["ends"]) > 1
        assert (held.evidence["line"].endswith("no disk"), held.evidence["line_times"]) == (True, 3)
        [row] = until(agent, lambda: [row for row in holds_open() if row.was_stopped])
        assert row.is_in_force

        # It dies, and its time comes while nobody is there.
        dead(agent, first)
        making.execute("update shiftboss_hold set until = clock_timestamp()")
        agent.another()
        agent.once()
        assert run(hosts.hosts(authority=making.SYSTEM))[0].alive
        ended = until(agent, lambda: newest() if not holds_open() else None)
        assert (ended.id, ended.released_as) == (held.id, "time")
        assert state(host) in {"STARTING", "RUNNING", "EXITED"}

        # It has not mended: the next end is enough, and the hold is longer.
        again = until(agent, lambda: state(host) == "STOPPED" and newest())
        assert (again.step, again.evidence["times"]) == (2, 1)
        assert 15 < (again.until - again.held_at).total_seconds() < 25
        until(agent, lambda: [row for row in holds_open() if row.was_stopped])

        acts.release_program("web-1", "web", by=person())
        until(agent, lambda: not holds_open())
        assert host.pid_of("web")
        released = newest()
        assert released
        assert (released.released_as, released.released_by) == ("release", person().name)


def state(host: Supervisord) -> str:
    """What supervisord says of the program."""
    return str(host.programs()["web"]["statename"])


def holds_open() -> list[holds.OpenHold]:
    """What is owed to programs."""
    return run(holds.open_holds(authority=making.SYSTEM, host="web-1"))
