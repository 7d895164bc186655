"""A project that keeps the record apart from its own tables."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.programs.tree import environment
from tests.waiting import wait_for

SETTINGS = "tests.programs.two_databases"

USE = """
import json
import django
django.setup()
from django.contrib.auth.models import Group, User
from django.db import connections, transaction
from django.test import Client
from shiftboss.permissions import Person
from shiftboss.console import tokens
from shiftboss.models import Audit, Job
from tests.programs.jobs import add

class Undo(Exception):
    pass

def undone(using):
    try:
        with transaction.atomic(using=using):
            add.enqueue(1)
            raise Undo
    except Undo:
        return Job.objects.count()

browser = Client()
after_rollback = undone("record")
with transaction.atomic(using="record"):
    job = add.enqueue(20, two=22)
kim = User.objects.create_user("kim", is_staff=True)
kim.groups.add(Group.objects.get(name="Shiftboss operator"))
browser.force_login(kim)
page = browser.get(f"/jobs/{job.id}/", headers={"host": "localhost"})
_, token = tokens.create("deploy", username="kim", by=Person.of_shell())
program = Client(headers={"host": "localhost", "Authorization": f"Bearer {token}"})
act = program.post(f"/api/v1/jobs/{job.id}/reprioritise", {"priority": 3}, content_type="application/json")
print(json.dumps({
    "after_rollback": after_rollback,
    "status": add.get_result(job.id).status,
    "window": Job.objects.get(id=job.id).task,
    "alias": Job.objects.get(id=job.id)._state.db,
    "page": page.status_code,
    "named": f"Job {job.id}, available" in page.content.decode(),
    "act": act.status_code,
    "audit": [entry.act for entry in Audit.objects.order_by("id")],
    "after_rollback_of_another_database": undone("default"),
}))
"""


@pytest.fixture
def databases() -> Iterator[Callable[[str], Any]]:
    """Two empty databases; gives a connection to one of them by its alias."""
    server = urlsplit(os.environ["DATABASE_URL"])
    names = {"default": "shiftboss_shop", "record": "shiftboss_record"}
    opened = []

    def connect(alias: str) -> Any:
        url = server._replace(path=f"/{names[alias]}").geturl()
        opened.append(psycopg.connect(url, autocommit=True))
        return opened[-1]

    with psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True) as connection:
        for name in names.values():
            connection.execute(f"create database {name}")
        yield connect
        for one in opened:
            one.close()
        for name in names.values():
            connection.execute(f"drop database {name} with (force)")


@pytest.mark.requirement("C1", "C7", "C8")
def test_a_record_in_a_second_database_is_migrated_enqueued_worked_and_read_there_alone(
    tmp_path: Path, databases: Callable[[str], Any]
) -> None:
    given = {"DATABASE_URL": os.environ["DATABASE_URL"], "DJANGO_SETTINGS_MODULE": SETTINGS}
    environ = environment(tmp_path, **given, SHIFTBOSS_RUN_FOLDER=str(tmp_path / "run"))

    def start(*words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-P", *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(*words: str) -> str:
        process = start(*words)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        return output

    assert "no issues" in run("-m", "django", "check", "--fail-level", "WARNING")
    for alias in ("default", "record"):
        run("-m", "django", "migrate", "--database", alias)
    assert "Shiftboss operator: made" in run("-m", "django", "shiftboss_roles")
    tables = "select count(*) from pg_class where relname like 'shiftboss%'"
    assert databases("default").execute(tables).fetchone() == (0,)

    assert json.loads(run("-c", USE)) == {
        "after_rollback": 0,
        "status": "READY",
        "window": "tests.programs.jobs.add",
        "alias": "record",
        "page": 200,
        "named": True,
        # People and their groups are in the other one.
        "act": 200,
        "audit": ["create_token", "reprioritise"],
        # A job commits with the record's database, not with another one.
        "after_rollback_of_another_database": 2,
    }

    record = databases("record")
    worker = start("-m", "django", "shiftboss_worker")
    try:
        results = "select (result #>> '{}')::int from shiftboss_finished where state = 'completed' order by id"
        wait_for(lambda: worker.poll() is None and len(record.execute(results).fetchall()) == 2, seconds=30)
        assert record.execute(results).fetchall() == [(42,), (2,)]
        worker.terminate()
        assert worker.wait(timeout=30) == 0
    finally:
        worker.kill()
        worker.communicate()
