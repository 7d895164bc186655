"""A PostgreSQL that is killed, stopped, full, or may not be written to, under load."""

import os
import signal
from collections.abc import Iterator

import psycopg
import pytest

from tests.faults.stage import WITNESS, Load, Stage
from tests.processes import runs
from tests.waiting import wait_for

ROUNDS = int(os.environ.get("SHIFTBOSS_FAULTS", "1"))
WORKERS = "select count(*) from pg_stat_activity where application_name ~ '^shiftboss (work|heartbeat|listen)'"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One for all tests here: each leaves it working."""
    with Stage.set(tmp_path_factory.mktemp("stage") / "house") as stage:
        yield stage


@pytest.fixture(autouse=True)
def logs(stage: Stage) -> Iterator[None]:
    """What the workers said, where a test has failed."""
    yield
    for worker in stage.workers:
        print(f"--- {worker.log.name}", *worker.log.read_text().splitlines()[-40:], sep="\n")


@pytest.mark.requirement("L30", "N14", "R9")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_database_that_is_killed_under_load_loses_nothing_and_is_worked_on_again_at_once(
    stage: Stage, number: signal.Signals
) -> None:
    """By its operating system, or told to stop fast, or immediately."""

    def restart(load: Load) -> None:
        refused = load.refused
        stage.end_server(number)
        wait_for(lambda: load.refused > refused + 3, seconds=20)
        stage.serve()

    stage.survives(restart)


@pytest.mark.requirement("L30", "L9")
def test_backends_that_are_terminated_again_and_again_cost_nothing_but_time(stage: Stage) -> None:
    def terminate(load: Load) -> None:
        for _ in range(5):
            stage.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name <> 'test'"
            )
            stage.progress(load)

    stage.survives(terminate)


@pytest.mark.requirement("L30", "N14", "S13")
def test_a_database_that_stands_still_for_longer_than_a_lease_loses_no_job_and_none_overlaps(stage: Stage) -> None:
    def stand_still(load: Load) -> None:
        before, given_up = stage.executors(), stage.hears("no answer within")
        with stage.long_run(), stage.standing_still():
            # No lease can be renewed: who runs jobs is ended before others may have them.
            wait_for(lambda: not all(map(runs, before)), seconds=60)
            wait_for(given_up, seconds=60)

    stage.survives(stand_still)


@pytest.mark.requirement("L30", "N14")
def test_a_database_that_may_only_be_read_for_a_while_is_written_to_again(stage: Stage) -> None:
    def forbid(load: Load) -> None:
        refused = stage.hears("read-only transaction")
        stage.execute("alter system set default_transaction_read_only = on")
        stage.execute("select pg_reload_conf()")
        wait_for(refused, seconds=60)
        stage.execute("alter system reset default_transaction_read_only")
        stage.execute("select pg_reload_conf()")

    stage.survives(forbid)


@pytest.mark.requirement("L30", "N14", "L9")
def test_workers_leave_a_server_that_may_only_be_read_for_the_one_that_was_promoted(stage: Stage) -> None:
    """The old one goes on answering: nothing breaks, and the same address leads to another server."""

    def fail_over(load: Load) -> None:
        old, standby = stage.dsn, stage.follow()
        refused, told = load.refused, stage.hears("read-only transaction")
        stage.execute("alter system set default_transaction_read_only = on")
        stage.execute("select pg_reload_conf()")
        wait_for(lambda: load.refused > refused and told(), seconds=60)
        written = stage.ask("select pg_current_wal_lsn()::text")
        stage.serve(standby)
        wait_for(lambda: stage.ask("select pg_last_wal_replay_lsn() >= %s::pg_lsn", written), seconds=60)
        assert stage.ask("select pg_promote()")
        stage.road.leads_to(stage.dsn)
        wait_for(lambda: not stage.ask(WORKERS, dsn=old), seconds=60)

    stage.survives(fail_over)


@pytest.mark.requirement("L30", "N14")
def test_a_database_without_a_free_connection_is_come_back_to(stage: Stage) -> None:
    def use_up(load: Load) -> None:
        held: list[psycopg.Connection] = []
        refused = stage.hears("too many clients")

        def taken() -> bool:
            try:
                held.append(psycopg.connect(stage.dsn, autocommit=True, application_name="test"))
            except psycopg.OperationalError:
                if refused():
                    return True
            # Also while all are taken: a worker that has one of them still would never be refused.
            held[-1].execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name <> 'test'"
            )
            return False

        try:
            wait_for(taken, seconds=60)
        finally:
            for connection in held:
                connection.close()

    stage.survives(use_up)


def has_ended(connection: psycopg.Connection) -> bool:
    """Whether the server has ended this session, which is in a transaction."""
    try:
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return False


ROWS = "select id from shiftboss_job where state = 'running' for update"


@pytest.mark.requirement("L30", "L9", "N14")
@pytest.mark.parametrize("end", ["rollback", "idle_in_transaction_session_timeout"])
def test_a_users_transaction_that_locks_running_rows_for_longer_than_a_lease_doubles_nothing(
    stage: Stage, end: str
) -> None:
    def lock(load: Load) -> None:
        before = stage.executors()
        with stage.long_run(), psycopg.connect(stage.dsn, application_name="test") as connection:
            held = wait_for(lambda: connection.execute(ROWS).fetchall(), seconds=20, every=0.0)
            assert held
            if end == "rollback":
                # It holds what was running: their leases cannot be renewed.
                wait_for(lambda: not all(map(runs, before)), seconds=60)
                connection.rollback()
            else:
                connection.execute(f"set local {end} = '300ms'")
                wait_for(lambda: has_ended(connection), seconds=20)

    stage.survives(lock)


@pytest.mark.requirement("L30", "L9")
def test_a_network_that_is_slow_and_breaks_again_and_again_costs_nothing_but_time(stage: Stage) -> None:
    def break_off(load: Load) -> None:
        stage.road.delay(0.02)
        for _ in range(2 * ROUNDS):
            assert stage.road.reset()
            stage.progress(load)
        stage.road.delay(0)

    stage.survives(break_off)


@pytest.mark.requirement("L30", "N14", "S13")
def test_workers_that_are_cut_off_for_longer_than_a_lease_double_nothing(stage: Stage) -> None:
    """What they ran is taken from them meanwhile, and is run again."""

    def cut_off(load: Load) -> None:
        before, given_up = stage.executors(), stage.hears("no answer within")
        with stage.long_run() as job:
            stage.road.blackhole()
            try:
                wait_for(lambda: not all(map(runs, before)), seconds=60)
                wait_for(lambda: job in stage.reap(), seconds=60)
                wait_for(given_up, seconds=60)
            finally:
                stage.road.lift()
            stage.begun(job, 2)

    stage.survives(cut_off)


@pytest.mark.requirement("L30", "L24")
def test_a_missing_partition_for_today_is_made_by_whoever_meets_it(stage: Stage) -> None:
    for table in ("finished", "attempt", "event"):
        day = stage.ask("select to_char(clock_timestamp() at time zone 'UTC', 'YYYYMMDD')")
        stage.execute(f"drop table shiftboss_{table}_{day}")
    stage.survives(lambda load: None)


@pytest.mark.requirement("L30", "R9")
def test_a_full_disk_for_logs_stops_no_job(stage: Stage) -> None:
    apps = f"{WITNESS},tests.faults.fulldisk"
    mute = stage.house.worker(apps=apps, queues=("mute",), threads=4, wait=False)
    stage.survives(lambda load: None, queue="mute")
    assert mute.log.read_text() == ""
    assert mute.stop() == 0


@pytest.mark.requirement("L30")
def test_columns_that_a_newer_version_adds_under_load_disturb_no_worker(stage: Stage) -> None:
    """What was prepared before is used on: each statement names its columns."""
    tables = ("shiftboss_job", "shiftboss_finished", "shiftboss_attempt", "shiftboss_worker")

    def migrate_further(load: Load) -> None:
        for change in ("add column newer text not null default 'x'", "drop column newer"):
            for table in tables:
                stage.execute(f"alter table {table} {change}")
            stage.progress(load)

    said = [worker.log.read_text() for worker in stage.workers]
    stage.survives(migrate_further)
    for worker, before in zip(stage.workers, said, strict=True):
        assert "ERROR" not in worker.log.read_text().removeprefix(before)
