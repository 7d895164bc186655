-- All hosts that ever had an agent, a few: the table is read whole.
select name, hostname, pid, home, code_version, started_at, heartbeat_at, stopped_at, gap_from, gap_until, trouble,
    programs::text, dropped, resources::text,
    stopped_at is null and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds),
    extract(epoch from clock_timestamp() - heartbeat_at)::double precision
from shiftboss_host
order by name
limit 500
