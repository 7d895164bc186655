-- sample: live jobs per queue and state. Reads the whole of the live table: its own time says how seldom. For how long
-- jobs wait and run is seen by sample_waits.sql and sample_leases.sql.
with
-- part: sample_due
seen as materialized (
    select coalesce(jsonb_agg(jsonb_build_array(queue, state, jobs)), '[]') as whole
    from (
        select queue, state, count(*) as jobs
        from shiftboss_job
        where (select exists (select from due))
        group by queue, state
    ) counted
)
-- part: sample_write
