"""An early pytest plugin (`-p tests.postgres`): a PostgreSQL server of the session's own.

It starts before Django's settings are loaded, because they read `DATABASE_URL`. The server holds nothing
that must survive, so it does without fsync. It ends with the session, also where that is killed.
It is the embedded one, or that of the binaries in `PG_BIN`; with `-n`, each of the processes that share the
tests among them has its own. Set `SHIFTBOSS_TEST_DATABASE_URL` to test against a server of yours instead.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shiftboss.supervisor_conf.postgres import Postgres

FAST = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]


@contextmanager
def own_server() -> Iterator[str]:
    """A new server in a temporary folder for the length of the block; gives the address of its database."""
    home = Path(tempfile.mkdtemp(prefix="shiftboss-tests-"))
    home.chmod(0o711)  # as root the server runs as nobody, who has to pass through
    server = None
    try:
        server = Postgres.of(home)
        server.initialise()
        with server.serving(log=home / "postgres.log", options=FAST):
            yield server.url()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the server, or take the one that was given, and tell Django's settings of it."""
    given = os.environ.get("SHIFTBOSS_TEST_DATABASE_URL")
    if given:
        os.environ["DATABASE_URL"] = given
        return
    shared_out = getattr(early_config.known_args_namespace, "numprocesses", None)
    if shared_out and "PYTEST_XDIST_WORKER" not in os.environ:
        return  # this process only hands out the tests
    server = own_server()
    os.environ["DATABASE_URL"] = server.__enter__()
    early_config.add_cleanup(lambda: server.__exit__(None, None, None))
