"""The tables: what they refuse, who may write them, and which database they need."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, models, transaction
from django.db.models import F

from shiftboss import migrations
from shiftboss.queue.errors import SchemaTooOld, UnsupportedDatabase
from shiftboss.queue.models import Attempt, Event, Finished, Job, ReadOnly, Worker
from shiftboss.queue.store.schema import NEWEST_MIGRATION, OLDEST_SERVER, check_schema, judge
from shiftboss.queue.store.statement import run
from tests.store.conftest import Perform
from tests.store.making import NOT_HELD, execute, report, rows, running, scalar

WINDOWS: list[type[models.Model]] = [Job, Finished, Attempt, Event, Worker]

WAITING = {
    "queue": "default",
    "task": "t",
    "args": "{}",
    "state": "available",
    "failure_limit": 5,
    "loss_limit": 3,
}
RUNNING = {"state": "running", "worker_id": 1, "lease_expires_at": "2030-01-01"}
QUARANTINED = {"state": "quarantined", "quarantine_reason": "poison", "quarantined_at": "2030-01-01"}


def insert(table: str, columns: dict[str, Any]) -> None:
    """Insert a row past the verbs."""
    names = ", ".join(columns)
    values = ", ".join(["%s"] * len(columns))
    execute(f"insert into {table} ({names}) values ({values})", *columns.values())


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("columns", [{}, RUNNING, QUARANTINED], ids=["waiting", "running", "quarantined"])
def test_a_possible_row_is_accepted(columns: dict[str, Any]) -> None:
    insert("shiftboss_job", WAITING | columns)


IMPOSSIBLE: dict[str, dict[str, Any]] = {
    "running without worker": RUNNING | {"worker_id": None},
    "running without expiry": RUNNING | {"lease_expires_at": None},
    "waiting with worker": {"worker_id": 1},
    "waiting with expiry": {"lease_expires_at": "2030-01-01"},
    "quarantined with worker": QUARANTINED | {"worker_id": 1, "lease_expires_at": "2030-01-01"},
    "quarantined without reason": QUARANTINED | {"quarantine_reason": None},
    "quarantined without time": QUARANTINED | {"quarantined_at": None},
    "waiting with a reason": {"quarantine_reason": "poison", "quarantined_at": "2030-01-01"},
    "an unknown reason": QUARANTINED | {"quarantine_reason": "bored"},
    "an unknown state": {"state": "sleeping"},
    "a final state among the live": {"state": "completed"},
    "a cancel without cause": {"cancel_requested_at": "2030-01-01"},
    "a cancel without time": {"cancel_cause": "user"},
    "no queue": {"queue": ""},
    "a queue name too long": {"queue": "x" * 101},
    "no task": {"task": ""},
    "a priority too high": {"priority": 101},
    "a priority too low": {"priority": -101},
    "negative failures": {"failures": -1},
    "negative losses": {"losses": -1},
    "no attempt": {"failure_limit": 0},
    "no loss": {"loss_limit": 0},
    "an empty owner": {"owner": ""},
}


@pytest.mark.requirement("L5", "L2")
@pytest.mark.parametrize("columns", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_row_is_impossible(columns: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match="check constraint"):
        insert("shiftboss_job", WAITING | columns)


@pytest.mark.requirement("L5")
@pytest.mark.parametrize("state", ["available", "running", "quarantined", "sleeping"])
def test_a_live_state_is_impossible_among_the_finished(state: str) -> None:
    with pytest.raises(IntegrityError, match="check constraint"):
        insert("shiftboss_finished", WAITING | {"state": state, "id": 1, "finished_at": "now()"})


@pytest.mark.requirement("N5", "P2")
def test_a_key_is_held_by_one_live_job_outside_the_quarantine() -> None:
    insert("shiftboss_job", WAITING | QUARANTINED | {"key": "k"})
    insert("shiftboss_job", WAITING | {"key": "k"})
    with pytest.raises(IntegrityError, match="shiftboss_job_key"):
        insert("shiftboss_job", WAITING | RUNNING | {"key": "k"})


@pytest.mark.requirement("L5")
def test_an_outcome_of_an_attempt_is_one_of_the_known() -> None:
    row = {"job_id": 1, "fence": 1, "queue": "q", "task": "t", "ended_at": "now()"}
    insert("shiftboss_attempt", row | {"outcome": "snoozed"})
    with pytest.raises(IntegrityError, match="check constraint"):
        insert("shiftboss_attempt", row | {"outcome": "completed"})


@pytest.mark.requirement("L9")
def test_no_foreign_key_points_at_the_record() -> None:
    question = (
        "select count(*) from pg_constraint where contype = 'f' and confrelid::regclass::text like 'shiftboss_%%'"
    )
    assert scalar(question) == 0


@pytest.mark.requirement("N10", "L5")
@pytest.mark.parametrize("model", WINDOWS)
def test_models_do_not_write(model: type[models.Model]) -> None:
    one, manager = model(), model._default_manager
    writes = [
        one.save,
        one.save_base,
        one.delete,
        lambda: manager.create(),
        lambda: manager.bulk_create([one]),
        lambda: manager.bulk_update([one], ["state"]),
        lambda: manager.update(worker_id=1),
        lambda: manager.get_or_create(pk=1),
        lambda: manager.update_or_create(pk=1),
        lambda: manager.all().update(worker_id=F("worker_id")),
        lambda: manager.all().delete(),
        lambda: manager.filter(pk__isnull=False).delete(),
    ]
    for write in writes:
        with pytest.raises(ReadOnly, match="written by its verbs only"):
            write()


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("model", WINDOWS)
def test_a_window_has_the_columns_of_its_table(model: type[models.Model]) -> None:
    question = "select column_name from information_schema.columns where table_name = %s"
    columns = {name for (name,) in rows(question, model._meta.db_table)}
    assert {field.column for field in model._meta.concrete_fields} == columns


@pytest.mark.requirement("C1", "C7")
def test_models_read(worker: int) -> None:
    [held] = running(worker)
    assert Job.objects.get(id=held.job_id).worker_id == worker
    run(report("complete", held, worker))
    assert Finished.objects.get(id=held.job_id).result == {"sum": 3}
    failed = NOT_HELD["retryable"](worker)
    assert Attempt.objects.get(job_id=failed.job_id).outcome == "failed"
    run(report("fail", failed._replace(fence=9), worker))
    assert Event.objects.get(job_id=failed.job_id).data["verb"] == "fail"
    assert Worker.objects.get(id=worker).host == "web-1"


@pytest.mark.requirement("C6")
def test_the_newest_migration_is_the_one_that_is_asked_for() -> None:
    files = sorted(file.stem for file in Path(migrations.__path__[0]).glob("[0-9]*.py"))
    assert files[-1] == NEWEST_MIGRATION


@pytest.mark.requirement("C6")
def test_a_migrated_database_is_fine(perform: Perform) -> None:
    perform(check_schema())


@pytest.mark.requirement("C6")
def test_a_database_that_lacks_the_newest_migration_is_told_so() -> None:
    with transaction.atomic():
        execute("delete from django_migrations where app = 'shiftboss' and name = %s", NEWEST_MIGRATION)
        with pytest.raises(SchemaTooOld, match=rf"shiftboss\.{NEWEST_MIGRATION}: run `manage.py migrate`"):
            run(check_schema())
        transaction.set_rollback(True)


@pytest.mark.requirement("C6")
def test_a_database_that_was_never_migrated_is_told_so(connect: Any) -> None:
    session = connect()
    session.execute("set search_path = 'nowhere'")
    with pytest.raises(SchemaTooOld, match=r"run `manage.py migrate`"):
        session.run(check_schema())


@pytest.mark.requirement("C6")
def test_a_newer_schema_is_fine_and_an_older_server_is_not() -> None:
    judge((OLDEST_SERVER, [NEWEST_MIGRATION, "9999_from_the_future"]))
    with pytest.raises(UnsupportedDatabase, match="PostgreSQL 14 is too old: Shiftboss needs 15 or newer"):
        judge((140012, [NEWEST_MIGRATION]))


def modules_of_tables() -> list[Any]:
    """The migrations that change tables, in their order."""
    names = sorted(file.stem for file in Path(migrations.__path__[0]).glob("[0-9]*.py"))
    modules = [import_module(f"shiftboss.migrations.{name}") for name in names]
    return [module for module in modules if hasattr(module, "SCHEMA")]


FILES = """
select oid::regclass::text, relfilenode from pg_class
where relnamespace = 'elsewhere'::regnamespace and relkind in ('r', 'i', 't')
"""
INVALID = """
select indexrelid::regclass::text from pg_index
where not indisvalid and indrelid in (select oid from pg_class where relnamespace = 'elsewhere'::regnamespace)
"""


@pytest.mark.requirement("C6", "L30")
def test_the_newest_migration_waits_for_nobody_who_enqueues_or_claims_and_rewrites_nothing(connect: Any) -> None:
    """One that has to take a table of jobs from everybody for a moment says so here, with its bound."""
    *before, newest = modules_of_tables()
    session, client = connect(), connect()
    session.execute("create schema elsewhere")
    try:
        for one in (session, client):
            one.execute("set search_path = 'elsewhere'")
        for module in before:
            session.execute(module.SCHEMA)
        client.execute("begin")
        columns = ", ".join(WAITING)
        values = ", ".join(["%s"] * len(WAITING))
        client.execute(f"insert into shiftboss_job ({columns}) values ({values})", list(WAITING.values()))
        client.execute("select from shiftboss_job where state = 'available' for update skip locked")
        for table in ("finished", "attempt", "event", "worker", "queue", "slot"):
            client.execute(f"lock table shiftboss_{table} in row exclusive mode")
        files = dict(session.execute(FILES))
        session.execute("set lock_timeout = '5s'")
        session.execute(newest.SCHEMA)
        client.execute("commit")
        assert files.items() <= dict(session.execute(FILES)).items()
        assert session.execute(INVALID) == []
    finally:
        client.execute("rollback")
        session.execute("drop schema elsewhere cascade")


@pytest.mark.requirement("C6")
def test_migrations_go_back_and_forth(connect: Any) -> None:
    modules = modules_of_tables()
    session = connect()
    session.execute("create schema elsewhere")
    try:
        session.execute("set search_path = 'elsewhere'")
        for _ in range(2):
            for module in modules:
                session.execute(module.SCHEMA)
            assert (
                session.execute(
                    "select count(*) from pg_inherits i join pg_class c on c.oid = i.inhparent "
                    "where c.relnamespace = 'elsewhere'::regnamespace and c.relkind = 'p'"
                )[0][0]
                >= 48
            )
            for module in reversed(modules):
                session.execute(module.DROP)
        left = "select count(*) from pg_class where relnamespace = 'elsewhere'::regnamespace"
        assert session.execute(left) == [(0,)]
    finally:
        session.execute("drop schema elsewhere cascade")
