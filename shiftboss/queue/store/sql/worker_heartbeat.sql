-- A keeper says that it lives and what it does. No row back: it was declared gone, and registers anew.
update shiftboss_worker
set heartbeat_at = clock_timestamp(), state = %(state)s, in_use = %(in_use)s,
    -- Only who may claim is worth a wake-up.
    idle = %(idle)s and %(state)s = 'running',
    tasks = %(tasks)s, lag_ms = %(lag_ms)s, worst_lag_ms = greatest(worst_lag_ms, %(lag_ms)s),
    losses = %(losses)s, tainted = %(tainted)s, dropped = %(dropped)s, resources = %(resources)s::jsonb,
    stopped_at = case when %(state)s = 'stopped' then clock_timestamp() end
where id = %(worker_id)s
returning id
