-- Workers that live or were seen within the last hour, the latest heartbeat first. The table holds a day's workers.
select
-- part: worker_columns
from shiftboss_worker
where heartbeat_at > clock_timestamp() - interval '1 hour'
order by state = 'stopped', heartbeat_at desc, id
limit 500
