"""Ending a process with all that it has started, and nobody else."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftboss.queue.runtime import ending, sentinel
from shiftboss.queue.runtime.board import DeadlineBoard
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux",
    reason="only Linux shows what other processes were started with; elsewhere groups are ended",
)

WORD = ending.new_mark()
OTHER = f"{ending.new_mark()}.1"

PARENT = """
import subprocess, sys, time
for session in (True, False):
    for env in (None, {"PATH": "/bin:/usr/bin"}):
        child = subprocess.Popen(["sleep", "600"], start_new_session=session, env=env)
        print(child.pid, flush=True)
time.sleep(600)
"""


def started(mark: str, *argv: str) -> subprocess.Popen[bytes]:
    """A process with a mark, leading a session of its own."""
    process = subprocess.Popen(
        argv, start_new_session=True, env={**os.environ, ending.MARK: mark}, stdout=subprocess.PIPE
    )
    # The kernel shows what a process was started with a moment after it has become that program.
    wait_for(lambda: ending.mark_of(process.pid) or is_gone(process.pid), seconds=20)
    return process


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process with another mark, which outlives the test's endings."""
    process = started(OTHER, "sleep", "600")
    yield process
    assert process.poll() is None
    process.kill()
    process.communicate()


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.requirement("N13", "N14")
def test_a_process_ends_with_its_group_and_its_descendants_whatever_their_session_and_environment(
    bystander: subprocess.Popen[bytes],
) -> None:
    parent = started(f"{WORD}.1", sys.executable, "-c", PARENT)
    assert parent.stdout is not None
    children = [int(parent.stdout.readline()) for _ in range(4)]
    ending.end(parent.pid, started=ending.start_time(parent.pid), mark=f"{WORD}.1")
    parent.communicate()
    wait_for(lambda: all(map(is_gone, children)), seconds=10)


@pytest.mark.requirement("N13", "N14")
def test_orphans_are_known_by_their_mark_alone(bystander: subprocess.Popen[bytes]) -> None:
    orphans = [started(f"{WORD}.7", "sleep", "600"), started(f"{WORD}.70", "sleep", "600")]
    assert ending.end_marked(f"{WORD}.7") == [orphans[0].pid]
    assert ending.end_marked(WORD[:-1]) == []
    assert ending.end_marked(WORD) == [orphans[1].pid]
    for orphan in orphans:
        orphan.communicate()
        assert is_gone(orphan.pid)


@pytest.mark.requirement("N14")
def test_who_has_the_pid_of_an_executor_of_old_is_left_alone(bystander: subprocess.Popen[bytes]) -> None:
    now = ending.start_time(bystander.pid)
    assert now is not None
    ending.end(bystander.pid, started=now - 1, mark=None)
    ending.end(bystander.pid, started=None, mark=WORD)
    assert ending.mark_of(bystander.pid) == OTHER
    assert ending.mark_of(os.getpid()) is None


@pytest.mark.requirement("N14")
def test_a_process_that_is_gone_is_no_trouble() -> None:
    process = started(f"{WORD}.1", "true")
    process.communicate()
    assert (ending.start_time(process.pid), ending.mark_of(process.pid)) == (None, None)
    ending.end(process.pid, started=1, mark=f"{WORD}.1")


@pytest.mark.requirement("N14", "S13")
def test_the_sentinel_ends_executors_of_its_keeper_and_nobody_who_has_the_pid_of_one(
    bystander: subprocess.Popen[bytes],
) -> None:
    board = DeadlineBoard()
    marked, child = started(f"{WORD}.3", "sleep", "600"), started(OTHER, "sleep", "600")
    for place, process in enumerate((bystander, marked)):
        board.write(place, process.pid, 5.0)
    assert sentinel.run_once(board, 4.0, keeper=-1, mark=WORD) == []
    assert sentinel.run_once(board, 5.0, keeper=-1, mark=WORD) == [marked.pid]
    assert board.read() == []
    # Its environment may be hidden; a keeper's child has its pid until the keeper has heard of its end.
    assert ending.is_executor(child.pid, mark=WORD, keeper=os.getpid())
    for process in (marked, child):
        process.kill()
        process.communicate()
    assert not ending.is_executor(marked.pid, mark=WORD, keeper=os.getpid())
