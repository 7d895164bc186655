-- histograms.write: spans of %(seconds)s s from those of %(finer)s s, for all that begin from %(since)s on; written
-- again they come out the same. Index: shiftboss_histogram_at (BRIN), shiftboss_histogram_pkey.
with finer as materialized (
    select to_timestamp(floor(extract(epoch from at) / %(seconds)s) * %(seconds)s) as span, h.*
    from shiftboss_histogram h
    where seconds = %(finer)s
        and at >= to_timestamp(floor(extract(epoch from %(since)s::timestamptz) / %(seconds)s) * %(seconds)s)
        and at < %(until)s
),
waits as (
    select span, queue, task, array_agg(bucket order by bucket) as buckets, array_agg(jobs order by bucket) as jobs
    from (
        select span, queue, task, bucket, sum(jobs)::bigint as jobs
        from finer, unnest(wait_buckets, wait_jobs) w (bucket, jobs)
        group by 1, 2, 3, 4
    ) w
    group by 1, 2, 3
),
runs as (
    select span, queue, task, array_agg(bucket order by bucket) as buckets, array_agg(jobs order by bucket) as jobs
    from (
        select span, queue, task, bucket, sum(jobs)::bigint as jobs
        from finer, unnest(run_buckets, run_jobs) r (bucket, jobs)
        group by 1, 2, 3, 4
    ) r
    group by 1, 2, 3
),
-- put together without a join, whose size nobody can foretell
pieces as (
    select span, queue, task, completed, cancelled, discarded, failed, lost, enqueued,
        null::smallint[] as wait_buckets, null::bigint[] as wait_jobs, null::smallint[] as run_buckets,
        null::bigint[] as run_jobs
    from finer
    union all
    select span, queue, task, 0, 0, 0, 0, 0, 0, buckets, jobs, null, null from waits
    union all
    select span, queue, task, 0, 0, 0, 0, 0, 0, null, null, buckets, jobs from runs
)
insert into shiftboss_histogram as known (seconds, queue, task, at, completed, cancelled, discarded, failed, lost,
    enqueued, wait_buckets, wait_jobs, run_buckets, run_jobs)
select %(seconds)s, queue, task, span, sum(completed), sum(cancelled), sum(discarded), sum(failed), sum(lost),
    sum(enqueued), coalesce(max(wait_buckets), '{}'), coalesce(max(wait_jobs), '{}'),
    coalesce(max(run_buckets), '{}'), coalesce(max(run_jobs), '{}')
from pieces
group by span, queue, task
on conflict (seconds, queue, task, at) do update
set completed = excluded.completed, cancelled = excluded.cancelled, discarded = excluded.discarded,
    failed = excluded.failed, lost = excluded.lost, enqueued = excluded.enqueued,
    wait_buckets = excluded.wait_buckets, wait_jobs = excluded.wait_jobs,
    run_buckets = excluded.run_buckets, run_jobs = excluded.run_jobs
where (known.completed, known.cancelled, known.discarded, known.failed, known.lost, known.enqueued,
        known.wait_buckets, known.wait_jobs, known.run_buckets, known.run_jobs)
    is distinct from (excluded.completed, excluded.cancelled, excluded.discarded, excluded.failed, excluded.lost,
        excluded.enqueued, excluded.wait_buckets, excluded.wait_jobs, excluded.run_buckets, excluded.run_jobs)
