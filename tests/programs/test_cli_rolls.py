"""`shiftboss roll` and `shiftboss deploy`, beside agents that do their steps at once."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shiftboss import conf
from shiftboss.cli import rolls as commanded
from shiftboss.queue.errors import SchemaTooOld
from shiftboss.queue.store import commands, rolls
from shiftboss.queue.store.rolls import Move, Step
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf.written import Written
from tests.programs.shell import Shell
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.store.sessions import Session

pytestmark = [pytest.mark.requirement("L31", "B15"), COMMITTED]

PROGRAMS = [
    {"name": "web", "pool": None},
    {"name": "listener", "pool": None},
    {"name": "worker-default-1", "pool": "default"},
    {"name": "worker-default-2", "pool": "default"},
    {"name": "worker-heavy-1", "pool": "heavy", "launcher": None},
]
WHY = ("--reason", "new code")
NEXT = {"waiting": "draining", "draining": "starting", "starting": "proving", "proving": "done"}


@dataclass
class Agent:
    """One that moves the steps of rolls, and does what else is asked of it, as it is told."""

    fence: int
    move: Callable[[Step], Move | None] = lambda step: Move(to=NEXT[step.state], worker_id=7, code_version="v2")
    is_followed: bool = True
    refuses: str | None = None
    asked: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Until it is told to stop."""
        session = Session(making.address())
        holder: dict[str, Any] = {"authority": making.SYSTEM, "host": "web-1", "fence": self.fence}
        try:
            while not self.stop.wait(0.02):
                step = session.run(rolls.step(authority=making.SYSTEM, host="web-1"))
                if step and (to := self.move(step)):
                    session.run(rolls.move(step, to, **holder))
                for claim in session.run(commands.claim(**holder)):
                    self.asked.append(f"{claim.verb} {claim.program}")
                    failed = claim.program == self.refuses
                    answer = (
                        {"error": "restart it on its host"} if failed else {"states": {claim.program: "RUNNING"}}
                    )
                    ending = commands.end(
                        claim.id, authority=making.SYSTEM, fence=self.fence, failed=failed, result=answer
                    )
                    session.run(ending)
                    if claim.program == "listener" and self.is_followed:
                        session.execute("update shiftboss_host set started_at = clock_timestamp()")
        finally:
            session.close()


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """The agent of a host that has seen its programs."""
    monkeypatch.setattr(commanded, "LOOK_SECONDS", 0.005)
    making.empty()
    agent = Agent(making.a_host(programs=PROGRAMS))
    thread = threading.Thread(target=agent.work)
    thread.start()
    yield agent
    agent.stop.set()
    thread.join(timeout=60)
    making.empty()


def waits(step: Step) -> Move | None:
    """An agent that does nothing."""
    return None


def test_a_roll_is_told_as_it_goes_on(sh: Shell, agent: Agent) -> None:
    ran = sh("roll", "default", *WHY)
    assert (ran.code, ran.err) == (0, "")
    number = run(rolls.rolls(authority=making.SYSTEM))[0].id
    assert ran.lines[0] == f"rolling restart {number} of the pool default: 2 workers, one after the other"
    assert "  1/2 worker-default-1 on web-1: done, - → v2" in ran.lines
    assert ran.lines[-1] == f"rolling restart {number}: done"
    told = sh("roll", "--follow", number, "--format", "json").json
    assert (told["roll"]["state"], told["roll"]["workers"], told["roll"]["code_after"]) == ("done", 2, ["v2"])
    assert [(one["program"], one["state"]) for one in told["steps"]] == [
        ("worker-default-1", "done"),
        ("worker-default-2", "done"),
    ]
    [row] = sh("roll", "--list").lines[1:]
    assert row.split()[:4] == [str(number), "default", "done", "2/2"]
    assert sh("roll", "--list", "--format", "json").json["rolls"][0]["id"] == str(number)


def test_one_that_stops_says_why_and_is_no_success(sh: Shell, agent: Agent) -> None:
    agent.move = lambda step: (
        Move(to="failed", why="exit code 1") if step.state == "starting" else Move(to=NEXT[step.state])
    )
    ran = sh("roll", *WHY)
    assert ran.code == 1
    assert ran.lines[-1].endswith(": stopped: worker-default-1 on web-1: exit code 1")
    assert "  1/2 worker-default-1 on web-1: failed: exit code 1" in ran.lines


