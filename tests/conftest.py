"""What tests of every part share."""

from collections.abc import Iterator
from typing import Any

import pytest
import pytest_django
from django.db import connection
from psycopg.conninfo import make_conninfo

from tests import requirements
from tests.waiting import wait_for


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker) -> None:
    """The test database with few days of partitions: each test that commits has to empty them all."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "select string_agg(format('drop table %I', c.relname), ';') from pg_inherits i"
            " join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent"
            " where p.relname like 'shiftboss\\_%' and c.relkind = 'r'"
            # In one expression: the planner may look at a table's name before it knows that it is a partition.
            " and case when c.relname ~ '_[0-9]{8}$'"
            " then to_date(right(c.relname, 8), 'YYYYMMDD') > current_date + 2 end"
        )
        cursor.execute(cursor.fetchone()[0])


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """What a process keeps for a moment of what it has read is not of this test."""
    from shiftboss.console import charts, whole

    whole.forget()
    charts.forget()


@pytest.fixture(autouse=True)
def no_acts_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """The audit of a test that commits, emptied after it: Django's flush leaves it alone."""
    marker = request.node.get_closest_marker("django_db")
    commits = bool(marker and marker.kwargs.get("transaction")) or "transactional_db" in request.fixturenames
    if commits:
        request.getfixturevalue("_django_db_helper")  # so that this ends before the database is closed to the test
    yield
    if commits:
        with connection.cursor() as cursor:
            cursor.execute("select exists (select from shiftboss_audit)")
            if cursor.fetchone() == (True,):
                cursor.execute(
                    "begin; set local shiftboss.truncate_audit = 'on'; truncate shiftboss_audit; commit"
                )


@pytest.fixture
def dsn(transactional_db: None) -> Iterator[str]:
    """The libpq address of the test database, for processes that a test starts.

    They see committed rows only, so the test's own work is committed too; the tables are emptied after it,
    once what was killed has let go of its locks.
    """
    settings = connection.settings_dict
    yield make_conninfo(
        dbname=settings["NAME"],
        user=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        host=settings["HOST"] or None,
        port=settings["PORT"] or None,
    )
    # Emptying takes the locks of all tables in an order of its own, and would deadlock with a transaction that is
    # still under way: the server notices a killed client only when it next has to do with it.
    wait_for(lambda: not _transactions_of_others(), seconds=10)


def _transactions_of_others() -> list[object]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select pid, state, query from pg_stat_activity where datname = current_database()"
            " and backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()"
        )
        return cursor.fetchall()


TOGETHER = ("tests/browser/", "tests/programs/test_up.py", "tests/django_suite/")
"""Tests that share something that takes seconds to make."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`: a test goes to whoever is free, those of `TOGETHER` file by file and first."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0] if nodeid.startswith(TOGETHER) else nodeid

    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that names a requirement which does not exist."""
    if unknown := set(requirements.named_by(items)) - set(requirements.LISTED):
        raise pytest.UsageError(f"tests name unknown requirements: {sorted(unknown)}")
