-- histograms.write: jobs that came within each minute from %(since)s to %(until)s, of all and of each queue, as far back
-- as the newest %(budget)s of each table reach. A minute's number only grows: what was pruned has come all the same.
-- Indexes: shiftboss_job_pkey, shiftboss_finished_id, backwards; shiftboss_histogram_pkey.
with live as materialized (
    select queue, enqueued_at from shiftboss_job order by id desc limit %(budget)s
),
done as materialized (
    select queue, enqueued_at from shiftboss_finished order by id desc limit %(budget)s
),
reached as (
    select max(oldest) as since
    from (
        select min(enqueued_at) as oldest from live having count(*) >= %(budget)s
        union all
        select min(enqueued_at) from done having count(*) >= %(budget)s
        union all
        select %(since)s::timestamptz
    ) ends
),
came as (
    select date_trunc('minute', enqueued_at) as at, coalesce(queue, '') as queue, count(*) as jobs
    from (select * from live union all select * from done) newest, reached
    where enqueued_at < %(until)s and date_trunc('minute', enqueued_at) >= reached.since
    group by grouping sets ((date_trunc('minute', enqueued_at)), (date_trunc('minute', enqueued_at), queue))
)
insert into shiftboss_histogram as known (seconds, queue, task, at, enqueued)
select 60, queue, '', at, jobs from came
on conflict (seconds, queue, task, at) do update set enqueued = excluded.enqueued
where known.enqueued < excluded.enqueued
