"""What a program takes is what all take that it has started."""

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from shiftboss.supervisor_conf.taken import OVER_SECONDS, PACE_SECONDS, Taken, with_children
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.requirement("L28", "B1"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of all processes in /proc"),
]

PARENT = """
import subprocess, sys, threading
busy = "block = bytearray(64 << 20)\\nfor n in range(0, len(block), 4096): block[n] = 1\\nwhile True: pass"
def start():
    subprocess.Popen([sys.executable, "-S", "-c", busy])
threading.Thread(target=start).start()
threading.Event().wait()
"""


@pytest.fixture
def parent() -> Iterator[psutil.Process]:
    """A process that does nothing, with a child (of a thread) that holds 64 MB and keeps a core busy."""
    started = subprocess.Popen([sys.executable, "-S", "-c", PARENT])
    family = psutil.Process(started.pid)
    try:
        wait_for(lambda: [one for one in family.children() if one.memory_info().rss > 64 << 20], seconds=60)
        yield family
    finally:
        for one in [*family.children(recursive=True), family]:
            one.kill()
        started.wait()


def test_memory_and_processor_are_those_of_all_that_it_has_started(parent: psutil.Process) -> None:
    now = 100.0
    taken = Taken(clock=lambda: now)
    [child] = parent.children()
    assert list(with_children(parent.pid)) == [parent.pid, child.pid]
    share = taken.look([parent.pid])[parent.pid]
    assert share.memory_kb
    assert share.memory_kb > 64 << 10
    assert share.cores is None
    used = sum(child.cpu_times()[:2])
    wait_for(lambda: sum(child.cpu_times()[:2]) >= used + 0.5, seconds=60)
    now += PACE_SECONDS
    cores = taken.look([parent.pid])[parent.pid].cores
    assert cores
    assert cores >= 0.5 / PACE_SECONDS


def test_a_look_that_comes_too_soon_costs_nothing_and_an_old_use_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, cpu_ms = 100.0, 0
    taken = Taken(clock=lambda: now)
    monkeypatch.setattr("shiftboss.supervisor_conf.taken.usage.of_processes", lambda pids: (1, cpu_ms))

    def cores() -> float | None:
        return taken.look([7])[7].cores

    assert cores() is None
    now, cpu_ms = 101.0, 5_000
    assert cores() is None
    now = 102.0
    assert cores() == 2.5
    now = 102.0 + OVER_SECONDS
    assert cores() == 0.0
    now, cpu_ms = now + PACE_SECONDS, 0
    assert cores() == 0.0
    assert taken.look([7, 8]) == {7: (1, 0.0), 8: (1, None)}
    assert taken.look([8]) == {8: (1, None)}
    assert cores() is None


def test_of_a_process_that_is_gone_nothing_is_told() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert Taken().look([gone.pid]) == {gone.pid: (None, None)}
