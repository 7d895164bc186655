"""The commands that look at the programs of hosts, and ask their agents for something."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from shiftboss.queue.store import commands, hosts, processes
from shiftboss.queue.store.commands import Claim
from shiftboss.queue.store.processes import Life
from shiftboss.queue.store.statement import run
from tests.programs.shell import Shell
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.store.sessions import Session

pytestmark = [pytest.mark.requirement("L28", "B15"), COMMITTED]

PROGRAMS = [
    {"name": "web", "pool": None, "cores": 0.5},
    {"name": "worker-default-1", "pool": "default"},
    {"name": "worker-default-2", "pool": "default"},
    {"name": "worker-default-3", "pool": "default", "state": "STOPPED", "pid": None, "launcher": None},
]
WHY = ("--reason", "because")


@dataclass
class Answering:
    """An agent that answers what it is told to, to whoever asks."""

    fence: int
    answer: Callable[[Claim], tuple[bool, dict[str, Any]] | None] = lambda claim: (
        False,
        {"states": {claim.program: "RUNNING"}},
    )
    asked: list[Claim] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """Until it is told to stop."""
        session = Session(making.address())
        try:
            while not self.stop.wait(0.02):
                for claim in session.run(commands.claim(authority=making.SYSTEM, host="web-1", fence=self.fence)):
                    self.asked.append(claim)
                    said = commands.say(claim.id, authority=making.SYSTEM, fence=self.fence, progress="it begins")
                    session.run(said)
                    if (answer := self.answer(claim)) is not None:
                        failed, result = answer
                        ending = commands.end(
                            claim.id, authority=making.SYSTEM, fence=self.fence, failed=failed, result=result
                        )
                        session.run(ending)
        finally:
            session.close()


@pytest.fixture
def agent() -> Iterator[Answering]:
    """The agent of a host that has seen its programs."""
    making.empty()
    answering = Answering(making.a_host(programs=PROGRAMS))
    thread = threading.Thread(target=answering.work)
    thread.start()
    yield answering
    answering.stop.set()
    thread.join(timeout=60)
    making.empty()


def test_the_programs_of_hosts_are_listed_with_how_they_ended_last(sh: Shell, agent: Answering) -> None:
    dead = Life(
        program="web", launcher=9, started=1_796_062_000.0, ended=1_796_062_005.0, ending="signal", signal=9
    )
    asked = Life(program="worker-default-1", launcher=9, started=5.0, ended=6.0, ending="code", code=0, asked=True)
    run(processes.note([dead, asked], authority=making.SYSTEM, host="web-1", fence=agent.fence))
    ran = sh("ps")
    assert (ran.code, ran.err) == (0, "")
    head, web, first, *_, third = ran.lines
    assert head.split() == ["HOST", "PROGRAM", "STATE", "PID", "FOR", "MEMORY", "CPU", "LAST", "END"]
    assert web.split()[:4] == ["web-1", "web", "RUNNING", "2"]
    assert web.endswith("signal 9")
    assert web.split()[5:8] == ["0", "MB", "0.50"]
    assert first.endswith("-")
    assert third.split()[2] == "STOPPED"
    [host] = sh("ps", "--format", "json").json["hosts"]
    assert (host["name"], host["alive"], host["programs"][0]["last_end"]["signal"]) == ("web-1", True, 9)


def test_of_a_host_whose_agent_is_silent_is_said_what_it_saw_last(sh: Shell, agent: Answering) -> None:
    making.execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '1 minute'")
    ran = sh("ps", "--host", "web-1")
    assert ran.code == 0
    assert ran.lines[1].split()[2] == "RUNNING?"
    assert "the agent of web-1 is silent for 6" in ran.err
    assert sh("ps", "--host", "none").code == 1
    refused = sh("restart", "web", *WHY)
    assert refused.code == 1
    assert "no host whose agent lives has a program 'web'" in refused.err
    assert "the agent of web-1 is silent" in sh("restart", "web", "--host", "web-1", *WHY).err


def test_a_supervisord_that_does_not_answer_is_told(sh: Shell, agent: Answering) -> None:
    beat = hosts.beat("web-1", authority=making.SYSTEM, fence=agent.fence, programs=[], trouble="no answer on /x")
    run(beat)
    ran = sh("ps")
    assert (ran.out, ran.err) == ("no programs\n", "web-1: no answer on /x\n")


@pytest.mark.requirement("L28")
def test_what_a_host_runs_short_of_is_told(sh: Shell, agent: Answering) -> None:
    full = {"disks": [{"of": ["home"], "total_kb": 1000, "free_kb": 1}]}
    beat = hosts.beat(
        "web-1", authority=making.SYSTEM, fence=agent.fence, programs=[], trouble=None, resources=full
    )
    run(beat)
    assert sh("ps").err == "web-1: the disk of home is 99 % full\n"
    [host] = sh("ps", "--format", "json").json["hosts"]
    assert (host["resources"], host["short_of"]) == (full, [{"kind": "disk", "of": "home", "percent": 99}])


@pytest.mark.parametrize("verb", ["start", "drain", "stop", "kill", "restart"])
def test_a_program_is_acted_on_and_the_end_is_waited_for(sh: Shell, agent: Answering, verb: str) -> None:
    ran = sh(verb, "web", *WHY, "--yes")
    assert (ran.code, ran.lines) == (0, ["web on web-1: web running"])
    assert [(claim.verb, claim.program) for claim in agent.asked] == [(verb, "web")]


def test_the_workers_of_a_pool_are_restarted_one_after_the_other_until_one_fails(
    sh: Shell, agent: Answering
) -> None:
    ran = sh("restart", "--pool", "default", *WHY)
    assert ran.code == 0
    assert [claim.program for claim in agent.asked] == ["worker-default-1", "worker-default-2"]
    agent.asked.clear()
    agent.answer = lambda _: (True, {"error": "it does not stay up"})
    ran = sh("restart", "--pool", "default", *WHY)
    assert (ran.code, ran.lines) == (1, ["worker-default-1 on web-1: not done: it does not stay up"])
    assert ran.err.endswith("left as they are: worker-default-2\n")
    assert len(agent.asked) == 1
    answer = sh("restart", "web", "worker-default-1", *WHY, "--format", "json").json
    assert (answer["done"], answer["refused"], answer["left"]) == (0, 1, ["worker-default-1"])


def test_what_is_down_in_a_pool_is_started(sh: Shell, agent: Answering) -> None:
    assert sh("start", "--pool", "default").code == 0
    assert [claim.program for claim in agent.asked] == ["worker-default-3"]


@pytest.mark.requirement("L31")
def test_a_pool_is_scaled(sh: Shell, agent: Answering) -> None:
    agent.answer = lambda _: (False, {"started": ["worker-default-3"], "states": {"worker-default-3": "RUNNING"}})
    ran = sh("scale", "default", 3, *WHY)
    assert (ran.code, ran.lines) == (0, ["default on web-1: worker-default-3 running"])
    [claim] = agent.asked
    assert (claim.verb, claim.pool, claim.count) == ("scale", "default", 3)


def test_a_log_is_shown_with_nothing_that_a_terminal_would_obey(sh: Shell, agent: Answering) -> None:
    agent.answer = lambda _: (False, {"lines": ["one", "  two\x1b[31m", "three"]})
    ran = sh("logs", "web", "--lines", 2)
    assert (ran.code, ran.lines[1], "\x1b" in ran.out) == (0, "three", False)
    assert ran.lines[0].startswith("  two")
    assert sh("logs", "web", "--format", "json").json["lines"][0] == "one"


def test_what_takes_its_time_is_left_alone_after_a_while(sh: Shell, agent: Answering) -> None:
    agent.answer = lambda _: None
    ran = sh("drain", "worker-default-1", "--wait", 1, *WHY)
    assert ran.code == 1
    assert "not done: not yet: command" in ran.out
    assert "it begins" in ran.err


def test_where_two_hosts_have_it_one_has_to_be_named(sh: Shell, agent: Answering) -> None:
    making.a_host("web-2", programs=PROGRAMS)
    ran = sh("restart", "web", *WHY)
    assert (ran.code, ran.err) == (1, "shiftboss: web is on web-1, web-2: say which with --host\n")
    assert sh("restart", "web", "--host", "web-1", *WHY).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("restart", *WHY),
        ("restart", "web", "--pool", "default", *WHY),
        ("restart", "web"),
        ("stop", "web", *WHY),
        ("kill", "web", *WHY),
        ("scale", "default", "-1", *WHY),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(sh: Shell, agent: Answering, words: tuple[str, ...]) -> None:
    assert sh(*words).code == 2
    assert agent.asked == []
