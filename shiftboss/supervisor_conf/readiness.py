"""Whether the database can carry the record: reachable, PostgreSQL, new enough, migrated.

Each check raises an error of `queue.errors` whose text names the fix.
"""

from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from shiftboss import conf
from shiftboss.queue.errors import SchemaTooOld, UnsupportedDatabase
from shiftboss.queue.launch import reach_database
from shiftboss.queue.store.schema import OLDEST_SERVER

OLDEST = OLDEST_SERVER // 10000
"""The oldest major version of PostgreSQL that the record's statements run on."""


def check_server() -> None:
    """Raise UnsupportedDatabase or StoreUnavailable unless PostgreSQL 15 or newer answers."""
    connection = connections[conf.get().database]
    if connection.vendor != "postgresql":
        raise UnsupportedDatabase(
            f"the database {connection.alias!r} of the settings is {connection.vendor}: Shiftboss needs "
            f"PostgreSQL {OLDEST} or newer; set DATABASE_URL or SHIFTBOSS['DATABASE']"
        )
    reach_database()
    if (found := connection.pg_version // 10000) < OLDEST:  # type: ignore[attr-defined]
        raise UnsupportedDatabase(f"the database is PostgreSQL {found}: Shiftboss needs {OLDEST} or newer")


def check_migrations() -> None:
    """Raise SchemaTooOld unless every migration of the installed code is applied."""
    executor = MigrationExecutor(connections[conf.get().database])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in plan[:3])
        more = f" and {len(plan) - 3} more" if len(plan) > 3 else ""
        raise SchemaTooOld(f"the database lacks the migrations {names}{more}: run `python -m django migrate`")


def check() -> None:
    """Raise unless the database can be worked with now."""
    check_server()
    check_migrations()
