"""The console while the database is in trouble."""

import psycopg
import pytest
from django.test import Client

from shiftboss.console import record
from tests.console import scenes

pytestmark = pytest.mark.requirement("C3")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", ["/jobs/", "/jobs/1/", "/jobs/1/cancellations/"])
def test_a_database_that_does_not_answer_in_time_is_said_so(
    browser: Client, dsn: str, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(record, "PATIENCE_SECONDS", 0.1)
    with scenes.abandoned(), psycopg.connect(dsn) as other:
        other.execute("lock table shiftboss_job in access exclusive mode")
        response = browser.get(address)
    assert response.status_code == 503
    page = response.content.decode()
    assert "The database did not answer in time" in page
    assert response.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert browser.get("/").status_code == 200


@pytest.mark.requirement("B8", "B16")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", ["/", "/queues/", "/workers/"])
def test_pages_of_the_whole_need_no_table_of_jobs(
    browser: Client, dsn: str, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    scenes.job(queue="mail")
    with scenes.maintained(), psycopg.connect(dsn) as other:
        other.execute("lock table shiftboss_finished in access exclusive mode")
        response = browser.get(address)
    assert response.status_code == 200
    assert "in mail" in response.content.decode()


def test_a_database_that_was_not_migrated_is_said_so(browser: Client) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("alter table shiftboss_sample rename to elsewhere")
    response = browser.get("/")
    assert response.status_code == 503
    assert "The database has not been migrated" in response.content.decode()
