-- Jobs have been copied in: wake keepers, once a queue.
with became_available as (
    select queue, priority from unnest(%(queues)s::text[], %(priorities)s::integer[]) as c (queue, priority)
),
-- part: notified
select count(*) from notified
