-- Which tasks wait in these queues that the asking worker does not know? A keeper asks its executors for
-- them. A sample: only the first jobs of each queue are looked at, however many wait. Index: shiftboss_job_claim.
select distinct task
from unnest(%(queues)s::text[]) as q (queue)
cross join lateral (
    select task from shiftboss_job j
    where j.state = 'available' and j.queue = q.queue
    order by priority desc, due_at, id
    limit 200
) first
where task <> all (%(tasks)s)
limit 20
