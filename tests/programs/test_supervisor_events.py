"""supervisord's events: hints for the agent, and what it does where they are lost, spoilt or do not come."""

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from django.db import connection

from shiftboss import conf
from shiftboss.queue.store import commands, hosts, processes
from shiftboss.queue.store.commands import Order
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf import control, events, programs, render
from shiftboss.supervisor_conf.events import Events, NoEvents
from tests.programs.supervisords import START_SECONDS, supervisord
from tests.programs.test_render import installation
from tests.programs.test_supervisor_listener import program
from tests.runtime.programs import ROOT
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.waiting import wait_for

pytestmark = [pytest.mark.requirement("L28", "B1"), COMMITTED]


def event(serial: int, payload: str = "processname:web groupname:web from_state:RUNNING pid:7") -> bytes:
    """One, as supervisord sends it."""
    head = f"ver:3.0 server:shiftboss serial:{serial + 40} pool:listener poolserial:{serial}"
    return f"{head} eventname:PROCESS_STATE_EXITED len:{len(payload)}\n{payload}".encode()


def listened(sent: bytes) -> tuple[int, int, bytes]:
    """How many hints come of what is sent, how many events are missed, and what is answered."""
    (source, into), (out, answers) = os.pipe(), os.pipe()
    os.write(into, sent)
    os.close(into)
    hints: list[None] = []
    listener = Events(lambda: hints.append(None), source=source, answers=answers)
    asyncio.run(asyncio.wait_for(listener.run(), START_SECONDS))
    os.close(answers)
    with open(out, "rb") as said:
        answered = said.read()
    os.close(source)
    return len(hints), listener.missed, answered


def test_each_event_is_a_hint_and_is_acknowledged() -> None:
    sent = event(0) + event(1, "") + event(2)
    assert listened(sent) == (3, 0, b"READY\nRESULT 2\nOK" * 3 + b"READY\n")


def test_events_that_are_missing_are_counted_by_their_serials(caplog: pytest.LogCaptureFixture) -> None:
    # The first that an agent sees is seldom the first that there was; one that comes again is not missing.
    hints, missed, _ = listened(event(7) + event(8) + event(12) + event(12) + event(14))
    assert (hints, missed) == (5, 4)
    told = [record.__dict__ for record in caplog.records if record.message == "events.missed"]
    assert [(one["missed"], one["in_all"]) for one in told] == [(3, 3), (1, 4)]


