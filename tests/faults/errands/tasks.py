"""Handlers that go elsewhere: to the project's own database connection, to programs of the host."""

import subprocess
import time

from django.db import connection, connections

from shiftboss import task
from tests.logbook import opened, write

# As a project that keeps its connections from one job to the next, and never asks whether they still work.
connections.settings["default"].update(CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=False)


def _ask() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        [pid] = cursor.fetchone()
    return int(pid)


@task(max_attempts=1)
def ask_the_database(gate: str = "") -> int:
    """The server's process behind this thread's connection. With a gate, wait for it in between."""
    pid = _ask()
    write("asked", pid)
    while gate and not opened(gate):
        time.sleep(0.01)
    return _ask()


@task(max_attempts=1)
def ask_a_program(code: int) -> int:
    """The exit code of a program that ends with this one, and leaves a process of its own behind."""
    script = f"(sleep 0.2 &) ; exit {code}"
    return subprocess.run(["sh", "-c", script], check=False).returncode
