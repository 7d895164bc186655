"""What is read of the quarantine goes by its reasons, however many jobs there are of others."""

from collections.abc import Iterator

import pytest
from django.db import connection

from shiftboss.queue.authority import System, reach_of
from shiftboss.queue.states import QuarantineReason
from shiftboss.queue.store.many import COUNTED, GROUPS, LOOKED, Held
from shiftboss.queue.store.statement import sql_text
from tests.store.making import execute

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("B3", "B8")]

LOAD = """
insert into shiftboss_job (
    queue, task, args, state, failure_limit, loss_limit, quarantine_reason, quarantined_at, error_fingerprint)
select 'default', 'task' || mod(n, 20), '{}', 'quarantined', 5, 3,
    case when n < 6 then 'poison' else 'failures_exhausted' end, now(), 'f' || mod(n, 7)
from generate_series(1, 6000) n
"""

HELD = {**Held(reason=QuarantineReason.POISON).params(), **reach_of(System())}
CALLS = {
    "held_groups": {
        **reach_of(System()),
        "reasons": list(map(str, QuarantineReason)),
        "looked": LOOKED,
        "shown": GROUPS,
    },
    "held_matching": {**HELD, "before_id": None, "limit": 1000},
    "held_count": {**HELD, "cap": COUNTED},
}


@pytest.fixture
def loaded(db: None) -> Iterator[None]:
    """A quarantine of which nearly all jobs are held for one reason, the newest ones among them."""
    execute(LOAD)
    execute("analyze shiftboss_job")
    yield
    execute("delete from shiftboss_job")


@pytest.mark.parametrize("name", CALLS)
def test_the_jobs_of_a_reason_are_found_by_its_own_index(name: str, loaded: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"explain (analyze, timing off, summary off) {sql_text(name)}", CALLS[name])
        told = "\n".join(line for (line,) in cursor.fetchall())
    assert "using shiftboss_job_reason on shiftboss_job" in told
    assert "Seq Scan on shiftboss_job" not in told
    assert "shiftboss_job_quarantined" not in told
