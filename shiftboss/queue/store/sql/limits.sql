-- The queues with a limit, or of which a person has said that they have none, and how many of their slots are taken.
select name, concurrency, sequential, limited_by,
    (select count(*) from shiftboss_slot s where s.queue = q.name and s.job_id is not null)
from shiftboss_queue q
where concurrency is not null or limited_by is not null
order by name
