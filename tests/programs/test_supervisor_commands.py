"""What the agent of a host does of what people ask, under a real supervisord."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from shiftboss import conf
from shiftboss.conf import Pool
from shiftboss.management.listener import orders_of, pool_of, user_of
from shiftboss.queue.store import commands, scales
from shiftboss.queue.store.commands import Claim, CommandRow, Order
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf import render
from shiftboss.supervisor_conf.orders import UNTOUCHABLE, OrderFailed
from shiftboss.supervisor_conf.scaling import Pace, Streak
from shiftboss.supervisor_conf.watch import Watch
from tests.processes import command_line as words_of
from tests.processes import runs
from tests.programs.supervisords import START_SECONDS, Supervisord, supervisord
from tests.programs.test_render import installation
from tests.programs.test_supervisor_listener import Watching, program, serving
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.store.making import enqueued
from tests.waiting import wait_for

pytestmark = [pytest.mark.requirement("L28", "B15"), COMMITTED]

DRAINS = (
    "n=0; trap 'n=$((n+1)); echo term $n; [ $n = 2 ] && exit 0' TERM; echo token=abc; while :; do sleep 0.05; done"
)
DEAF = "trap '' TERM; (sleep 600 &); setsid sleep 600 & while :; do sleep 0.1; done"
"""With an orphan in its group, and a child that has left the group."""
FOUND = [
    replace(program("worker-default-1", DRAINS, restart=True), stop_seconds=600),
    program("worker-default-2", "exec sleep 600", restart=True, autostart=False),
    program("web", "exec sleep 600", restart=True),
    program("fails", "exit 7", autostart=False, start_seconds=1),
    program("listener", "exec sleep 600"),
    replace(program("deaf", DEAF, autostart=False, restart=True), stop_seconds=600),
]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Supervisord]:
    """A supervisord with a worker that drains for ever, one that is not started, and others."""
    with serving(tmp_path, FOUND) as running:
        running.pid_of("worker-default-1")
        running.pid_of("web")
        # A signal that comes before the shell has set its trap ends it.
        log = tmp_path / str(running.programs()["worker-default-1"]["logfile"])
        wait_for(lambda: "token=" in log.read_text(), seconds=START_SECONDS)
        yield running


@pytest.fixture
def agent(host: Supervisord, tmp_path: Path) -> Iterator[Watching]:
    """The agent of the host, which has looked once."""
    making.empty()
    loop = asyncio.new_event_loop()
    watching = Watching(tmp_path, loop)
    watching.once()
    yield watching
    watching.listener._orders.leaving.set()
    loop.run_until_complete(asyncio.sleep(0))
    while watching.listener._working:
        loop.run_until_complete(asyncio.wait(watching.listener._working))
    watching.do(watching.listener._connection.close())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    making.empty()


def asked(verb: str, program: str | None = "web", **more: Any) -> int:
    """The number of what is asked of the host."""
    order = Order(host="web-1", verb=verb, program=program, **more)
    number = run(commands.ask(order, authority=making.SYSTEM, by="kim")).id
    assert number
    return number


def told(number: int) -> CommandRow:
    """The command as it stands."""
    row = run(commands.command(number, authority=making.SYSTEM))
    assert row
    return row


def until(agent: Watching, number: int, *states: str) -> CommandRow:
    """Let the agent work until the command is in one of these states."""

    def stands() -> CommandRow | None:
        agent.once()
        agent.do(agent.listener.obey())
        agent.do(asyncio.sleep(0.02))
        return told(number) if told(number).state in states else None

    row = wait_for(stands, seconds=START_SECONDS, every=0.05)
    assert row
    return row


def done(agent: Watching, number: int) -> dict[str, Any]:
    """What the agent answers to what it has done."""
    row = until(agent, number, "done", "failed")
    assert row.state == "done", row.result
    return row.result or {}


def refused(agent: Watching, number: int) -> str:
    """Why the agent has not done it."""
    row = until(agent, number, "done", "failed")
    assert row.state == "failed"
    return str((row.result or {})["error"])


def test_a_program_is_restarted_and_started_again(host: Supervisord, agent: Watching) -> None:
    agent.until(lambda found: len(found.get("web", [])) == 1)
    before = host.pid_of("web")
    assert done(agent, asked("restart")) == {"states": {"web": "RUNNING"}}
    after = host.pid_of("web")
    assert after != before
    agent.until(lambda found: len(found["web"]) == 2)
    assert done(agent, asked("drain")) == {"states": {"web": "STOPPED"}}
    assert done(agent, asked("start")) == {"states": {"web": "RUNNING"}}
    assert done(agent, asked("start")) == {"states": {"web": "RUNNING"}}
    new, *ended = agent.until(lambda found: len(found["web"]) == 3 and found["web"])
    assert (new.ended_at, [life.signal for life in ended]) == (None, [signal.SIGTERM, signal.SIGTERM])
    assert [life.asked for life in ended] == [True, True]


def test_who_drains_is_waited_for_and_holds_up_nothing_else_until_it_is_stopped(
    host: Supervisord, agent: Watching
) -> None:
    worker = psutil.Process(host.pid_of("worker-default-1"))
    draining = asked("drain", "worker-default-1")

    def says() -> bool:
        until(agent, draining, "claimed")
        return told(draining).progress == "worker-default-1 is stopping"

    wait_for(says, seconds=START_SECONDS)
    assert done(agent, asked("restart")) == {"states": {"web": "RUNNING"}}
    wait_for(
        lambda: done(agent, asked("tail", "worker-default-1"))["lines"][-1:] == ["term 1"], seconds=START_SECONDS
    )
    assert runs(worker)
    stopped = asked("stop", "worker-default-1")
    assert done(agent, stopped) == {"states": {"worker-default-1": "STOPPED"}}
    assert done(agent, draining) == {"states": {"worker-default-1": "STOPPED"}}
    assert not runs(worker)
    [life] = agent.until(lambda found: found["worker-default-1"][0].ended_at and found["worker-default-1"])
    assert (life.code, life.asked) == (0, True)


def test_what_does_not_stop_is_killed_with_all_that_it_has_started_and_its_end_is_known(
    host: Supervisord, agent: Watching
) -> None:
    done(agent, asked("start", "deaf"))
    why = refused(agent, asked("kill", "deaf"))
    assert why == "deaf is running: only what is asked to stop, and does not, is killed"
    launcher = host.pid_of("deaf")

    def sleeping() -> list[psutil.Process]:
        ours = [one.pid for one in psutil.Process(launcher).children(recursive=True)]
        found = [one for one in psutil.process_iter() if one.pid in ours or _group(one.pid) == launcher]
        return [one for one in found if words_of(one)[:2] == ["sleep", "600"]]

    started = wait_for(lambda: len(found := sleeping()) == 2 and found, seconds=START_SECONDS)
    draining = asked("drain", "deaf")
    wait_for(
        lambda: until(agent, draining, "claimed") and host.programs()["deaf"]["statename"] == "STOPPING",
        seconds=START_SECONDS,
    )
    assert done(agent, asked("kill", "deaf")) == {"states": {"deaf": "STOPPED"}}
    assert done(agent, draining) == {"states": {"deaf": "STOPPED"}}
    wait_for(lambda: not any(map(runs, started)), seconds=START_SECONDS)
    [life] = agent.until(lambda found: found["deaf"][0].ended_at and found["deaf"])
    assert (life.ending, life.signal, life.asked) == ("signal", signal.SIGKILL, True)
    why = refused(agent, asked("kill", "deaf"))
    assert why.startswith("deaf is stopped: ")


def _group(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


def test_who_may_not_kill_says_so(host: Supervisord, agent: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    def may_not(launcher: int) -> None:
        raise PermissionError

    monkeypatch.setattr("shiftboss.supervisor_conf.orders.kill_below", may_not)
    draining = asked("drain", "worker-default-1")
    wait_for(
        lambda: until(agent, draining, "claimed") and told(draining).progress == "worker-default-1 is stopping",
        seconds=START_SECONDS,
    )
    why = refused(agent, asked("kill", "worker-default-1"))
    assert why == "worker-default-1 runs as a user whose programs this agent may not kill"
    monkeypatch.setattr("shiftboss.supervisor_conf.orders.is_launcher", lambda pid: False)
    why = refused(agent, asked("kill", "worker-default-1"))
    assert why == "worker-default-1 has no launcher that could be seen: what it has started is not known"


@pytest.mark.requirement("L31")
def test_a_pool_is_scaled_within_its_settings(host: Supervisord, agent: Watching) -> None:
    before = host.pid_of("worker-default-1")
    answer = done(agent, asked("scale", None, pool="default", count=2))
    assert (answer["started"], answer["stopped"]) == (["worker-default-2"], [])
    assert host.pid_of("worker-default-1") == before
    answer = done(agent, asked("scale", None, pool="default", count=1))
    assert (answer["started"], answer["stopped"]) == ([], ["worker-default-2"])
    assert answer["states"] == {"worker-default-2": "STOPPED"}
    assert host.programs()["worker-default-2"]["statename"] == "STOPPED"
    assert host.pid_of("worker-default-1") == before
    why = refused(agent, asked("scale", None, pool="default", count=3))
    assert why.startswith("the pool default may have 0 to 2 workers here, not 3")


POOL = Pool(name="default", workers=1, max_workers=2, scale_wait_seconds=5.0)


@pytest.mark.requirement("L31")
def test_a_count_that_a_person_said_outlives_the_supervisord(
    host: Supervisord, agent: Watching, tmp_path: Path
) -> None:
    agent.listener._scaling._pools = {"default": replace(POOL, scale_wait_seconds=None)}
    done(agent, asked("scale", None, pool="default", count=2))
    left = host.below()
    host.process.kill()
    host.process.wait()
    for one in filter(runs, left):  # one of them takes a signal for a reason to go on
        with suppress(psutil.NoSuchProcess):
            one.kill()
    with serving(tmp_path, FOUND) as again:
        assert again.programs()["worker-default-2"]["statename"] == "STOPPED"
        agent.do(agent.listener.scale())
        assert again.pid_of("worker-default-2")
        # What a person stops stays down, whatever was said of its pool.
        done(agent, asked("stop", "worker-default-2"))
        agent.do(agent.listener.scale())
        assert again.programs()["worker-default-2"]["statename"] == "STOPPED"
    refused(agent, asked("scale", None, pool="default", count=3))
    assert [row.count for row in run(scales.scales(authority=making.SYSTEM))] == [2]


@pytest.mark.requirement("L31")
def test_a_pool_grows_where_jobs_wait_and_shrinks_where_none_does(host: Supervisord, agent: Watching) -> None:
    agent.listener._scaling._pools = {"default": POOL}
    agent.listener._scaling._pace = Pace(long_looks=2, short_looks=2, grow_seconds=0.0, shrink_seconds=0.0)
    [waiting] = enqueued()
    making.execute("update shiftboss_job set due_at = due_at - interval '1 minute'")
    agent.do(agent.listener.scale())
    assert host.programs()["worker-default-2"]["statename"] == "STOPPED"
    agent.do(agent.listener.scale())
    grown = run(commands.commands(authority=making.SYSTEM))[0]
    assert (grown.asked_by, grown.verb, grown.count) == ("autoscaling", "scale", 2)
    assert (grown.progress or "").startswith("the oldest job waits for 6")
    making.execute("delete from shiftboss_job where id = %s", waiting)
    agent.do(agent.listener.scale())
    assert agent.listener._scaling._streaks["default"] == Streak(), "it is left alone while it grows"
    assert done(agent, grown.id)["started"] == ["worker-default-2"]
    for _ in range(2):
        agent.once()
        agent.do(agent.listener.scale())
    shrunk = run(commands.commands(authority=making.SYSTEM))[0]
    assert (shrunk.count, shrunk.progress) == (1, "no job waits")
    assert done(agent, shrunk.id)["stopped"] == ["worker-default-2"]


def test_what_does_not_stay_up_is_said_to_have_failed(host: Supervisord, agent: Watching) -> None:
    assert refused(agent, asked("start", "fails")) == "fails does not stay up: see its log"
    assert agent.until(lambda found: found.get("fails") and found["fails"][-1].code == 7)


def test_a_log_is_seen_without_secrets(host: Supervisord, agent: Watching) -> None:
    lines = wait_for(lambda: done(agent, asked("tail", "worker-default-1"))["lines"], seconds=START_SECONDS)
    assert lines[0].startswith("token=")
    assert "abc" not in lines[0]


def test_the_agent_does_not_cut_the_branch_that_it_sits_on(host: Supervisord, agent: Watching) -> None:
    for verb in ("drain", "stop", "kill", "restart"):
        assert refused(agent, asked(verb, "listener")).endswith(UNTOUCHABLE["listener"])
    assert host.programs()["listener"]["statename"] == "RUNNING"


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (Claim(1, "start", "no-such", None, None), "no program 'no-such' here: there is deaf, fails, listener"),
        (Claim(1, "start", "/bin/sh", None, None), "no program '/bin/sh'"),
        (Claim(1, "scale", None, "heavy", 1), "no pool 'heavy' in the settings"),
        (Claim(1, "reboot", "web", None, None), "'reboot' is nothing"),
    ],
)
def test_the_agent_checks_what_it_is_asked_by_what_it_has(agent: Watching, claim: Claim, why: str) -> None:
    with pytest.raises(OrderFailed, match=why):
        agent.listener._orders.carry_out(claim, lambda _: None)


def test_without_an_answer_of_supervisord_nothing_is_claimed_to_be_done(
    host: Supervisord, agent: Watching
) -> None:
    number = asked("restart")
    host.socket.unlink()
    assert "does not answer on" in refused(agent, number)


def test_an_agent_that_ends_says_that_it_did_not_see_the_end(host: Supervisord, agent: Watching) -> None:
    number = asked("drain", "worker-default-1")
    until(agent, number, "claimed")
    agent.listener._orders.leaving.set()
    assert "the agent ends before it is done; what was begun goes on" in refused(agent, number)


def test_of_a_supervisord_that_runs_other_things_too_only_what_is_ours_is_seen(tmp_path: Path) -> None:
    given = installation(tmp_path)
    ours = [program("worker-default-1", "exec sleep 600"), program("worker-default-2", "sleep 9", autostart=False)]
    text = render.include(given, ours, prefix="sb-", surroundings={"A": "b"})
    (tmp_path / "supervisord.conf").write_text(
        render.render(given, [program("web", "exec sleep 600"), program("sb", "exec sleep 600")])
        + text
        + "[program:sb-odd]\ncommand = sleep 600\n[group:other]\nprograms = sb-odd\n"
    )
    socket = render.socket_path(tmp_path)
    config = conf.read({"POOLS": {"default": {"max_workers": 2}}})
    orders = orders_of(config, tmp_path, socket, "sb-")
    with supervisord(tmp_path / "supervisord.conf", socket) as running:
        assert set(running.programs()) == {"web", "sb", "sb-odd", "sb-worker-default-1", "sb-worker-default-2"}
        watch = Watch(
            socket,
            tmp_path,
            user_of=lambda name: user_of(config, name, prefix="sb-"),
            pool_of=lambda name: pool_of(config, name, prefix="sb-"),
            log_of=orders.log_of,
            prefix="sb-",
        )
        seen = {one["name"]: one["pool"] for one in watch.look().programs}
        assert seen == {"sb-worker-default-1": "default", "sb-worker-default-2": "default"}
        for name in ("web", "sb", "sb-odd", "other:sb-odd"):
            with pytest.raises(OrderFailed, match="no program"):
                orders.carry_out(Claim(1, "drain", name, None, None), lambda _: None)
        answer = orders.carry_out(Claim(1, "scale", None, "default", 2), lambda _: None)
        assert answer["started"] == ["sb-worker-default-2"]
