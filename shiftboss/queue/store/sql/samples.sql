-- What the maintainer last saw of the whole, part by part: a handful of rows; the queues that are paused now; the
-- hosts whose agents have not said goodbye, a few: their table is read whole; and programs that are held back, by
-- shiftboss_hold_open.
select part, at, extract(epoch from clock_timestamp() - at)::double precision, took_ms, seen::text
from shiftboss_sample
union all
select 'pauses', clock_timestamp(), 0, 0, coalesce(
    jsonb_agg(jsonb_build_array(name, paused_at, paused_by, coalesce(pause_reason, '')) order by name), '[]')::text
from shiftboss_queue
where paused_at is not null
union all
select 'hosts', clock_timestamp(), 0, 0, coalesce(
    jsonb_agg(jsonb_build_array(
        name, heartbeat_at, heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds), trouble, resources
    ) order by name), '[]')::text
from shiftboss_host
where stopped_at is null and heartbeat_at > clock_timestamp() - interval '1 day'
union all
select 'holds', clock_timestamp(), 0, 0, coalesce(
    jsonb_agg(jsonb_build_array(host, program, held_at, until, evidence -> 'times', evidence -> 'seconds') order by id),
    '[]')::text
from (
    select id, host, program, held_at, until, evidence
    from shiftboss_hold
    where taken_up_at is null and released_at is null
    order by host, program
    limit %(holds)s
) held
