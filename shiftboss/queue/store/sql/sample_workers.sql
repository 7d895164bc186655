-- sample: the live workers together; who of them is late, who fell silent within the last hour, and for each queue
-- who serves it and when it was last served. Reads all workers: those of a day.
with
-- part: sample_due
known as materialized (
    select id, pool, host, state, queues, processes * threads as slots, in_use, lease_seconds, heartbeat_seconds,
        lag_ms, worst_lag_ms, extract(epoch from heartbeat_at) as seen_at, age,
        state <> 'stopped' and age < lease_seconds as alive,
        greatest(lag_ms / 1000.0, age - heartbeat_seconds) as lag
    from (
        select *, extract(epoch from clock_timestamp() - heartbeat_at)::double precision as age
        from shiftboss_worker
    ) w
    where (select exists (select from due))
),
late as materialized (
    -- two heartbeats in a row are missing, and the lease is not yet over
    select * from known where alive and age > least(3 * heartbeat_seconds, 0.9 * lease_seconds)
),
seen as materialized (
    select jsonb_build_object(
        'live', (select count(*) from known where alive),
        'slots', (select coalesce(sum(slots), 0) from known where alive),
        'in_use', (select coalesce(sum(in_use), 0) from known where alive),
        'seen_at', (select max(seen_at) from known),
        'silent', (select count(*) from known where state <> 'stopped' and not alive and age < 3600),
        'late', (select count(*) from late),
        'latest', (
            select jsonb_build_object('id', id, 'host', host, 'age', age, 'lease', lease_seconds)
            from late order by age / lease_seconds desc, id limit 1),
        'lag', (
            select jsonb_build_object('id', id, 'host', host, 'now', lag, 'lease', lease_seconds)
            from known where alive order by lag / lease_seconds desc, id limit 1),
        'worst', (
            select jsonb_build_object('id', id, 'host', host, 'now', worst_lag_ms / 1000.0, 'lease', lease_seconds)
            from known where alive order by worst_lag_ms / lease_seconds desc, id limit 1),
        'queues', coalesce((
            select jsonb_agg(jsonb_build_array(queue, live, slots, in_use, seen_at))
            from (
                select queue, count(*) filter (where alive) as live,
                    coalesce(sum(slots) filter (where alive), 0) as slots,
                    coalesce(sum(in_use) filter (where alive), 0) as in_use, max(seen_at) as seen_at
                from known, unnest(queues) queue
                group by queue
            ) served), '[]')
    ) as whole
)
-- part: sample_write
