-- stop: a roll whose next worker is on a host of which nobody has heard for %(seconds)s s.
-- Guard: the roll still runs, and who says so is the agent of a host, whose lease runs: so of another one.
-- Indexes: shiftboss_roll_running, primary keys.
with held as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
),
silent as (
    select r.id, h.name
    from shiftboss_roll r
    cross join lateral (
        select host
        from shiftboss_roll_step
        where roll_id = r.id and state <> 'done'
        order by number
        limit 1
    ) next
    join shiftboss_host h on h.name = next.host
    where r.state = 'running'
        and coalesce(h.stopped_at, h.heartbeat_at) < clock_timestamp() - make_interval(secs => %(seconds)s)
)
update shiftboss_roll r
set state = 'stopped', ended_at = clock_timestamp(), why = format('the agent of %%s is silent', silent.name)
from held, silent
where r.id = silent.id and r.state = 'running'
returning r.id
