"""What tests of every part share."""

import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from tests import requirements


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
