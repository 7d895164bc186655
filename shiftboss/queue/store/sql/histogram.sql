-- What ended within the last spans of %(seconds)s s: of all, of queues or of a task, the newest first, at
-- most 20,000 of them. Index: shiftboss_histogram_pkey.
select at, completed, cancelled, discarded, failed, lost, enqueued, wait_buckets, wait_jobs, run_buckets, run_jobs
from shiftboss_histogram
where seconds = %(seconds)s and queue = any (%(queues)s::text[]) and task = %(task)s
    and at > statement_timestamp() - make_interval(secs => %(back_seconds)s)
order by at desc
limit 20000
