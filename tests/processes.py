"""Processes that may end at any moment, looked at without stumbling over their end."""

import psutil


def runs(process: psutil.Process) -> bool:
    """Whether it still runs: neither gone nor only waiting to be reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def command_line(process: psutil.Process) -> list[str]:
    """Its words; none where it has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
