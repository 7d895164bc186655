-- How long jobs of these queues waited, in the last spans of %(seconds)s s, at most 2000 of them.
-- Index: shiftboss_histogram_pkey.
select queue, wait_buckets, wait_jobs
from shiftboss_histogram
where seconds = %(seconds)s and queue = any (%(queues)s::text[]) and task = ''
    and at > statement_timestamp() - make_interval(secs => %(back_seconds)s)
limit 2000
