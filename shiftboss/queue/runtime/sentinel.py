"""The sentinel: kills executors whose leases are about to run out without a word from their keeper.

A keeper that is stopped, swapped out or cut off from the database cannot renew; another worker will soon own
its jobs. A timer inside the executor could not be prolonged while a handler holds the GIL, so the watch is a
process of its own that reads deadlines from shared memory (board.py). It ends with its keeper, and then ends what
the executors have left behind.

    python -P -m shiftboss.queue.runtime.sentinel BOARD_FD KEEPER_PID INTERVAL_SECONDS MARK
"""

import os
import signal
import sys
import time

from shiftboss.queue.runtime import ending
from shiftboss.queue.runtime.board import DeadlineBoard
from shiftboss.queue.runtime.ports import boot_clock


def run_once(board: DeadlineBoard, now: float, *, keeper: int, mark: str) -> list[int]:
    """Kill what is past its deadline; answers the pids. Who has the pid of one that is gone is left alone."""
    late = []
    for place, pid, deadline in board.read():
        if now >= deadline:
            board.write(place, pid, 0.0)
            if ending.is_executor(pid, mark=mark, keeper=keeper):
                late.append(pid)
    marks = [ending.mark_of(pid) for pid in late]
    for pid in late:
        ending.end(pid, started=ending.start_time(pid), mark=None)
    for one in filter(None, marks):
        ending.end_marked(one)
    return late


def main(board_fd: int, keeper_pid: int, interval_seconds: float, mark: str) -> None:
    """Watch until the keeper is gone; then its executors must be gone too."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    board = DeadlineBoard(board_fd)
    while os.getppid() == keeper_pid:
        run_once(board, boot_clock(), keeper=keeper_pid, mark=mark)
        time.sleep(interval_seconds)
    run_once(board, float("inf"), keeper=keeper_pid, mark=mark)
    ending.end_marked(mark)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
