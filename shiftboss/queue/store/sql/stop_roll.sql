-- stop: a roll touches no further worker.
-- Guard: it runs, and who stops it is the agent of a host, whose lease runs. Primary keys.
with held as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
)
update shiftboss_roll r
set state = 'stopped', ended_at = clock_timestamp(), why = %(why)s
from held
where r.id = %(roll_id)s and r.state = 'running'
returning r.id
