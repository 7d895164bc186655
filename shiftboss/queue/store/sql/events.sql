-- The stored events of a job in order. Index: shiftboss_event_job.
select job_id, seq, at, kind, worker_id, fence, data::text
from shiftboss_event
where job_id = %(id)s
-- part: visible
order by seq, at
limit 1000
