-- Which claim is for a limited queue, and whether it has slots above its limit still.
select q.sequential, q.concurrency < (select count(*) from shiftboss_slot s where s.queue = q.name)
from shiftboss_queue q
where q.name = %(queue)s and q.concurrency is not null and q.paused_at is null
