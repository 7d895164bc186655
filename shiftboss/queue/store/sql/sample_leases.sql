-- sample: running jobs per queue and the age of the longest run; leases that are over for longer than a reaper needs,
-- with those that are so for longest. Index: shiftboss_job_running.
with
-- part: sample_due
held as materialized (
    select id, queue, task, worker_id, started_at,
        extract(epoch from clock_timestamp() - lease_expires_at) as over_seconds
    from shiftboss_job
    where state = 'running' and (select exists (select from due))
),
stuck as materialized (
    select id, queue, task, worker_id, over_seconds from held where over_seconds > %(grace_seconds)s
),
seen as materialized (
    select jsonb_build_object(
        'running', coalesce((
            select jsonb_agg(jsonb_build_array(queue, jobs, longest))
            from (
                select queue, count(*) as jobs,
                    extract(epoch from clock_timestamp() - min(started_at)) as longest
                from held group by queue
            ) counted), '[]'),
        'stuck_in', coalesce((
            select jsonb_agg(jsonb_build_array(queue, leases))
            from (select queue, count(*) as leases from stuck group by queue) counted), '[]'),
        'longest', coalesce((
            select jsonb_agg(jsonb_build_array(id, queue, task, worker_id, over_seconds))
            from (select * from stuck order by over_seconds desc, id limit 5) first), '[]')
    ) as whole
)
-- part: sample_write
