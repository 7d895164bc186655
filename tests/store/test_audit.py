"""The audit is only ever added to, also by the owner of the table."""

import json
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from shiftboss import Owner
from shiftboss.queue.errors import NotAllowed
from shiftboss.queue.store import audit
from shiftboss.queue.store.statement import run, sql_text
from tests.store.conftest import Perform
from tests.store.making import SYSTEM, execute, rows, scalar

pytestmark = pytest.mark.requirement("B6", "C4")


@pytest.fixture(autouse=True)
def emptied(record: None) -> Iterator[None]:
    """The audit, emptied in the only way there is."""
    yield
    after_setting("on", "truncate shiftboss_audit")


def after_setting(setting: str, statement: str) -> None:
    """A statement in a transaction in which the audit's truncation has been set to something."""
    with transaction.atomic():
        rows("select set_config('shiftboss.truncate_audit', %s, true)", setting)
        execute(statement)


def an_entry(reason: str = "it was sent twice", request_id: str | None = None) -> audit.Entry:
    """An act of somebody on a job."""
    return audit.Entry(
        actor_kind="user",
        actor_id="7",
        actor_name="kim",
        via="console",
        act="cancel",
        reason=reason,
        operation=uuid4(),
        job_id=11,
        jobs=1,
        request_id=request_id,
        before='{"state": "available"}',
    )


CHANGES = {
    "update": "update shiftboss_audit set reason = 'another'",
    "update of nothing": "update shiftboss_audit set reason = 'another' where id = 0",
    "delete": "delete from shiftboss_audit",
    "truncate": "truncate shiftboss_audit",
    "merge": (
        "merge into shiftboss_audit a using (values (1)) v (n) on true"
        " when matched then update set reason = 'another'"
    ),
    "upsert": (
        "insert into shiftboss_audit as a (id, actor_kind, actor_name, via, act, reason, operation)"
        " select id, 'user', 'sam', 'code', 'cancel', '', gen_random_uuid() from shiftboss_audit"
        " on conflict (id) do update set reason = 'another'"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_entry_is_neither_changed_nor_removed(change: str) -> None:
    run(audit.write(an_entry(), authority=SYSTEM))
    before = rows("select * from shiftboss_audit")
    owner = scalar("select tableowner = current_user from pg_tables where tablename = 'shiftboss_audit'")
    assert owner, "whoever owns the table is refused too"
    with pytest.raises(ProgrammingError, match="append-only"):
        execute(change)
    assert rows("select * from shiftboss_audit") == before


@pytest.mark.parametrize("setting", ["off", "", "1", "true", "ON"])
def test_only_the_one_setting_lets_it_be_emptied(setting: str) -> None:
    run(audit.write(an_entry(), authority=SYSTEM))
    with pytest.raises(ProgrammingError, match="append-only"):
        after_setting(setting, "truncate shiftboss_audit")
    assert scalar("select count(*) from shiftboss_audit") == 1


def test_the_setting_that_lets_it_be_emptied_lets_nothing_be_changed() -> None:
    run(audit.write(an_entry(), authority=SYSTEM))
    for change in ("update shiftboss_audit set reason = 'another'", "delete from shiftboss_audit"):
        with pytest.raises(ProgrammingError, match="append-only"):
            after_setting("on", change)
    after_setting("on", "select 1")
    # It ends with its transaction.
    with pytest.raises(ProgrammingError, match="append-only"):
        execute("truncate shiftboss_audit")
    assert scalar("select count(*) from shiftboss_audit") == 1


def test_entries_come_back_as_they_were_written(perform: Perform) -> None:
    numbers = [perform(audit.write(an_entry(f"reason {n}", f"r{n}"), authority=SYSTEM)) for n in range(3)]
    found = perform(audit.entries(authority=SYSTEM, job_id=11))
    assert [row.id for row in found] == numbers[::-1]
    assert [row.reason for row in found] == ["reason 2", "reason 1", "reason 0"]
    assert perform(audit.entries(authority=SYSTEM, job_id=12)) == []
    again = perform(audit.audited("r1", authority=SYSTEM, actor_kind="user", actor_id="7"))
    assert again.id == numbers[1]
    assert perform(audit.audited("r1", authority=SYSTEM, actor_kind="user", actor_id="8")) is None
    assert perform(audit.total(again.operation, authority=SYSTEM)) == 1


def test_an_act_on_many_is_found_by_each_job_that_it_changed(perform: Perform) -> None:
    def many(*ids: int) -> audit.Entry:
        return replace(an_entry(), job_id=None, jobs=len(ids), after=json.dumps({"cancelled": 2, "ids": ids}))

    alone = perform(audit.write(an_entry(), authority=SYSTEM))
    both = perform(audit.write(many(11, 2**62), authority=SYSTEM))
    other = perform(audit.write(many(12, 110), authority=SYSTEM))
    found = {
        id: [row.id for row in perform(audit.entries(authority=SYSTEM, job_id=id))] for id in (11, 12, 2**62, 1)
    }
    assert found == {11: [both, alone], 12: [other], 2**62: [both], 1: []}


@pytest.mark.parametrize("limit", [50, 5])
def test_the_acts_on_a_job_are_found_by_its_own_indexes(limit: int) -> None:
    execute(
        "insert into shiftboss_audit (actor_kind, actor_name, via, act, reason, jobs, operation, job_id, after)"
        " select 'user', 'kim', 'cli', 'cancel', '', 1, gen_random_uuid(), nullif(mod(n, 2) * n, 0),"
        " case mod(n, 2) when 0 then jsonb_build_object('ids', jsonb_build_array(n, n + 1)) else '{}' end"
        " from generate_series(1, 8000) n"
    )
    execute("analyze shiftboss_audit")
    asked = {"job_id": 401, "reach": 20000, "limit": limit} | dict.fromkeys(
        ("queue", "act", "via", "actor", "before_id", "within", "reader_kind", "reader_id")
    )
    with connection.cursor() as cursor:
        cursor.execute(f"explain (analyze, timing off, summary off) {sql_text('audit_of_job')}", asked)
        told = "\n".join(line for (line,) in cursor.fetchall())
    assert "Bitmap Index Scan on shiftboss_audit_job " in told
    assert "Bitmap Index Scan on shiftboss_audit_jobs " in told
    assert "Seq Scan" not in told


@pytest.mark.requirement("N4")
def test_owners_have_no_part_in_the_audit() -> None:
    owner = Owner("kim")
    for verb in (
        audit.write(an_entry(), authority=owner),
        audit.entries(authority=owner),
        audit.total(uuid4(), authority=owner),
        audit.audited("r1", authority=owner, actor_kind="user", actor_id="7"),
    ):
        with pytest.raises(NotAllowed, match="is for System"):
            run(verb)
    assert scalar("select count(*) from shiftboss_audit") == 0
