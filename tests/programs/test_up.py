"""`shiftboss up` with nothing replaced: what runs, what it refuses, how it ends."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from shiftboss.supervisor_conf import control, places, programs, render
from shiftboss.supervisor_conf.programs import Program
from tests.processes import command_line as words_of
from tests.processes import runs
from tests.programs.test_render import installation
from tests.programs.tree import (
    START_SECONDS,
    STOP_SECONDS,
    Tree,
    command,
    environment,
    free_port,
    shiftboss,
)
from tests.waiting import wait_for

Start = Callable[..., Tree]


@pytest.mark.requirement("C2", "C6")
def test_database_console_maintainer_and_worker_run_under_supervisord(running: Tree) -> None:
    states = wait_for(lambda: _all_started(running), seconds=START_SECONDS)
    assert set(states) == {"postgres", "listener", "maintainer", "web", "worker-default-1", "first-command"}


def _all_started(tree: Tree) -> dict[str, str]:
    states = {program["name"]: program["statename"] for program in tree.programs()}
    once = states.pop("first-command")
    done = once == "EXITED" and set(states.values()) == {"RUNNING"}
    return {**states, "first-command": once} if done else {}


@pytest.mark.requirement("L28")
def test_the_agent_of_the_host_tells_what_runs(running: Tree) -> None:
    programs = """
        select count(*) from shiftboss_host, jsonb_array_elements(programs) program
        where program->>'state' = 'RUNNING' and program->>'pid' is not null
    """
    wait_for(lambda: running.ask(programs) == 5, seconds=START_SECONDS)
    lives = "select string_agg(distinct program, ' ') from shiftboss_process where ended_at is null"
    names = "listener maintainer postgres web worker-default-1"
    wait_for(lambda: running.ask(lives) == names, seconds=START_SECONDS)
    once = "select code from shiftboss_process where program = 'first-command'"
    wait_for(lambda: running.ask(once) == 0, seconds=START_SECONDS)


@pytest.mark.requirement("C3")
def test_the_printed_address_leads_to_a_login(running: Tree) -> None:
    [address] = re.findall(r"Console: +(\S+)", running.text())
    with urllib.request.urlopen(address, timeout=10) as page:
        assert 'type="password"' in page.read().decode()


def test_the_first_password_is_shown_and_kept_for_its_owner_alone(running: Tree) -> None:
    kept = running.home / "admin-password"
    assert f"password: {kept.read_text().strip()} " in running.text()
    for name in ("admin-password", "secret-key", "installation.json", "supervisord.conf"):
        assert stat.S_IMODE((running.home / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((running.home / "log").stat().st_mode) == 0o700


def test_no_secret_stands_in_the_configuration_or_the_logs(running: Tree) -> None:
    texts = [(running.home / "supervisord.conf").read_text()]
    texts += [log.read_text() for log in (running.home / "log").iterdir()]
    for name in ("admin-password", "secret-key"):
        secret = (running.home / name).read_text().strip()
        assert not any(secret in text for text in texts), name


def test_the_first_command_has_run_once(running: Tree) -> None:
    log = running.home / "log" / "first-command.log"
    wait_for(lambda: "System check identified" in log.read_text(), seconds=START_SECONDS)


@pytest.mark.requirement("C1", "L28")
def test_status_shows_every_state_and_the_worker(running: Tree) -> None:
    def report() -> dict[str, list[dict[str, object]]]:
        asked = shiftboss(running.home, "status", "--format", "json")
        assert asked.returncode == 0, asked.stderr
        found: dict[str, list[dict[str, object]]] = json.loads(asked.stdout)
        return found if found["workers"] else {}

    found = wait_for(report, seconds=START_SECONDS)
    assert {"completed", "quarantined", "running", "available"} <= set(found["states"])
    assert found["workers"][0]["alive"] is True
    assert found["oldest_available_seconds"] is None


def test_status_in_words_names_the_worker(running: Tree) -> None:
    wait_for(lambda: "heartbeat" in shiftboss(running.home, "status").stdout, seconds=START_SECONDS)


def test_a_second_up_in_the_same_home_is_refused(running: Tree) -> None:
    refused = shiftboss(running.home, "up")
    assert refused.returncode == 1
    assert "runs already" in refused.stderr
    assert f":{running.port}/" in refused.stderr


def test_up_does_not_start_beside_programs_that_are_still_stopping(running: Tree, home: Path) -> None:
    home.mkdir()
    (home / "supervisor.sock").symlink_to(render.socket_path(running.home))
    refused = shiftboss(home, "up")
    assert refused.returncode == 1
    assert "still stopping" in refused.stderr


def test_up_says_how_long_the_programs_of_a_killed_one_may_go_on_stopping(home: Path) -> None:
    given = installation(home)
    slow = Program(
        name="worker-default-1",
        command=["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
        priority=30,
        stop_seconds=17 + programs.KILL_MARGIN_SECONDS,
    )
    (home / "supervisord.conf").write_text(render.render(given, [slow]))
    at = render.socket_path(home)
    words = programs.python("supervisor.supervisord", "-c", str(home / "supervisord.conf"))
    supervisord = subprocess.Popen(words, cwd=home)
    try:
        worker = wait_for(lambda: _running_pid(at), seconds=START_SECONDS)
        supervisord.terminate()
        wait_for(lambda: _refuses(at), seconds=START_SECONDS)
        refused = shiftboss(home, "up")
        os.killpg(worker, signal.SIGKILL)
        supervisord.wait(timeout=STOP_SECONDS)
    finally:
        supervisord.kill()
    assert refused.returncode == 1
    assert f"the programs of {home} are still stopping" in refused.stderr
    assert "17 seconds (DRAIN_SECONDS)" in refused.stderr


def _running_pid(at: Path) -> int:
    with suppress(control.SupervisorUnreachable):
        [program] = control.call(at, "getAllProcessInfo")
        return int(program["pid"]) if program["statename"] == "RUNNING" else 0
    return 0


def _refuses(at: Path) -> bool:
    try:
        control.call(at, "getAllProcessInfo")
    except control.SupervisorRefused:
        return True
    return False


def test_a_port_that_was_asked_for_and_is_taken_is_refused(home: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        by_option, by_environment = shiftboss(home, "up", "--port", port), shiftboss(home, "up", PORT=port)
    for refused in (by_option, by_environment):
        assert refused.returncode == 1
        assert f"port {port} is taken" in refused.stderr


def test_every_program_imports_the_queue_of_the_standard_library(running: Tree) -> None:
    import queue

    def pythons() -> dict[psutil.Process, list[str]]:
        return {process: line for process, line in running.command_lines().items() if "-P" in line}

    def all_are_there() -> bool:
        modules = " ".join(" ".join(line) for line in pythons().values())
        wanted = ("supervisor.supervisord", "gunicorn", "shiftboss.queue.maintainer", "shiftboss.queue.runtime")
        return all(name in modules for name in wanted)

    # A command past the gate has yet to become the maintainer or the keeper.
    wait_for(all_are_there, seconds=START_SECONDS)
    seen = set()
    for process, line in pythons().items():
        asked = [line[0], "-P", "-c", "import queue; print(queue.__file__)"]
        told = subprocess.check_output(asked, cwd=process.cwd(), env=process.environ(), text=True)
        seen.add(told.strip())
    assert seen == {queue.__file__}


def test_no_program_of_python_looks_for_modules_in_its_folder(running: Tree) -> None:
    pythons = [line for line in running.command_lines().values() if "python" in Path(line[0]).name]
    assert pythons
    assert [line for line in pythons if not {"-P", "-I"} & set(line)] == []


@pytest.mark.requirement("C2")
def test_a_killed_server_of_the_console_is_started_again(running: Tree) -> None:
    def pid() -> int:
        return next(int(p["pid"]) for p in running.programs() if p["name"] == "web")

    before = pid()
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: pid() not in (0, before), seconds=START_SECONDS)


def test_supervisord_is_asked_only_what_the_list_allows(running: Tree) -> None:
    socket_path = render.socket_path(running.home)
    assert control.call(socket_path, "getState")["statename"] == "RUNNING"
    with pytest.raises(ValueError, match="not among"):
        control.call(socket_path, "shutdown")
    with pytest.raises(control.SupervisorRefused, match="BAD_NAME"):
        control.call(socket_path, "startProcess", "nothing")
    assert stat.S_IMODE(socket_path.stat().st_mode) == 0o700


@pytest.mark.requirement("C2", "C6")
def test_no_way_of_ending_it_leaves_a_process_and_each_start_goes_on_with_the_data(start: Start) -> None:
    # Each start is also one of another kind, so that its words are seen without a start of their own.
    interrupted = start("--first", "no_such_command").ready()
    assert f"Console:  http://127.0.0.1:{interrupted.port}/\n" in interrupted.text()
    wait_for(lambda: "first-command ended with exit code 1: see " in interrupted.text(), seconds=START_SECONDS)
    data = interrupted.ask("select system_identifier from pg_control_system()")
    assert interrupted.interrupt() == 0, interrupted.text()
    assert interrupted.left() == []
    assert interrupted.text().rstrip().endswith("Stopped.")

    beheaded = start("--settings", "tests.programs.unmounted_settings").ready()
    assert 'Console:  not mounted: add path("shiftboss/", include("shiftboss.urls"))' in beheaded.text()
    assert "to tests.programs.unmounted_settings" in beheaded.text()
    assert "The console is at" not in beheaded.text()
    assert beheaded.ask("select system_identifier from pg_control_system()") == data
    assert beheaded.ask("select count(*) from auth_user") == 1
    assert "admin-password" in beheaded.text()
    beheaded.supervisord().kill()
    assert beheaded.up.wait(timeout=STOP_SECONDS) == 1
    assert "ended by itself (signal SIGKILL)" in beheaded.text()
    wait_for(lambda: beheaded.left() == [], seconds=10)

    killed = start("--settings", "tests.programs.mounted_settings").ready()
    assert f"Console:  http://127.0.0.1:{killed.port}/ops/queue/\n" in killed.text()
    assert f"The console is at http://127.0.0.1:{killed.port}/ops/queue/ " in killed.text()
    assert killed.ask("select system_identifier from pg_control_system()") == data
    killed.up.kill()
    killed.up.wait()
    wait_for(lambda: killed.left() == [], seconds=STOP_SECONDS)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_ctrl_c_in_the_terminal_of_make_is_no_error_of_make(home: Path, empty_database: str) -> None:
    recipe = home.parent / "Makefile"
    recipe.write_text("up:\n\t@" + " ".join(command("--port", str(free_port()))) + "\n")
    master, slave = os.openpty()
    make = subprocess.Popen(
        ["make", "-f", str(recipe)],
        cwd=home.parent,
        env=environment(home, DATABASE_URL=empty_database),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    shown = b""
    try:
        while b"Ready." not in shown:
            shown += os.read(master, 1000)
        started = psutil.Process(make.pid).children(recursive=True)
        assert not [p for p in started if "postgres" in "".join(words_of(p)[:1])]
        os.write(master, b"\x03")
        assert make.wait(timeout=STOP_SECONDS) == 0
        assert [p for p in started if runs(p)] == []
    finally:
        make.kill()
        os.close(master)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as somebody else")
def test_an_ordinary_user_runs_it_too(home: Path) -> None:
    nobody = places.unprivileged()
    assert nobody
    if not (nobody.can("-x", Path(sys.executable)) and nobody.can("-r", Path(places.__file__))):
        pytest.skip("the user nobody cannot reach this Python or this checkout")
    os.chown(home.parent, nobody.uid, nobody.gid)
    tree = Tree(home, user=nobody.uid)
    try:
        tree.ready()
        assert {process.uids().real for process in tree.processes() if runs(process)} == {nobody.uid}
        assert tree.interrupt() == 0
        assert tree.left() == []
    finally:
        tree.end()
