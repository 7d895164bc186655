-- The queues that are paused.
select name, paused_at, paused_by, coalesce(pause_reason, '')
from shiftboss_queue
where paused_at is not null
order by name