def test_who_does_not_wait_can_follow_and_cancel_later(sh: Shell, agent: Agent) -> None:
    agent.move = waits
    ran = sh("roll", *WHY, "--wait", 0)
    number = run(rolls.rolls(authority=making.SYSTEM))[0].id
    assert ran.code == 0
    assert ran.lines[-1].endswith(f"0 of 2 done; it goes on: shiftboss roll --follow {number}")
    again = sh("roll", *WHY)
    assert (again.code, again.err) == (
        1,
        f"shiftboss: rolling restart {number} runs: wait for its end, or cancel it\n",
    )
    assert sh("roll", "--follow", number, "--wait", 0).code == 0
    assert sh("roll", "--cancel", number).code == 2
    cancelled = sh("roll", "--cancel", number, *WHY)
    assert (cancelled.code, cancelled.out) == (
        0,
        f"rolling restart {number}: cancelled; 0 of 2 workers were done before\n",
    )
    ended = sh("roll", "--cancel", number, *WHY)
    assert (ended.code, ended.err) == (1, f"shiftboss: rolling restart {number} has ended: it is cancelled\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("roll",), 2, "roll_pool wants a reason"),
        (("roll", "heavy", *WHY), 1, "no worker of the pool 'heavy' is up"),
        (("roll", "default", "--list"), 2, "a pool goes without"),
        (("roll", "--follow", 987654), 1, "there is no rolling restart 987654"),
        (("roll", "--cancel", 987654, *WHY), 1, "there is no rolling restart 987654"),
        (("deploy", *WHY), 2, "no terminal to ask: add --yes"),
        (("deploy", "--yes"), 2, "roll_pool wants a reason"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    sh: Shell, agent: Agent, words: tuple[object, ...], code: int, said: str
) -> None:
    ran = sh(*words)
    assert ran.code == code
    assert said in ran.err
    assert run(rolls.rolls(authority=making.SYSTEM)) == []


def test_a_silent_host_is_named(sh: Shell, agent: Agent) -> None:
    making.a_host("web-2", programs=PROGRAMS)
    making.execute("update shiftboss_host set heartbeat_at = now() - interval '1 minute' where name = 'web-2'")
    ran = sh("roll", "default", *WHY)
    assert (ran.code, ran.err) == (0, "the agent of web-2 is silent: its workers stay as they are\n")


def test_a_deploy_restarts_the_workers_and_then_what_is_single(sh: Shell, agent: Agent) -> None:
    planned = sh("deploy", "--dry-run")
    assert planned.code == 1
    assert planned.lines[-3:] == [
        "2 workers would be restarted, one after the other:",
        "  worker-default-1 on web-1",
        "  worker-default-2 on web-1",
    ]
    assert run(rolls.rolls(authority=making.SYSTEM)) == []
    told = sh("deploy", *WHY, "--yes", "--format", "json").json
    assert told["roll"]["state"] == "done"
    assert [(one["of"], one["done"]) for one in told["restarted"]] == [("web", True), ("listener", True)]
    assert agent.asked == ["restart web", "restart listener"]
    assert sh("deploy", *WHY, "--yes", "--workers-only").code == 0
    assert agent.asked == ["restart web", "restart listener"]


def test_an_agent_that_is_not_followed_by_another_is_no_success(
    sh: Shell, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftboss.cli.deploy.AGENT_SECONDS", 0.1)
    agent.is_followed = False
    ran = sh("deploy", *WHY, "--yes")
    assert ran.code == 1
    assert ran.err.endswith(
        "listener on web-1: no new agent has told of web-1 within 0.1 seconds: see the log of listener there\n"
    )


def test_an_agent_that_only_its_host_can_restart_stays(sh: Shell, agent: Agent) -> None:
    agent.refuses = "listener"
    ran = sh("deploy", *WHY, "--yes")
    assert (ran.code, ran.lines[-1]) == (0, "listener on web-1: not done: restart it on its host")


def test_a_deploy_compares_what_was_written_for_a_supervisord_of_ones_own(
    sh: Shell, agent: Agent, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr("shiftboss.supervisor_conf.control.is_running", lambda at: asked.append(at) or True)
    file, by = (
        tmp_path / "ours.conf",
        Written(home=home, include=True, prefix="sb-", socket=tmp_path / "their.sock"),
    )
    assert sh("deploy", "--dry-run").lines[0].startswith("nothing to compare: no supervisord runs that")
    by.write(file, by.programs(conf.get()))
    assert sh("deploy", "--dry-run").lines[0] == "the configuration is as the settings say"
    assert set(asked) == {by.socket}
    file.write_text(file.read_text().replace("[program:sb-maintainer]", "[program:sb-forgotten]"))
    planned = sh("deploy", "--dry-run")
    assert planned.code == 1
    assert {"-[program:sb-forgotten]", "+[program:sb-maintainer]"} <= set(planned.lines)
    refused = sh("deploy", *WHY, "--yes")
    assert (refused.code, "--apply writes it" in refused.err) == (1, True)
    file.unlink()
    file.mkdir()
    (file / "in the way").touch()
    monkeypatch.setattr("shiftboss.supervisor_conf.comparison._read", lambda file: "")
    refused = sh("deploy", *WHY, "--yes", "--apply")
    assert (refused.code, "cannot be written: " in refused.err) == (1, True)
    assert run(rolls.rolls(authority=making.SYSTEM)) == []


def test_a_deploy_that_stops_touches_nothing_else(sh: Shell, agent: Agent) -> None:
    agent.move = lambda step: Move(to="failed", why="exit code 1")
    assert sh("deploy", *WHY, "--yes").code == 1
    assert agent.asked == []


def test_a_deploy_is_refused_while_migrations_are_missing(
    sh: Shell, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks() -> None:
        raise SchemaTooOld("the database lacks the migrations shop.0002: run `python -m django migrate`")

    monkeypatch.setattr("shiftboss.supervisor_conf.readiness.check_migrations", lacks)
    ran = sh("deploy", *WHY, "--yes")
    assert (ran.code, "run `python -m django migrate`" in ran.err) == (1, True)
    assert run(rolls.rolls(authority=making.SYSTEM)) == []


def test_who_thinks_better_of_it_deploys_nothing(sh: Shell, agent: Agent) -> None:
    sh.at_a_terminal("n")
    ran = sh("deploy", *WHY)
    assert (ran.code, ran.err) == (
        1,
        "Restart 2 workers one after the other? [y/N] shiftboss: nothing was done\n",
    )
    assert run(rolls.rolls(authority=making.SYSTEM)) == []
