-- A keeper says that it lives and what it does, and is told what a person has ordered of it. No row back: it was
-- declared gone, and registers anew. Index: primary key.
update shiftboss_worker
set heartbeat_at = clock_timestamp(), state = %(state)s, in_use = %(in_use)s,
    -- Only who may claim is worth a wake-up.
    idle = %(idle)s and %(state)s = 'running',
    tasks = %(tasks)s, lag_ms = %(lag_ms)s, worst_lag_ms = greatest(worst_lag_ms, %(lag_ms)s),
    losses = %(losses)s, tainted = %(tainted)s, dropped = %(dropped)s, resources = %(resources)s::jsonb,
    memory_kb = %(memory_kb)s, cpu_ms = %(cpu_ms)s,
    stopped_at = case when %(state)s = 'stopped' then clock_timestamp() end
where id = %(worker_id)s
returning ordered
