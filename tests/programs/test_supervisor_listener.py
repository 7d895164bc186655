"""The host's agent: what it sees under a real supervisord, and what of that is in the record."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from shiftboss import conf
from shiftboss.management.listener import pool_of, rule_of, user_of
from shiftboss.queue.errors import StoreUnavailable
from shiftboss.queue.redaction import Redactor
from shiftboss.queue.store import hosts, processes, workers
from shiftboss.queue.store.processes import Life, ProcessRow
from shiftboss.queue.store.statement import run
from shiftboss.supervisor_conf import incarnations, logtail, render
from shiftboss.supervisor_conf.listener import Listener
from shiftboss.supervisor_conf.orders import Orders
from shiftboss.supervisor_conf.programs import Program
from shiftboss.supervisor_conf.resources import Resources
from shiftboss.supervisor_conf.spool import Spool
from shiftboss.supervisor_conf.watch import Seen, Watch
from tests.programs.supervisords import START_SECONDS, Supervisord, supervisord
from tests.programs.test_render import installation
from tests.store import making
from tests.store.conftest import COMMITTED
from tests.store.test_workers import REGISTRATION
from tests.waiting import wait_for

pytestmark = [pytest.mark.requirement("L28", "B1"), COMMITTED]

LIFE = Life(program="web", launcher=7, started=5.0)
NOWHERE = "postgresql://u@127.0.0.1:1/none?connect_timeout=1"


def program(name: str, script: str, **more: Any) -> Program:
    """A shell as a program."""
    given: dict[str, Any] = {"start_seconds": 0, "restart": False} | more
    return Program(name=name, command=["sh", "-c", script, name], priority=1, stop_seconds=5, **given)


FOUND = [
    program("worker-default-1", "echo working; exec sleep 600", restart=True),
    program("fails", "echo password=hunter2; exit 7"),
    program("stays", "exec sleep 600"),
]


@contextmanager
def serving(home: Path, found: list[Program]) -> Iterator[Supervisord]:
    """A supervisord that runs these programs in this home."""
    incarnations.make_folders(home, found)
    file = home / "supervisord.conf"
    file.write_text(render.render(installation(home), found))
    with supervisord(file, render.socket_path(home)) as running:
        yield running


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Supervisord]:
    """A supervisord with a worker, a program that fails at once and one that stays."""
    with serving(tmp_path, FOUND) as running:
        yield running


class Watching:
    """An agent that looks and tells when the test says so."""

    def __init__(self, home: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.home = home
        self._loop = loop
        self.listener = self.another()

    def another(self, *, dsn: str | None = None, pid: int | None = None) -> Listener:
        """One as after a restart: it knows what is in the home."""
        config = conf.get()
        orders = Orders(
            socket=render.socket_path(self.home),
            home=self.home,
            counts={"default": 2},
            stop_seconds=60.0,
            log_of=lambda file: logtail.last_lines(file, redacted=Redactor().text),
        )
        watch = Watch(
            render.socket_path(self.home),
            self.home,
            user_of=lambda name: user_of(config, name),
            pool_of=lambda name: pool_of(config, name),
            log_of=orders.log_of,
            stopped=orders.stopped,
        )
        self.listener = Listener(
            "web-1",
            hostname="web-1",
            home=str(self.home),
            code_version="v1",
            dsn=dsn or making.address(),
            watch=watch,
            spool=Spool(self.home / "spool"),
            orders=orders,
            resources=Resources({"home": self.home}),
            rule=rule_of(config),
            pools=config.pools,
        )
        return self.listener

    def do(self, duty: Coroutine[Any, Any, Any]) -> Any:
        """Carry it out."""
        return self._loop.run_until_complete(duty)

    def once(self) -> None:
        """One look, and all that is to be told of it."""
        self.do(self.listener.look())
        while self.do(self.listener.tell()):
            pass

    def until(self, condition: Callable[[dict[str, list[ProcessRow]]], Any]) -> Any:
        """Look and tell until this holds of the lives by program, the newest first."""

        def told() -> Any:
            self.once()
            return condition(lives())

        return wait_for(told, seconds=START_SECONDS, every=0.1)


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


def lives() -> dict[str, list[ProcessRow]]:
    """What is noted of each program."""
    found: dict[str, list[ProcessRow]] = {}
    for life in run(processes.lives(authority=making.SYSTEM)):
        found.setdefault(life.program, []).append(life)
    return found


def one_host() -> hosts.HostRow:
    """The host as the record has it."""
    [row] = run(hosts.hosts(authority=making.SYSTEM))
    return row


def killed(pid: int | None) -> None:
    """End a process as nothing can be told of."""
    assert pid
    os.kill(pid, signal.SIGKILL)


def test_what_runs_and_how_it_ended_is_in_the_record(host: Supervisord, agent: Watching) -> None:
    found = agent.until(lambda found: len(found) == 3 and found["fails"][0].ended_at and found)
    [failed] = found["fails"]
    assert (failed.ending, failed.code, failed.signal, failed.asked) == ("code", 7, None, False)
    assert failed.log is not None
    assert "hunter2" not in failed.log
    assert "password=" in failed.log
    programs = {one["name"]: one for one in one_host().programs}
    assert set(programs) == {"worker-default-1", "fails", "stays"}
    stays = programs["stays"]
    assert (stays["state"], stays["launcher"]) == ("RUNNING", host.programs()["stays"]["pid"])
    assert psutil.Process(stays["pid"]).ppid() == stays["launcher"]
    assert stays["memory_kb"] > 0
    assert programs["worker-default-1"]["pool"] == "default"
    assert (one_host().trouble, one_host().alive) == (None, True)
    left = one_host().resources
    assert left is not None
    assert left["disks"][0]["of"] == ["home"]
    assert left["files"]["of"] in programs


@pytest.mark.requirement("B2")
def test_a_killed_worker_is_seen_with_its_signal_and_the_job_in_hand(host: Supervisord, agent: Watching) -> None:
    [alive] = agent.until(lambda found: found.get("worker-default-1"))
    registration = replace(REGISTRATION, pid=alive.pid)
    worker = run(workers.register(registration, authority=making.SYSTEM, tasks=[making.TASK]))
    [held] = making.running(worker)
    log = agent.home / "log" / "worker-default-1.log"
    wait_for(lambda: log.read_text() == "working\n", seconds=START_SECONDS)
    killed(alive.pid)
    new, old = agent.until(lambda found: len(found["worker-default-1"]) == 2 and found["worker-default-1"])
    assert (old.id, old.ending, old.signal, old.worker_id) == (alive.id, "signal", signal.SIGKILL, worker)
    assert old.jobs
    assert [job["id"] for job in old.jobs] == [str(held.job_id)]
    assert (old.log or "").startswith("working")
    assert (new.ended_at, new.pid != old.pid) == (None, True)


def test_an_end_that_nobody_saw_is_called_unknown(host: Supervisord, agent: Watching) -> None:
    [alive] = agent.until(lambda found: found.get("stays"))
    process = psutil.Process(alive.launcher)
    [child] = process.children()
    killed(process.pid)
    with suppress(ProcessLookupError):  # it ends with its launcher
        killed(child.pid)
    [ended] = agent.until(lambda found: found["stays"][0].ended_at and found["stays"])
    assert (ended.id, ended.ending, ended.code, ended.signal) == (alive.id, "unknown", None, None)
    assert not list((incarnations.folder(agent.home, None) / "stays").iterdir())


def test_a_stop_that_was_asked_for_is_told_from_a_death(host: Supervisord, agent: Watching) -> None:
    from shiftboss.supervisor_conf import control

    agent.until(lambda found: found.get("stays"))
    control.call(host.socket, "stopProcess", "stays")
    [ended] = agent.until(lambda found: found["stays"][0].ended_at and found["stays"])
    assert (ended.asked, ended.ending, ended.signal) == (True, "signal", signal.SIGTERM)


def test_while_the_record_is_away_nothing_is_lost_and_the_order_stays(host: Supervisord, agent: Watching) -> None:
    away = agent.another(dsn=NOWHERE)
    for _ in range(3):
        worker = host.pid_of("worker-default-1")
        [child] = wait_for(psutil.Process(worker).children, seconds=START_SECONDS)
        agent.do(away.look())
        killed(child.pid)
        wait_for(lambda before=worker: host.pid_of("worker-default-1") != before, seconds=START_SECONDS)
    agent.do(away.look())
    with pytest.raises(StoreUnavailable):
        agent.do(away.tell())
    assert lives() == {}
    agent.another()
    found = agent.until(lambda found: len(found.get("worker-default-1", [])) == 4 and found["worker-default-1"])
    assert [life.signal for life in found] == [None, 9, 9, 9]
    starts = [life.started_at for life in found]
    assert (starts, [life.id for life in found]) == (
        sorted(starts, reverse=True),
        sorted((life.id for life in found), reverse=True),
    )
    assert not list((agent.home / "spool").iterdir())


def test_what_has_ended_is_told_at_once_and_looked_at_again_for_its_last_words(
    agent: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = agent.listener
    monkeypatch.setattr(listener._watch, "look", lambda: Seen([], None, [(LIFE, None)]))
    agent.do(listener.look())
    assert listener._tell_now.is_set()
    listener._tell_now.clear()
    monkeypatch.setattr(listener._watch, "look", lambda: Seen([], None, has_more=True))
    agent.do(listener.look())
    assert not listener._look_now.is_set()
    agent.do(asyncio.wait_for(listener._look_now.wait(), START_SECONDS))
    assert not listener._tell_now.is_set()


def test_a_second_agent_waits_until_the_first_has_left(
    host: Supervisord, agent: Watching, caplog: pytest.LogCaptureFixture
) -> None:
    first = agent.listener
    agent.until(lambda found: found.get("stays"))
    second = agent.another()
    with caplog.at_level("WARNING"):
        agent.once()
        agent.once()
    assert [record.message for record in caplog.records if "listener" in record.message] == ["listener.waits"]
    agent.do(first._farewell())
    agent.once()
    assert one_host().alive
    assert second._fence == (first._fence or 0) + 1


def test_an_agent_that_was_silent_for_too_long_takes_the_host_anew_with_a_gap(
    host: Supervisord, agent: Watching
) -> None:
    agent.until(lambda found: found.get("stays"))
    making.execute("update shiftboss_host set heartbeat_at = heartbeat_at - interval '11 seconds'")
    silent_since = one_host().heartbeat_at
    agent.once()
    agent.once()
    assert one_host().alive
    assert one_host().gap_from == silent_since


def test_a_supervisord_that_does_not_answer_is_no_end_of_its_programs(host: Supervisord, agent: Watching) -> None:
    agent.until(lambda found: found.get("stays"))
    before = one_host().programs
    host.socket.unlink()
    agent.once()
    assert "does not answer on" in (one_host().trouble or "")
    assert one_host().programs == before
    assert lives()["stays"][0].ended_at is None
    assert one_host().alive


def test_programs_whose_launcher_cannot_write_are_known_by_what_supervisord_says(
    tmp_path: Path, agent: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftboss.supervisor_conf.watch.SETTLE_SECONDS", -10.0)
    (tmp_path / "launched").write_text("in the way of the folder")
    installation(tmp_path)
    file = tmp_path / "supervisord.conf"
    file.write_text(render.render(installation(tmp_path), [program("bare", "exec sleep 600", restart=True)]))
    with supervisord(file, render.socket_path(tmp_path)) as running:
        running.pid_of("bare")
        [alive] = agent.until(lambda found: found.get("bare"))
        assert (alive.pid, alive.launcher) == (None, running.programs()["bare"]["pid"])
        killed(alive.launcher)
        found = agent.until(lambda found: len(found["bare"]) == 2 and found["bare"])
        assert (found[1].ending, found[1].launcher) == ("unknown", alive.launcher)


def test_what_there_is_no_room_for_is_counted(
    host: Supervisord, agent: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftboss.supervisor_conf.spool.MOST_LIVES", 1)
    notes, names = incarnations.folder(agent.home, None), [one.name for one in FOUND]
    wait_for(lambda: len(incarnations.noted(notes, names)) >= len(FOUND), seconds=START_SECONDS)
    agent.once()
    assert one_host().dropped >= 1


def test_a_life_that_no_record_can_hold_stops_no_other(tmp_path: Path, agent: Watching) -> None:
    spool = agent.listener._spool
    ended = replace(LIFE, ended=6.0, ending="code", code=1)
    spool.put(replace(ended, log="\x00", launcher=1))
    spool.put(replace(ended, log="fine", launcher=2))
    assert agent.do(agent.listener.tell()) is False
    assert [life.launcher for life in lives()["web"]] == [2]
    agent.do(agent.listener.tell())
    assert one_host().dropped == 1


def test_what_is_spooled_comes_back_in_its_order_and_what_is_no_life_goes(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for n in range(3):
        assert spool.put(replace(LIFE, launcher=n))
    (tmp_path / "spool" / "0.json").write_text("{")
    (tmp_path / "spool" / "1.json").write_text('{"program": "x", "more": 1}')
    again = Spool(tmp_path / "spool")
    assert [life.launcher for _, life in again.oldest(10)] == [0, 1, 2]
    for file, _ in again.oldest(2):
        again.drop(file)
    [(_, left)] = again.oldest(10)
    assert left == replace(LIFE, launcher=2)


def seen_of(text: bytes, tmp_path: Path) -> str:
    """The last lines of a log with this in it."""
    (tmp_path / "log").write_bytes(text)
    shown = logtail.last_lines(tmp_path / "log", redacted=Redactor().text)
    assert shown is not None
    return shown


def test_of_a_log_the_last_lines_are_seen(tmp_path: Path) -> None:
    assert seen_of(b"a\nb\n", tmp_path) == "a\nb"
    assert seen_of(b"", tmp_path) == ""
    many = seen_of(b"".join(b"line %d\n" % n for n in range(1000)), tmp_path).splitlines()
    assert (len(many), many[0], many[-1]) == (logtail.MOST_LINES, "line 800", "line 999")
    assert logtail.last_lines(tmp_path / "none", redacted=str) is None
    (tmp_path / "link").symlink_to(tmp_path / "log")
    assert logtail.last_lines(tmp_path / "link", redacted=str) is None


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        (b"\x1b[31mred\x1b[0m\x1b[2J", "red"),
        (b"\x1b]0;title\x07text \x1b]8;;http://x\x1b\\link", "text link"),
        (b"\xff\xfe\x00x", "\ufffd\ufffd\ufffdx"),
        ("\u202egpj.exe".encode(), "\ufffdgpj.exe"),
        (b"token=abcdef\npassword: hunter2", "token=[hidden]\npassword: [hidden]"),
        (b"over\rwritten", "over\ufffdwritten"),
    ],
)
def test_nothing_in_a_log_hurts_its_reader(tmp_path: Path, written: bytes, seen: str) -> None:
    from shiftboss.queue.secrets import MASK

    assert seen_of(written, tmp_path) == seen.replace("[hidden]", MASK)


def test_of_a_huge_log_little_is_read_and_no_line_without_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with file.open("wb") as huge:
        huge.truncate(100 << 20)
        huge.seek(0, os.SEEK_END)
        huge.write(b"x" * logtail.MOST_BYTES + b"\n" + b"y" * 5000 + b"\nlast\n")
    lines = (logtail.last_lines(file, redacted=str) or "").splitlines()
    assert [line[:4] for line in lines] == ["yyyy", "last"]
    assert len(lines[0]) == logtail.MOST_CHARACTERS + 2
    assert logtail.last_lines(file, redacted=lambda text: text.upper()) is not None
    file.write_bytes(b"x" * 2 * logtail.MOST_BYTES)
    assert logtail.last_lines(file, redacted=str) == "… a line of more than 64 KiB is left out"
