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
)
insert into shiftboss_histogram as known (seconds, queue, task, at, completed, cancelled, discarded, failed, lost,
    enqueued, wait_buckets, wait_jobs, run_buckets, run_jobs)
select %(seconds)s, f.queue, f.task, f.span, f.completed, f.cancelled, f.discarded, f.failed, f.lost, f.enqueued,
    coalesce(w.buckets, '{}'), coalesce(w.jobs, '{}'), coalesce(r.buckets, '{}'), coalesce(r.jobs, '{}')
from (
    select span, queue, task, sum(completed) as completed, sum(cancelled) as cancelled, sum(discarded) as discarded,
        sum(failed) as failed, sum(lost) as lost, sum(enqueued) as enqueued
    from finer
    group by span, queue, task
) f
left join waits w using (span, queue, task)
left join runs r using (span, queue, task)
on conflict (seconds, queue, task, at) do update
set completed = excluded.completed, cancelled = excluded.cancelled, discarded = excluded.discarded,
    failed = excluded.failed, lost = excluded.lost, enqueued = excluded.enqueued,
    wait_buckets = excluded.wait_buckets, wait_jobs = excluded.wait_jobs,
    run_buckets = excluded.run_buckets, run_jobs = excluded.run_jobs
where (known.completed, known.cancelled, known.discarded, known.failed, known.lost, known.enqueued,
        known.wait_buckets, known.wait_jobs, known.run_buckets, known.run_jobs)
    is distinct from (excluded.completed, excluded.cancelled, excluded.discarded, excluded.failed, excluded.lost,
        excluded.enqueued, excluded.wait_buckets, excluded.wait_jobs, excluded.run_buckets, excluded.run_jobs)
