"""Hosts, their agents, and the lives of programs that these note."""

import time
from dataclasses import replace
from typing import Any

import pytest

from shiftboss import Owner, Scoped
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.shortage import Shortage
from shiftboss.queue.store import hosts, processes, workers
from shiftboss.queue.store.hosts import Agent, HostRow
from shiftboss.queue.store.processes import Life, ProcessRow
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, execute, running, scalar
from tests.store.sessions import together
from tests.store.test_workers import REGISTRATION

pytestmark = pytest.mark.requirement("L28", "B1")

AGENT = Agent(name="web-1", hostname="web-1", pid=11, home="/srv/shiftboss", code_version="v7", lease_seconds=10.0)
NOW = 1_796_062_000.388
LIFE = Life(program="worker-default-1", pool="default", launcher=100, pid=101, started=NOW)
ENDED = replace(LIFE, ended=NOW + 5, ending="signal", signal=9, uptime_seconds=5.0, log="the last line")


def taken(**other: Any) -> int:
    """The fence of the host's agent."""
    fence = run(hosts.take(replace(AGENT, **other), authority=SYSTEM))
    assert fence
    return fence


def beaten(fence: int, **sees: Any) -> bool:
    """Whether the agent's word was taken."""
    given = {"programs": [], "trouble": None} | sees
    return run(hosts.beat("web-1", authority=SYSTEM, fence=fence, **given))


def host() -> HostRow:
    """The one host."""
    [row] = run(hosts.hosts(authority=SYSTEM))
    return row


def expired() -> None:
    """The agent has said nothing for longer than its lease."""
    execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '11 seconds'")


def noted(*lives: Life, fence: int) -> bool:
    """Whether what the agent has noted was taken."""
    return run(processes.note(lives, authority=SYSTEM, host="web-1", fence=fence))


def lives(**which: Any) -> list[ProcessRow]:
    """What is noted, the newest first."""
    return run(processes.lives(authority=SYSTEM, **which))


def test_a_host_has_one_agent_until_its_lease_is_over(perform: Perform) -> None:
    first = perform(hosts.take(AGENT, authority=SYSTEM))
    second = replace(AGENT, pid=12)
    assert perform(hosts.take(second, authority=SYSTEM)) is None
    expired()
    assert not host().alive
    assert perform(hosts.take(second, authority=SYSTEM)) == first + 1
    assert (host().pid, host().alive) == (12, True)
    assert not beaten(first)
    assert beaten(first + 1)


@pytest.mark.requirement("L28")
def test_what_a_host_runs_short_of_is_known_as_long_as_its_agent_lives(perform: Perform) -> None:
    fence = taken()
    assert (host().resources, host().short_of) == (None, ())
    full = {"disks": [{"of": ["home"], "total_kb": 1000, "free_kb": 1}]}
    sees: dict[str, Any] = {"programs": [], "trouble": None, "resources": full}
    assert perform(hosts.beat("web-1", authority=SYSTEM, fence=fence, **sees))
    assert (host().resources, host().short_of) == (full, (Shortage("disk", "home", 99),))
    expired()
    assert host().short_of == ()


def test_an_agent_whose_lease_is_over_is_the_agent_no_more(perform: Perform) -> None:
    fence = taken()
    expired()
    sees = {"programs": [], "trouble": None}
    assert not perform(hosts.beat("web-1", authority=SYSTEM, fence=fence, **sees))
    assert not perform(processes.note([LIFE], authority=SYSTEM, host="web-1", fence=fence))
    assert lives() == []


def test_of_two_agents_that_come_at_once_one_has_the_host(connect: Any) -> None:
    sessions = [connect(), connect()]
    takes = [lambda s=session: s.run(hosts.take(AGENT, authority=SYSTEM)) for session in sessions]
    fences = together(*takes)
    assert sorted(fences, key=bool) == [None, 1]


def test_an_agent_that_ends_in_order_leaves_the_host_to_the_next_at_once(perform: Perform) -> None:
    fence = taken()
    assert perform(hosts.leave("web-1", authority=SYSTEM, fence=fence))
    assert not perform(hosts.leave("web-1", authority=SYSTEM, fence=fence))
    assert not host().alive
    assert not beaten(fence)
    assert taken(pid=12) == fence + 1
    assert host().alive


def test_the_time_without_an_agent_is_named() -> None:
    taken()
    assert host().gap_from is None
    expired()
    before = host().heartbeat_at
    taken()
    assert (host().gap_from, host().gap_until is not None) == (before, True)


def test_what_the_agent_sees_is_kept() -> None:
    fence = taken()
    programs = [{"name": "web", "state": "RUNNING", "pid": 7}]
    beaten(fence, programs=programs, dropped=2)
    beaten(fence, programs=programs, trouble="no answer", dropped=1)
    assert (host().programs, host().trouble, host().dropped) == (programs, "no answer", 3)


