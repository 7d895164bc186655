-- Which tasks wait in these queues that the asking worker does not know? A keeper asks its executors for
-- them. At most a few, and among the first jobs only. Index: shiftboss_job_claim.
select distinct task
from unnest(%(queues)s::text[]) as q (queue)
cross join lateral (
    select task from shiftboss_job j
    where j.state = 'available' and j.queue = q.queue and j.task <> all (%(tasks)s)
    limit 200
) waiting
limit 20
