-- sample: quarantined jobs by reason and queue: how many, of the last hour, first and last, and the newest one's id.
-- Index: shiftboss_job_reason, which holds all that is asked for.
with
-- part: sample_due
seen as materialized (
    select coalesce(jsonb_agg(jsonb_build_array(reason, queue, jobs, fresh, first, last, newest)), '[]') as whole
    from (
        select quarantine_reason as reason, queue, count(*) as jobs,
            count(*) filter (where quarantined_at > clock_timestamp() - interval '1 hour') as fresh,
            extract(epoch from min(quarantined_at)) as first, extract(epoch from max(quarantined_at)) as last,
            max(id) as newest
        from shiftboss_job
        -- it never is; but so the planner sees that the index suffices
        where state = 'quarantined' and quarantine_reason is not null and (select exists (select from due))
        group by quarantine_reason, queue
    ) counted
)
-- part: sample_write
