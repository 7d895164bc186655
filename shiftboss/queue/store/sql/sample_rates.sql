-- sample: jobs in and out per queue within the last minute. Those that came in are looked for among the newest
-- %(budget)s of each table; where these do not reach back a minute, `seconds` says how far.
-- Indexes: shiftboss_job_pkey, shiftboss_finished_id, backwards; shiftboss_finished_at (BRIN).
with
-- part: sample_due
live as materialized (
    select queue, enqueued_at from shiftboss_job
    where (select exists (select from due))
    order by id desc
    limit %(budget)s
),
done as materialized (
    select queue, enqueued_at from shiftboss_finished
    where (select exists (select from due))
    order by id desc
    limit %(budget)s
),
reached as (
    select least(60.0, greatest(1.0, extract(epoch from clock_timestamp() - max(oldest)))) as seconds
    from (
        select min(enqueued_at) as oldest from live having count(*) >= %(budget)s
        union all
        select min(enqueued_at) from done having count(*) >= %(budget)s
        union all
        select clock_timestamp() - interval '60 seconds'
    ) ends
),
came as (
    select queue, count(*) as jobs
    from (select * from live union all select * from done) newest, reached
    where enqueued_at > clock_timestamp() - make_interval(secs => reached.seconds::double precision)
    group by queue
),
went as (
    select queue, count(*) filter (where state = 'completed') as completed,
        count(*) filter (where state <> 'completed') as other
    from shiftboss_finished
    where finished_at > statement_timestamp() - interval '60 seconds' and (select exists (select from due))
    group by queue
),
seen as materialized (
    select jsonb_build_object(
        'seconds', (select seconds from reached),
        'in', coalesce((select jsonb_agg(jsonb_build_array(queue, jobs)) from came), '[]'),
        'out', coalesce((select jsonb_agg(jsonb_build_array(queue, completed, other)) from went), '[]')
    ) as whole
)
-- part: sample_write
