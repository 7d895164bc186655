-- sample: live jobs per queue and state, with the age of the oldest one that is due or runs. Reads the whole of
-- the live table: its own time says how seldom.
with
-- part: sample_due
seen as materialized (
    select coalesce(jsonb_agg(jsonb_build_array(queue, state, jobs, oldest)), '[]') as whole
    from (
        select queue, state, count(*) as jobs,
            extract(epoch from clock_timestamp() - min(
                case state when 'available' then due_at when 'running' then started_at end)) as oldest
        from shiftboss_job
        where (select exists (select from due))
        group by queue, state
    ) counted
)
-- part: sample_write