def test_a_life_is_noted_as_it_begins_and_as_it_ends(perform: Perform) -> None:
    fence = taken()
    assert perform(processes.note([LIFE], authority=SYSTEM, host="web-1", fence=fence))
    [alive] = lives()
    assert (alive.program, alive.pool, alive.pid, alive.ended_at) == ("worker-default-1", "default", 101, None)
    assert alive.started_at.timestamp() == NOW
    assert perform(processes.note([ENDED], authority=SYSTEM, host="web-1", fence=fence))
    [ended] = lives()
    assert (ended.id, ended.ending, ended.signal, ended.code) == (alive.id, "signal", 9, None)
    assert (ended.uptime_seconds, ended.log, ended.jobs) == (5.0, "the last line", None)


def test_a_life_that_is_noted_again_stays_as_it_was() -> None:
    fence = taken()
    noted(ENDED, fence=fence)
    noted(LIFE, fence=fence)
    noted(replace(ENDED, ending="code", signal=None, code=0), replace(ENDED, log="other"), fence=fence)
    [only] = lives()
    assert (only.ending, only.signal, only.log) == ("signal", 9, "the last line")


def test_of_two_words_on_one_life_the_last_is_taken() -> None:
    noted(LIFE, ENDED, fence=taken())
    [only] = lives()
    assert only.ending == "signal"


def test_only_the_agent_of_the_host_notes_lives() -> None:
    fence = taken()
    assert not noted(LIFE, fence=fence + 1)
    run(hosts.leave("web-1", authority=SYSTEM, fence=fence))
    assert not noted(LIFE, fence=fence)
    assert not run(processes.note([LIFE], authority=SYSTEM, host="web-2", fence=fence))
    assert lives() == []


@pytest.mark.requirement("B2")
def test_the_jobs_that_a_worker_had_in_hand_are_noted_with_its_end() -> None:
    fence = taken()
    registration = replace(REGISTRATION, pid=LIFE.pid or 0)
    worker = run(workers.register(registration, authority=SYSTEM, tasks=["shop.tasks.send_invoice"]))
    held = running(worker, 2)
    fresh = replace(ENDED, started=time.time(), ended=time.time() + 1, is_fresh=True)
    other = replace(fresh, program="worker-default-2", pid=999, launcher=998)
    late = replace(fresh, launcher=200, is_fresh=False)
    assert noted(fresh, other, late, fence=fence)
    by_launcher = {life.launcher: life for life in lives()}
    ours = by_launcher[100]
    assert ours.jobs
    assert [job["id"] for job in ours.jobs] == [str(lease.job_id) for lease in held]
    assert (ours.jobs[0]["queue"], ours.jobs[0]["fence"]) == ("default", held[0].fence)
    assert (ours.worker_id, ours.code_version) == (worker, "v7")
    assert (by_launcher[998].worker_id, by_launcher[998].jobs) == (None, None)
    assert by_launcher[200].jobs is None


def test_lives_are_read_by_host_and_program_the_newest_first() -> None:
    fence = taken()
    second = replace(LIFE, launcher=102, started=NOW + 10)
    web = replace(LIFE, program="web", pool=None, launcher=103, started=NOW + 5)
    noted(ENDED, second, web, fence=fence)
    assert [life.launcher for life in lives()] == [102, 103, 100]
    assert [life.launcher for life in lives(host="web-1", program="worker-default-1")] == [102, 100]
    assert [life.launcher for life in lives(ended=True)] == [100]
    assert [life.launcher for life in lives(limit=1)] == [102]
    assert lives(host="web-2") == []


def test_a_loop_of_crashes_fills_no_table(perform: Perform) -> None:
    fence = taken()
    noted(*[replace(ENDED, launcher=n, started=NOW + n) for n in range(10)], fence=fence)
    noted(replace(ENDED, program="web"), fence=fence)
    assert perform(processes.forget(authority=SYSTEM, host="web-1", fence=fence + 1, keep=1)) == 0
    assert perform(processes.forget(authority=SYSTEM, host="web-1", fence=fence, keep=3)) == 7
    assert [life.launcher for life in lives(program="worker-default-1")] == [9, 8, 7]
    assert len(lives(program="web")) == 1


@pytest.mark.parametrize("authority", [Owner("kim"), Scoped(queues=["default"])])
def test_hosts_are_no_matter_of_owners_or_scopes(authority: Any) -> None:
    for verb in (
        hosts.take(AGENT, authority=authority),
        hosts.beat("web-1", authority=authority, fence=1, programs=[], trouble=None),
        hosts.leave("web-1", authority=authority, fence=1),
        hosts.hosts(authority=authority),
        processes.note([LIFE], authority=authority, host="web-1", fence=1),
        processes.lives(authority=authority),
        processes.forget(authority=authority, host="web-1", fence=1),
    ):
        with pytest.raises(NotAllowed):
            run(verb)
    assert scalar("select count(*) from shiftboss_host") == 0
