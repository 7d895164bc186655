-- The maintainer drops workers that were last seen more than a day ago. Recovery never needs them.
delete from shiftboss_worker
where heartbeat_at < clock_timestamp() - interval '1 day'
returning id
