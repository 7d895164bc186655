"""How the planner runs the hot statements on a keeper's connection after a load that nobody has analysed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shiftboss.queue import store
from shiftboss.queue.store.statement import sql_text
from tests.store.making import execute, scalar
from tests.store.sessions import Session

pytestmark = pytest.mark.requirement("B13", "L1")

SQL = Path(store.__path__[0]) / "sql"

LOAD = """
insert into shiftboss_job (queue, task, args, state, failure_limit, loss_limit, worker_id, lease_expires_at, fence)
select 'default', 'task', '{}', case when mod(n, 2) = 0 then 'available' else 'running' end, 5, 3,
    case when mod(n, 2) = 1 then 1 end, case when mod(n, 2) = 1 then now() + interval '1 hour' end, 1
from generate_series(1, 4000) n
"""


ENDS = ["complete", "fail", "release", "quarantine", "reap_own"]


@pytest.fixture
def loaded(connect: Any) -> Iterator[Session]:
    """A keeper's connection to a table that was just filled, and of which the planner knows nothing."""
    execute("alter table shiftboss_job set (autovacuum_enabled = false)")
    execute("truncate shiftboss_job")
    execute("delete from pg_statistic where starelid = 'shiftboss_job'::regclass")
    execute(LOAD)
    yield connect()
    execute("delete from shiftboss_job")
    execute("alter table shiftboss_job reset (autovacuum_enabled)")


def plan(session: Session, name: str) -> str:
    """The one plan that all batches of this statement get."""
    if scalar("show server_version_num") < "160000":
        pytest.skip("no explain of a plan without parameters before PostgreSQL 16")
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

    sql = re.sub(r"%\((\w+)\)s", number, sql_text(name)).replace("%%", "%")
    return "\n".join(line for (line,) in session.execute(f"explain (generic_plan, costs off) {sql}"))


@pytest.mark.parametrize("name", [*ENDS, "heartbeat", "lock", "progress", "checkpoint", "event"])
def test_ends_heartbeats_and_notes_go_by_primary_key(name: str, loaded: Session) -> None:
    told = plan(loaded, name)
    assert "Seq Scan on shiftboss_job" not in told
    assert "Index Scan using shiftboss_job_pkey on shiftboss_job" in told
    # Naming the state would drive the statement through this index and all of its dead entries.
    assert "shiftboss_job_running" not in told


@pytest.mark.parametrize("name", ["claim", "claim_after"])
def test_claims_go_by_their_own_index_in_its_order(name: str, loaded: Session) -> None:
    told = plan(loaded, name)
    assert "Index Scan using shiftboss_job_claim on shiftboss_job" in told
    assert "Index Scan using shiftboss_job_pkey on shiftboss_job j" in told
    assert "Seq Scan on shiftboss_job" not in told
    assert "Sort" not in told


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("stage", "shiftboss_job_due"),
        ("reap", "shiftboss_job_running"),
        ("quarantine_unknown", "shiftboss_job_claim"),
    ],
)
def test_the_upkeep_goes_by_its_own_index(name: str, index: str, loaded: Session) -> None:
    told = plan(loaded, name)
    assert f"using {index} on shiftboss_job" in told
    assert "Seq Scan on shiftboss_job" not in told


@pytest.mark.parametrize(
    ("name", "table", "index"),
    [
        ("running", "shiftboss_job", "shiftboss_job_running"),
        ("newest", "shiftboss_job", "shiftboss_job_pkey"),
        ("waits", "shiftboss_histogram", "shiftboss_histogram_pkey"),
        ("worker", "shiftboss_worker", "shiftboss_worker_pkey"),
        ("order_worker", "shiftboss_worker", "shiftboss_worker_pkey"),
    ],
)
def test_what_pages_of_workers_and_queues_read_goes_by_index(
    name: str, table: str, index: str, loaded: Session
) -> None:
    told = plan(loaded, name)
    assert f"using {index} on {table}" in told
    assert f"Seq Scan on {table}" not in told


