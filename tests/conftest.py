"""What tests of every part share."""

import pytest
import pytest_django
from django.db import connection
from psycopg.conninfo import make_conninfo

from tests import requirements


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker) -> None:
    """The test database with few days of partitions: each test that commits has to empty them all."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "select string_agg(format('drop table %I', c.relname), ';') from pg_inherits i"
            " join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent"
            " where p.relname like 'shiftboss\\_%' and c.relkind = 'r'"
            " and to_date(right(c.relname, 8), 'YYYYMMDD') > current_date + 2"
        )
        cursor.execute(cursor.fetchone()[0])


@pytest.fixture
def dsn(transactional_db: None) -> str:
    """The libpq address of the test database, for processes that a test starts.

    They see committed rows only, so the test's own work is committed too; the tables are emptied after it.
    """
    settings = connection.settings_dict
    return make_conninfo(
        dbname=settings["NAME"],
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that names a requirement which does not exist."""
    if unknown := set(requirements.named_by(items)) - set(requirements.LISTED):
        raise pytest.UsageError(f"tests name unknown requirements: {sorted(unknown)}")
