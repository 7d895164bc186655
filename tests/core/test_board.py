"""Memory that a keeper shares with its executors."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftboss.queue.runtime.board import (
    ENDED,
    MAX_EXECUTORS,
    NOT_STARTED,
    STARTED,
    TICKETS,
    DeadlineBoard,
    SlotBoard,
)

pytestmark = pytest.mark.requirement("R6")

ROOT = Path(__file__).resolve().parents[2]

STARTS_TWO_AND_DIES = """
import os, signal, sys
from shiftboss.queue.runtime.board import ENDED, STARTED, SlotBoard
board = SlotBoard(int(sys.argv[1]))
board.mark(1, STARTED)
board.mark(2, STARTED)
board.mark(2, ENDED)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def board() -> Iterator[SlotBoard]:
    """A slot board."""
    board = SlotBoard()
    yield board
    board.close()


def test_nothing_has_started_on_a_new_board(board: SlotBoard) -> None:
    assert {board.state(ticket) for ticket in range(TICKETS)} == {NOT_STARTED}


def test_what_had_started_is_known_after_a_kill(board: SlotBoard) -> None:
    died = subprocess.run(
        [sys.executable, "-P", "-c", STARTS_TWO_AND_DIES, str(board.fd)],
        pass_fds=[board.fd],
        env={"PYTHONPATH": str(ROOT)},
        timeout=30,
    )
    assert died.returncode == -signal.SIGKILL
    assert [board.state(ticket) for ticket in (0, 1, 2, 3)] == [NOT_STARTED, STARTED, ENDED, NOT_STARTED]


@pytest.mark.requirement("L2")
def test_an_expiry_crosses_between_processes(board: SlotBoard) -> None:
    other = SlotBoard(os.dup(board.fd))
    board.set_expiry(TICKETS - 1, 12345.678)
    assert other.expiry(TICKETS - 1) == 12345.678
    other.close()


@pytest.mark.requirement("N13")
def test_the_time_of_a_start_crosses_between_processes_and_counts_only_once_it_was_made(board: SlotBoard) -> None:
    other = SlotBoard(os.dup(board.fd))
    other.begin(7, 12.5)
    assert (board.began_at(7), board.state(7), board.began_at(6)) == (12.5, STARTED, 0.0)
    other.mark(7, ENDED)
    assert board.began_at(7) == 12.5
    board.mark(7, NOT_STARTED)  # the ticket's next job
    assert board.began_at(7) == 0.0
    other.close()


def test_places_do_not_touch_each_other(board: SlotBoard) -> None:
    for ticket in range(TICKETS):
        board.set_expiry(ticket, float(ticket))
        board.begin(ticket, float(-ticket))
        board.mark(ticket, ticket % 3)
    assert all(board.began_at(ticket) == (-ticket if ticket % 3 else 0) for ticket in range(TICKETS))
    assert all(board.expiry(ticket) == ticket and board.state(ticket) == ticket % 3 for ticket in range(TICKETS))


@pytest.mark.requirement("S13")
def test_the_sentinel_reads_pids_and_deadlines_of_those_with_work_in_hand() -> None:
    board = DeadlineBoard()
    board.write(0, 100, 5.5)
    board.write(1, 101, 0.0)
    board.write(MAX_EXECUTORS - 1, 102, 7.25)
    other = DeadlineBoard(os.dup(board.fd))
    assert other.read() == [(0, 100, 5.5), (MAX_EXECUTORS - 1, 102, 7.25)]
    board.write(0, 0, 0.0)
    assert other.read() == [(MAX_EXECUTORS - 1, 102, 7.25)]
