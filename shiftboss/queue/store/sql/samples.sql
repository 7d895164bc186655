-- What the maintainer last saw of the whole, part by part: a handful of rows; and the queues that are paused now.
select part, at, extract(epoch from clock_timestamp() - at)::double precision, took_ms, seen::text
from shiftboss_sample
union all
select 'pauses', clock_timestamp(), 0, 0, coalesce(
    jsonb_agg(jsonb_build_array(name, paused_at, paused_by, coalesce(pause_reason, '')) order by name), '[]')::text
from shiftboss_queue
where paused_at is not null
