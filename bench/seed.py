"""A record as large as the console promises to serve: written by SQL, in the shapes that the verbs leave.

For measurements alone. 10 million finished jobs in 30 days, a million live ones (300,000 of them quarantined), 50
queues, 200 tasks, 500 workers; 5 % of the jobs have failed once, each with a traceback of 20 kB.
"""

import time
from collections.abc import Callable

import psycopg

DAYS = 30
QUEUES, TASKS, WORKERS = 50, 200, 500

WHAT = """
    'queue-' || (1 + mod(i, {queues})), 'shop.module_' || (mod(i, 20)) || '.task_' || (mod(i, {tasks})),
    jsonb_build_object('args', jsonb_build_array(i, 'customer-' || mod(i, 10000)), 'kwargs', '{{}}'::jsonb)
"""

WORKER = """
insert into shiftboss_worker (pool, host, pid, code_version, queues, tasks, processes, threads, in_use,
    lease_seconds, heartbeat_seconds, lag_ms, worst_lag_ms, memory_kb, cpu_ms, started_at, heartbeat_at)
select 'pool-' || mod(i, 5), 'host-' || mod(i, 40), 1000 + i, 'v' || mod(i, 3), array(
        select 'queue-' || (1 + mod(i + k * 7, {queues})) from generate_series(0, 4) k),
    array(select 'shop.module_' || (mod(k, 20)) || '.task_' || k from generate_series(0, {tasks} - 1) k),
    2, 8, mod(i, 17), 86400, 20000, mod(i, 40), 200 + i, 150000 + i, 1000 * i, now() - interval '3 hours', now()
from generate_series(1, {workers}) i
"""

FINISHED = (
    """
insert into shiftboss_finished (id, queue, task, args, state, priority, due_at, enqueued_at, started_at,
    finished_at, run_ms, owner, tags, failures, failure_limit, loss_limit, worker_id, fence, error_type,
    error_message, error_code)
select i, """
    + WHAT
    + """,
    case when mod(i, 100) < 97 then 'completed' when mod(i, 100) < 99 then 'cancelled' else 'discarded' end,
    mod(i, 3), ended - interval '3 s', ended - interval '4 s',
    ended - make_interval(secs => mod(i, 2000) / 1000.0), ended, mod(i, 2000),
    case when mod(i, 10) = 0 then 'owner-' || mod(i, 5000) end, array['tag-' || mod(i, 30)],
    (mod(i, 20) = 0)::integer, 5, 3, 1 + mod(i, {workers}), 1 + (mod(i, 20) = 0)::integer,
    case when mod(i, 100) = 99 then 'ValueError' end, case when mod(i, 100) = 99 then 'no such customer ' || i end,
    case when mod(i, 100) = 99 then 'handler_raised' end
from (
    select i, least(%(day)s::timestamptz + (i - %(first)s::bigint) * make_interval(secs => 86399.0 / %(jobs)s),
        clock_timestamp()) as ended
    from generate_series(%(first)s::bigint, %(first)s::bigint + %(jobs)s::bigint - 1) i
) one
"""
)

ATTEMPTS = """
insert into shiftboss_attempt (job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, run_ms,
    error_code, error_type, error_message, error_fingerprint, traceback, evidence)
select id, 1, queue, task, worker_id, 'failed', started_at, finished_at - interval '1 s', 30, 'handler_raised',
    'ValueError', 'no such customer ' || id, md5(task), (
        select string_agg('  File "/app/shop/module.py", line ' || (id + k) || ', in step_' || k || '\n    call('
            || md5((id + k)::text) || ')', '\n') from generate_series(1, 220) k),
    '{{"host": "host-1", "pid": 1, "cpu_ms": 12, "memory_kb": 90000, "memory_shared": true}}'
from shiftboss_finished
where finished_at >= %(day)s::timestamptz and finished_at < %(day)s::timestamptz + interval '1 day'
    and failures > 0
"""

LIVE = (
    """
insert into shiftboss_job (queue, task, args, state, priority, due_at, enqueued_at, started_at, owner, tags,
    failures, failure_limit, loss_limit, worker_id, fence, lease_expires_at, quarantine_reason, quarantined_at,
    error_code, error_type, error_message, error_fingerprint)
select """
    + WHAT
    + """, state, mod(i, 3), case when state in ('scheduled', 'retryable') then now() + interval '1 day'
        else now() - interval '2 min' end,
    now() - interval '1 hour', case when state in ('running', 'quarantined') then now() - interval '1 min' end,
    case when mod(i, 10) = 0 then 'owner-' || mod(i, 5000) end, array['tag-' || mod(i, 30)], 1, 5, 3,
    case when state = 'running' then 1 + mod(i, {workers}) end, 1,
    case when state = 'running' then now() + interval '1 day' end,
    case when state = 'quarantined' then
        (array['failures_exhausted', 'poison', 'unknown_task', 'operator'])[1 + mod(i, 4)] end,
    case when state = 'quarantined' then now() - make_interval(secs => mod(i, 86400)) end,
    case when state in ('quarantined', 'retryable') then 'handler_raised' end,
    case when state in ('quarantined', 'retryable') then 'ValueError' end,
    case when state in ('quarantined', 'retryable') then 'no such customer ' || i end,
    case when state in ('quarantined', 'retryable') then md5((mod(i, 40))::text) end
from (
    select i, case when mod(i, 1000) = 0 then 'running' when mod(i, 10) < 3 then 'quarantined'
        when mod(i, 10) < 8 then 'available' when mod(i, 10) = 8 then 'scheduled' else 'retryable' end as state
    from generate_series(1, %(jobs)s::bigint) i
) one
"""
)


def seed(dsn: str, *, finished: int, live: int, tell: Callable[[str], None]) -> None:
    """Fill an empty record."""
    began = time.monotonic()
    names = {"queues": QUEUES, "tasks": TASKS, "workers": WORKERS}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set synchronous_commit = off")
        connection.execute("set timezone = 'UTC'")
        days = [
            day
            for (day,) in connection.execute(
                "select generate_series(current_date - %s, current_date, '1 day')::date", [DAYS - 1]
            )
        ]
        for parent in ("shiftboss_finished", "shiftboss_attempt", "shiftboss_event"):
            for day in days:
                connection.execute("select shiftboss_make_partition(%s, %s)", [parent, day])
        connection.execute(WORKER.format(**names))
        each = finished // DAYS
        for number, day in enumerate(days):
            # Ids of the history come first, as they would.
            connection.execute(FINISHED.format(**names), {"day": day, "first": 1 + number * each, "jobs": each})
            connection.execute(ATTEMPTS.format(**names), {"day": day})
            tell(f"day {number + 1} of {DAYS}: {(number + 1) * each:,} jobs, {time.monotonic() - began:.0f} s")
        connection.execute("select setval(pg_get_serial_sequence('shiftboss_job', 'id'), %s)", [finished + 1])
        connection.execute(LIVE.format(**names), {"jobs": live})
        tell(f"{live:,} live jobs, {time.monotonic() - began:.0f} s")
        connection.execute("vacuum analyze")
        tell(f"analysed, {time.monotonic() - began:.0f} s")