@pytest.mark.parametrize("name", ["settled", "ended"])
def test_what_the_record_holds_of_a_lease_is_found_by_index(name: str, loaded: Session) -> None:
    told = plan(loaded, name)
    assert "Seq Scan on shiftboss_finished" not in told
    assert "Seq Scan on shiftboss_attempt" not in told


def test_the_look_for_unknown_tasks_reads_the_head_of_the_claims_index_only(loaded: Session) -> None:
    told = plan(loaded, "waiting_tasks")
    assert "Index Scan using shiftboss_job_claim on shiftboss_job" in told
    assert "Seq Scan on shiftboss_job" not in told
    # A filter below the limit would read on for as long as it finds nothing.
    assert "Filter" not in told.partition("->  Limit")[2]


@pytest.mark.parametrize("name", ["enqueue", "stage", "release"])
def test_idle_workers_are_looked_up_once_for_all_jobs_that_became_available(name: str, loaded: Session) -> None:
    told = plan(loaded, name)
    assert told.count("on shiftboss_worker w") == 1
    assert "using shiftboss_worker_idle on shiftboss_worker" in told
    # An InitPlan runs once for the statement; a SubPlan or a join would run for each row.
    above = told.partition("on shiftboss_worker w")[0]
    head, _, below = above.rpartition("Plan ")
    assert head.endswith("Init")
    assert "Join" not in below


def test_jobs_that_are_not_yet_due_are_not_read(loaded: Session) -> None:
    assert re.search(r"Index Cond: \(due_at <= statement_timestamp", plan(loaded, "stage"))


@pytest.mark.requirement("B8")
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("sample_waits", "Index Only Scan using shiftboss_job_claim on shiftboss_job"),
        ("sample_leases", "Index Scan using shiftboss_job_running on shiftboss_job"),
        ("sample_quarantine", "Index Only Scan using shiftboss_job_reason on shiftboss_job"),
        ("sample_rates", "Index Scan Backward using shiftboss_job_pkey on shiftboss_job"),
    ],
)
def test_what_is_seen_of_the_whole_often_reads_no_table_of_jobs(name: str, index: str, loaded: Session) -> None:
    told = plan(loaded, name)
    assert index in told
    assert "Seq Scan on shiftboss_job" not in told


# What the server does not plan: a copy, and the statements whose tables are named at the call.
UNPLANNED = {"copy_jobs", "detach", "drop_partition", "finalize", "has_live", "mark_partition"}


@pytest.mark.parametrize("name", sorted({file.stem for file in SQL.glob("*.sql")} - UNPLANNED))
def test_every_statement_is_one_that_the_server_plans(name: str, connect: Any) -> None:
    assert plan(connect(), name)


ROLLED = """
insert into shiftboss_roll (pool, reason, asked_by, state, ended_at)
select 'default', 'new code', 'kim', 'done', now() from generate_series(1, 300);
insert into shiftboss_roll_step (roll_id, number, host, program, pool, state, launcher, began_at, moved_at)
select r.id, n, 'web-' || n, 'worker-default-1', 'default', 'done', n, now(), now()
from shiftboss_roll r, generate_series(1, 100) n;
insert into shiftboss_process (host, program, launcher, started_at, asked)
select 'web-' || mod(n, 100), 'worker-default-' || mod(n, 7), n, now(), false from generate_series(1, 20000) n;
analyze shiftboss_roll, shiftboss_roll_step, shiftboss_process;
"""


@pytest.fixture
def rolled(loaded: Session) -> Iterator[Session]:
    """Beside the jobs a year of rolling restarts, and what the programs of a hundred hosts have lived through."""
    execute(ROLLED)
    yield loaded
    execute("truncate shiftboss_roll, shiftboss_roll_step, shiftboss_process")


@pytest.mark.requirement("L28")
@pytest.mark.parametrize("name", ["step", "steps", "rolls", "move_step", "stop_roll", "stop_silent_roll"])
def test_a_rolling_restart_reads_its_own_steps_and_the_last_lives_of_one_program(
    name: str, rolled: Session
) -> None:
    told = plan(rolled, name)
    for table in ("shiftboss_roll_step", "shiftboss_process", "shiftboss_job"):
        assert f"Seq Scan on {table}" not in told, told
