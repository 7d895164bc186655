"""Whether the database is one that this version can work on."""

from psycopg import errors as pg

from shiftboss.queue.errors import SchemaTooOld, UnsupportedDatabase
from shiftboss.queue.store.statement import Statement, Verb

NEWEST_MIGRATION = "0012_kill"
"""The migration that this version needs; a newer one in the database is fine."""

OLDEST_SERVER = 150000

_SCHEMA = Statement("schema", lambda version, migrations: (version, migrations))


def check_schema() -> Verb[None]:
    """Raise SchemaTooOld or UnsupportedDatabase, naming the fix; return where all is well."""
    try:
        [row] = yield _SCHEMA.call()
    except pg.UndefinedTable:
        row = None
    judge(row)


def judge(row: tuple[int, list[str]] | None) -> None:
    """The verdict on a server version and the applied migrations; None where no migration ever ran."""
    version, applied = row or (OLDEST_SERVER, [])
    if version < OLDEST_SERVER:
        raise UnsupportedDatabase(
            f"PostgreSQL {version // 10000} is too old: Shiftboss needs 15 or newer; upgrade the server"
        )
    if NEWEST_MIGRATION not in applied:
        raise SchemaTooOld(
            f"the database lacks the migration shiftboss.{NEWEST_MIGRATION}: run `manage.py migrate`"
        )
