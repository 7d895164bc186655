"""The launcher between supervisord and a program: nobody notices it, and it knows how the program ended."""

import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from shiftboss.supervisor_conf import control, incarnations, launcher, render
from shiftboss.supervisor_conf.incarnations import Incarnation
from shiftboss.supervisor_conf.programs import Program
from tests.processes import runs
from tests.programs.supervisords import START_SECONDS, supervisord
from tests.programs.test_render import installation
from tests.waiting import wait_for

pytestmark = pytest.mark.requirement("C2", "L28")


def launch(notes: Path, *command: str, **more: Any) -> "subprocess.Popen[str]":
    """A launcher with this command, named `one`."""
    words = [sys.executable, "-I", "-S", launcher.__file__, str(notes), "one", "--", *command]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def noted(notes: Path, name: str = "one") -> list[Incarnation]:
    """What is noted of a program."""
    return incarnations.noted(notes, [name])


def the_end(notes: Path) -> Incarnation:
    """The one life that is noted, ended."""
    [only] = noted(notes)
    assert only.ended
    assert only.started <= only.ended
    return only


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_an_exit_code_is_passed_on_and_noted(tmp_path: Path, code: int) -> None:
    assert launch(tmp_path, "sh", "-c", f"echo said; exit {code}").communicate() == ("said\n", "")
    ended = the_end(tmp_path)
    assert (ended.code, ended.signal) == (code, None)
    assert ended.uptime_seconds is not None
    assert (ended.peak_memory_kb or 0) > 0


def test_what_a_listener_of_events_prints_is_no_answer_of_its(tmp_path: Path) -> None:
    script = "echo printed; echo READY >&3; cat"
    words = [launcher.__file__, launcher.APART, str(tmp_path), "one", "--", "sh", "-c", script]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", *words], input=b"an event\n", capture_output=True, check=False
    )
    assert (ran.stdout, ran.stderr) == (b"READY\n", b"printed\nan event\n")
    assert the_end(tmp_path).code == 0


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_signal_is_passed_on_and_noted(tmp_path: Path, number: signal.Signals) -> None:
    launched = launch(tmp_path, "sh", "-c", f"kill -{int(number)} $$")
    launched.communicate()
    assert launched.returncode == -number
    ended = the_end(tmp_path)
    assert (ended.code, ended.signal) == (None, number)
    assert not list(tmp_path.glob("**/core*"))


def test_signals_reach_the_program_each_time_and_the_launcher_waits_for_it(tmp_path: Path) -> None:
    script = (
        "n=0; trap 'n=$((n+1)); echo got $n; [ $n = 2 ] && exit 5' TERM; echo on; while :; do sleep 0.05; done"
    )
    launched = launch(tmp_path, "sh", "-c", script)
    assert launched.stdout
    for said in ("on\n", "got 1\n"):
        assert launched.stdout.readline() == said
        launched.send_signal(signal.SIGTERM)
    assert launched.communicate(timeout=START_SECONDS) == ("got 2\n", "")
    assert launched.returncode == 5
    assert the_end(tmp_path).code == 5


def test_a_signal_that_comes_before_the_program_is_there_reaches_it(tmp_path: Path) -> None:
    launched = launch(tmp_path, "sleep", "600")
    wait_for(lambda: "SigBlk:\t0000000000000000" not in _status(launched.pid) or noted(tmp_path), seconds=20)
    launched.terminate()
    launched.communicate(timeout=START_SECONDS)
    assert launched.returncode == -signal.SIGTERM


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def test_a_program_that_lives_is_noted_with_its_pid_and_in_the_group_of_its_launcher(tmp_path: Path) -> None:
    launched = launch(tmp_path, "sleep", "600", start_new_session=True)
    try:
        [alive] = wait_for(lambda: noted(tmp_path), seconds=20)
        assert (alive.ended, alive.code, alive.signal, alive.launcher) == (None, None, None, launched.pid)
        assert alive.pid
        assert os.getpgid(alive.pid) == launched.pid
        assert "SigBlk:\t0000000000000000" in _status(alive.pid)
        assert psutil.Process(launched.pid).memory_info().rss < 20 * 1024 * 1024
    finally:
        launched.terminate()
        launched.communicate()


def test_a_command_that_cannot_be_run_is_noted_too(tmp_path: Path) -> None:
    launched = launch(tmp_path, "/no/such/program")
    assert launched.communicate()[1] == "launcher: /no/such/program cannot be run: No such file or directory\n"
    assert (launched.returncode, the_end(tmp_path).code, the_end(tmp_path).pid) == (127, 127, None)


