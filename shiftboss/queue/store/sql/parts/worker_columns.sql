    id, pool, host, pid, state, queues, coalesce(array_length(tasks, 1), 0), processes * threads, in_use,
    lease_seconds, heartbeat_seconds,
    extract(epoch from clock_timestamp() - heartbeat_at)::double precision,
    lag_ms, worst_lag_ms, losses, code_version, started_at, tainted, dropped, resources::text,
    memory_kb, cpu_ms, extract(epoch from heartbeat_at - started_at)::double precision, ordered, ordered_by, ordered_at