@pytest.mark.parametrize(
    "spoilt",
    [
        b"no event\n",
        b"len:x poolserial:1\n",
        b"len:-1 poolserial:1\n",
        b"len:99999999 poolserial:1\n",
        b"len:0\n",
        b"\xff" * (events.MOST_BYTES * 2),
    ],
)
def test_what_is_no_event_ends_the_hints_and_not_the_agent(
    spoilt: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (source, into), (out, answers) = os.pipe(), os.pipe()
    os.set_blocking(into, False)

    async def spoil() -> int:
        hints: list[None] = []
        running = asyncio.create_task(Events(lambda: hints.append(None), source=source, answers=answers).run())
        left = event(0) + spoilt
        while left and not running.done():
            try:
                left = left[os.write(into, left) :]
            except BlockingIOError:
                pass
            await asyncio.sleep(0)
        await asyncio.wait_for(running, START_SECONDS)
        return len(hints)

    assert asyncio.run(spoil()) == 1
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["events.spoilt"]
    for descriptor in (source, into, out, answers):
        os.close(descriptor)


def test_who_was_not_started_for_events_is_told_so(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(NoEvents, match="Leave it out"):
        Events.check(file.fileno(), file.fileno())
    with pytest.raises(NoEvents):
        Events.check(987654, 987655)


def test_a_supervisord_that_hangs_is_told_from_one_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ANSWER_SECONDS", 0.05)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind("deaf.sock")
        deaf.listen(1)
        with pytest.raises(control.SupervisorSilent, match=r"it hangs, or is stopped"):
            control.call(Path("deaf.sock"), "getState")
        assert control.is_running(Path("deaf.sock"))
    with pytest.raises(control.SupervisorUnreachable) as gone:
        control.call(Path("deaf.sock"), "getState")
    assert not isinstance(gone.value, control.SupervisorSilent)
    assert not control.is_running(Path("deaf.sock"))


HANGS = """
import asyncio, threading
from shiftboss.supervisor_conf import listener

async def hangs():
    threading.Event().wait()

listener.WEDGED_SECONDS = 0.1
one = listener.Listener.__new__(listener.Listener)
one.look = hangs
asyncio.run(one._look_or_end())
"""


def test_an_agent_that_comes_to_no_look_says_where_it_hangs_and_ends() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", HANGS], cwd=ROOT, timeout=START_SECONDS, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "in hangs" in ran.stderr


def lives(name: str) -> list[processes.ProcessRow]:
    """What is noted of a program, the newest first."""
    return run(processes.lives(authority=making.SYSTEM, program=name))


def agent() -> hosts.HostRow | None:
    """The host as its agent tells of it."""
    rows = run(hosts.hosts(authority=making.SYSTEM))
    return next((row for row in rows if row.alive and row.programs), None)


def until(condition: Callable[[], object]) -> None:
    """Wait for what may take as long as a program's start."""
    wait_for(condition, seconds=START_SECONDS)


def test_an_agent_that_hung_while_the_buffer_of_events_ran_over_tells_all_in_its_order(tmp_path: Path) -> None:
    making.empty()
    found = programs.programs(conf.get(), installation(tmp_path), web=False, listener=("--home", str(tmp_path)))
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "shiftboss.site.settings"}
    told = settings | {"PYTHONPATH": str(ROOT), "SHIFTBOSS_HOST": "web-1", "SHIFTBOSS_HOME": str(tmp_path)}
    listener = next(replace(one, environment=told) for one in found if one.name == "listener")
    dies = program("dies", "exec sleep 600", restart=True)
    file = tmp_path / "supervisord.conf"
    text = render.render(installation(tmp_path), [listener, dies])
    file.write_text(re.sub("buffer_size = .*", "buffer_size = 4", text))
    log = tmp_path / "log" / "listener.log"
    with supervisord(file, render.socket_path(tmp_path)) as host:
        # Before its first event it cannot know what it has missed, and who is just starting is sent none.
        until(lambda: len(lives("dies")) == 1 and "events.begin" in log.read_text())
        first = agent()
        assert first
        hung = psutil.Process(first.pid)
        hung.suspend()
        for _ in range(2):  # a third would be a crash loop, and held back
            before = host.pid_of("dies")
            [child] = wait_for(psutil.Process(before).children, seconds=START_SECONDS)
            child.kill()
            until(lambda before=before: host.pid_of("dies") != before)
        hung.resume()
        until(lambda: len(lives("dies")) == 3)
        assert [life.signal for life in lives("dies")] == [None, 9, 9]
        until(lambda: "events.missed" in log.read_text())
        # It is asked for a successor, and what it was asked for is answered before it goes.
        order = Order(host="web-1", verb="restart", program="listener")
        number = run(commands.ask(order, authority=making.SYSTEM, by="kim")).id
        until(lambda: (now := agent()) and now.pid != first.pid)
        assert number
        answered = run(commands.command(number, authority=making.SYSTEM))
        assert answered
        assert (answered.state, answered.result) == ("done", {"states": {"listener": "STARTING"}})
        [_, before_it] = wait_for(lambda: lives("listener")[1:] and lives("listener"), seconds=START_SECONDS)
        assert (before_it.ending, before_it.code) == ("code", 0)
        assert before_it.log
        assert "listener.stopped" in before_it.log
        assert len(lives("dies")) == 3
    making.empty()