def test_the_folders_of_notes_are_the_owners_alone(tmp_path: Path) -> None:
    launch(tmp_path / "launched", "true").communicate()
    folders = (tmp_path / "launched", tmp_path / "launched" / "one")
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_a_note_that_cannot_be_written_ends_no_program(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    launched = launch(tmp_path / "file", "sh", "-c", "echo said; exit 3")
    said, told = launched.communicate()
    assert (said, launched.returncode) == ("said\n", 3)
    assert "cannot be written: Not a directory" in told


def test_notes_that_nobody_takes_do_not_pile_up(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    for number in range(launcher.MOST_NOTES + 20):
        (tmp_path / "one" / f"{1_700_000_000_000 + number}-1.ended").touch()
    launch(tmp_path, "true").communicate()
    assert len(list((tmp_path / "one").iterdir())) == launcher.MOST_NOTES
    assert the_end(tmp_path).code == 0


FORGED = {
    "empty": "",
    "no pairs": "x\n",
    "a negative pid": "launcher=-1\nstarted=1\n",
    "a time of never": "launcher=1\nstarted=nan\n",
    "a pid without end": f"launcher={'9' * 5000}\nstarted=1\n",
    "too much": "launcher=1\nstarted=1\n" + "x=1\n" * 2000,
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED)
def test_what_is_no_note_is_not_taken_for_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "1-1.ended").write_text(text)
    assert noted(tmp_path) == []


def test_notes_behind_links_and_of_other_kinds_are_not_read(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "1-1.ended").write_text("launcher=1\nstarted=1\nended=2\ncode=0\n")
    assert len(noted(tmp_path, "real")) == 1
    (tmp_path / "one").symlink_to(real)
    (real / "2-1.ended").symlink_to(real / "1-1.ended")
    os.mkfifo(real / "3-1.ended")
    (real / "4-1.ended").mkdir()
    assert noted(tmp_path) == []
    [only] = noted(tmp_path, "real")
    incarnations.forget(only)
    assert noted(tmp_path, "real") == []


def worker(name: str, script: str) -> Program:
    """A shell as a program; `$0` is its name."""
    return Program(name=name, command=["sh", "-c", script, name], priority=1, stop_seconds=1, start_seconds=0)


def test_supervisord_sees_the_same_ends_as_without_it(tmp_path: Path) -> None:
    given = installation(tmp_path)
    pids = tmp_path / "pids"
    found = [
        worker("fails", "exit 7"),
        worker("crashes", "kill -SEGV $$"),
        # A child that ignores the stop signal, in the group that is killed in the end.
        worker("stays", f"trap '' TERM; sh -c 'echo $$ > {pids}; exec sleep 600'; sleep 600"),
    ]
    found = [replace(one, restart=False) for one in found]
    incarnations.make_folders(tmp_path, found)
    notes = incarnations.folder(tmp_path, None)
    file = tmp_path / "supervisord.conf"
    file.write_text(render.render(given, found))
    with supervisord(file, render.socket_path(tmp_path)) as running:
        wait_for(lambda: all(_ended(notes, name) for name in ("fails", "crashes")), seconds=START_SECONDS)
        [fails], [crashes] = noted(notes, "fails"), noted(notes, "crashes")
        assert (fails.code, crashes.signal) == (7, signal.SIGSEGV)
        said = wait_for(lambda: _all_exited(running.programs(), "fails", "crashes"), seconds=START_SECONDS)
        assert said["fails"]["exitstatus"] == 7
        grandchild = psutil.Process(
            int(wait_for(lambda: pids.exists() and pids.read_text(), seconds=START_SECONDS))
        )
        [stays] = noted(notes, "stays")
        assert stays.launcher == running.programs()["stays"]["pid"]
        below = running.below()
        control.call(running.socket, "stopProcess", "stays")
        wait_for(lambda: not runs(grandchild), seconds=START_SECONDS)
        wait_for(lambda: not any(one.is_running() for one in below), seconds=START_SECONDS)  # no zombie either
        # The kill reached the launcher too: how it ended is not known, and that is what the notes say.
        [stays] = noted(notes, "stays")
        assert (stays.ended, stays.code, stays.signal) == (None, None, None)


def test_a_killed_supervisord_takes_launchers_and_programs_along(tmp_path: Path) -> None:
    given = installation(tmp_path)
    found = [worker("one", "exec sleep 600"), worker("two", "exec sleep 600")]
    incarnations.make_folders(tmp_path, found)
    file = tmp_path / "supervisord.conf"
    file.write_text(render.render(given, found))
    notes = incarnations.folder(tmp_path, None)
    with supervisord(file, render.socket_path(tmp_path)) as running:
        wait_for(lambda: len(incarnations.noted(notes, ["one", "two"])) == 2, seconds=START_SECONDS)
        below = running.below()
        assert len(below) == 4
        running.process.kill()
        wait_for(lambda: not any(map(runs, below)), seconds=START_SECONDS)
    assert {one.signal for one in incarnations.noted(notes, ["one", "two"])} == {signal.SIGTERM}


def _ended(notes: Path, name: str) -> bool:
    return bool(noted(notes, name)) and noted(notes, name)[0].ended is not None


def _all_exited(programs: dict[str, dict[str, Any]], *names: str) -> dict[str, dict[str, Any]]:
    return programs if all(programs[name]["statename"] == "EXITED" for name in names) else {}
