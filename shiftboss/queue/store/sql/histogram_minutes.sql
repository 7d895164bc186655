-- histograms.write: what ended within each minute from %(since)s to %(until)s, of all, of each queue and of each task;
-- written again it comes out the same. Waits are counted from the last due time to the last start of jobs that have
-- ended, runs of every attempt that has an end. Buckets as buckets.py counts them.
-- Indexes: shiftboss_finished_at, shiftboss_attempt_at (BRIN); shiftboss_histogram_pkey.
with ends as materialized (
    select date_trunc('minute', finished_at) as at, queue, task, state as how,
        case when started_at >= due_at then extract(epoch from started_at - due_at)::double precision * 1000 end
            as wait_ms,
        case state when 'completed' then run_ms::double precision end as run_ms
    from shiftboss_finished
    where finished_at >= %(since)s and finished_at < %(until)s
    union all
    select date_trunc('minute', ended_at), queue, task, outcome || ' attempt', null, run_ms::double precision
    from shiftboss_attempt
    where ended_at >= %(since)s and ended_at < %(until)s
),
counted as materialized (
    select at, queue, task, how,
        case when wait_ms <= 1 then 0 when wait_ms > 1 then least(112, ceil(ln(wait_ms) / ln(1.2::float))) end::smallint
            as wait,
        case when run_ms <= 1 then 0 when run_ms > 1 then least(112, ceil(ln(run_ms) / ln(1.2::float))) end::smallint
            as run,
        count(*) as jobs
    from ends
    group by 1, 2, 3, 4, 5, 6
),
numbers as (
    select at, coalesce(queue, '') as queue, coalesce(task, '') as task,
        coalesce(sum(jobs) filter (where how = 'completed'), 0) as completed,
        coalesce(sum(jobs) filter (where how = 'cancelled'), 0) as cancelled,
        coalesce(sum(jobs) filter (where how = 'discarded'), 0) as discarded,
        coalesce(sum(jobs) filter (where how = 'failed attempt'), 0) as failed,
        coalesce(sum(jobs) filter (where how = 'lost attempt'), 0) as lost
    from counted
    group by grouping sets ((at), (at, queue), (at, queue, task))
),
waits as (
    select at, queue, task, array_agg(bucket order by bucket) as buckets, array_agg(jobs order by bucket) as jobs
    from (
        select at, coalesce(queue, '') as queue, coalesce(task, '') as task, wait as bucket, sum(jobs)::bigint as jobs
        from counted where wait is not null
        group by grouping sets ((at, wait), (at, queue, wait), (at, queue, task, wait))
    ) w
    group by at, queue, task
),
runs as (
    select at, queue, task, array_agg(bucket order by bucket) as buckets, array_agg(jobs order by bucket) as jobs
    from (
        select at, coalesce(queue, '') as queue, coalesce(task, '') as task, run as bucket, sum(jobs)::bigint as jobs
        from counted where run is not null
        group by grouping sets ((at, run), (at, queue, run), (at, queue, task, run))
    ) r
    group by at, queue, task
),
-- put together without a join, whose size nobody can foretell
pieces as (
    select at, queue, task, completed, cancelled, discarded, failed, lost, null::smallint[] as wait_buckets,
        null::bigint[] as wait_jobs, null::smallint[] as run_buckets, null::bigint[] as run_jobs
    from numbers
    union all
    select at, queue, task, 0, 0, 0, 0, 0, buckets, jobs, null, null from waits
    union all
    select at, queue, task, 0, 0, 0, 0, 0, null, null, buckets, jobs from runs
    union all
    -- a minute in which nothing ended is known too; what was counted in it stays where its history was dropped
    select at, '', '', 0, 0, 0, 0, 0, null, null, null, null
    from generate_series(%(since)s::timestamptz, %(until)s::timestamptz - interval '1 minute', interval '1 minute') at
    where not exists (
        select from shiftboss_histogram h where h.seconds = 60 and h.queue = '' and h.task = '' and h.at = at.at)
)
insert into shiftboss_histogram as known (seconds, queue, task, at, completed, cancelled, discarded, failed, lost,
    wait_buckets, wait_jobs, run_buckets, run_jobs)
select 60, queue, task, at, sum(completed), sum(cancelled), sum(discarded), sum(failed), sum(lost),
    coalesce(max(wait_buckets), '{}'), coalesce(max(wait_jobs), '{}'),
    coalesce(max(run_buckets), '{}'), coalesce(max(run_jobs), '{}')
from pieces
group by at, queue, task
on conflict (seconds, queue, task, at) do update
set completed = excluded.completed, cancelled = excluded.cancelled, discarded = excluded.discarded,
    failed = excluded.failed, lost = excluded.lost,
    wait_buckets = excluded.wait_buckets, wait_jobs = excluded.wait_jobs,
    run_buckets = excluded.run_buckets, run_jobs = excluded.run_jobs
where (known.completed, known.cancelled, known.discarded, known.failed, known.lost, known.wait_buckets,
        known.wait_jobs, known.run_buckets, known.run_jobs)
    is distinct from (excluded.completed, excluded.cancelled, excluded.discarded, excluded.failed, excluded.lost,
        excluded.wait_buckets, excluded.wait_jobs, excluded.run_buckets, excluded.run_jobs)
