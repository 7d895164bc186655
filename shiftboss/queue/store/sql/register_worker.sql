-- A keeper announces itself; the id that comes back stands in its leases. With the id that it had (its row is
-- gone, or the answer was lost) it keeps it, unless that is another process's by now: then no row comes back.
insert into shiftboss_worker as w (
    id, pool, host, pid, code_version, queues, tasks, processes, threads, lease_seconds, heartbeat_seconds)
values (
    coalesce(%(worker_id)s::bigint, nextval(pg_get_serial_sequence('shiftboss_worker', 'id'))),
    %(pool)s, %(host)s, %(pid)s, %(code_version)s, %(queues)s, %(tasks)s, %(processes)s, %(threads)s,
    %(lease_seconds)s, %(heartbeat_seconds)s)
on conflict (id) do update
set pool = excluded.pool, code_version = excluded.code_version, queues = excluded.queues, tasks = excluded.tasks,
    processes = excluded.processes, threads = excluded.threads, lease_seconds = excluded.lease_seconds,
    heartbeat_seconds = excluded.heartbeat_seconds, state = 'running', stopped_at = null,
    heartbeat_at = clock_timestamp(),
    -- Who begins again after its end was not meant by the order that led to it.
    ordered = case when w.state <> 'stopped' then w.ordered end,
    ordered_by = case when w.state <> 'stopped' then w.ordered_by end,
    ordered_at = case when w.state <> 'stopped' then w.ordered_at end
where w.host = excluded.host and w.pid = excluded.pid
returning id
