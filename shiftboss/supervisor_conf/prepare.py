"""What has to be true before the programs start: database, migrations, an operator who can log in."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shiftboss import conf
from shiftboss.supervisor_conf import readiness
from shiftboss.supervisor_conf.installation import Installation, write_private
from shiftboss.supervisor_conf.postgres import Postgres

OPERATOR = "admin"
PASSWORD_FILE = "admin-password"

Say = Callable[[str], None]


def prepare(installation: Installation, *, say: Say) -> str | None:
    """Make the database ready; the password of the operator made now, None where there is one already.

    Django must be set up. Raises PostgresError, StoreUnavailable, UnsupportedDatabase.
    """
    with _database(installation, say=say):
        readiness.check_server()
        _migrate(say)
        password = _first_operator(installation.home, say)
        _close_connections()
    return password


@contextmanager
def _database(installation: Installation, *, say: Say) -> Iterator[None]:
    """The embedded server for the length of the block, where the installation has one."""
    if not installation.embedded:
        yield
        return
    postgres = Postgres.of(installation.home)
    if not (postgres.data / "PG_VERSION").exists():
        say(f"Making an embedded PostgreSQL in {postgres.folder} …")
    postgres.initialise()
    with postgres.serving(log=installation.logs / "postgres.log"):
        postgres.create_database()
        yield


def _migrate(say: Say) -> None:
    from django.core.management import call_command

    from shiftboss.queue.errors import SchemaTooOld

    try:
        readiness.check_migrations()
    except SchemaTooOld:
        say("Applying migrations …")
        call_command("migrate", database=conf.get().database, interactive=False, verbosity=0)


def _first_operator(home: Path, say: Say) -> str | None:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import UserManager

    users = get_user_model()._default_manager
    if users.filter(is_superuser=True).exists():
        return None
    if not isinstance(users, UserManager):
        say("There is no operator yet; make one: python -m django createsuperuser")
        return None
    password = secrets.token_urlsafe(12)
    write_private(home / PASSWORD_FILE, password + "\n")
    users.create_superuser(OPERATOR, password=password)
    return password


def _close_connections() -> None:
    """Leave nothing open on a server that is about to stop."""
    from django.db import connections

    connections.close_all()
