-- claim: the agent takes what is asked of its host, each command once, the oldest first.
-- Guard: it is the host's agent and its lease runs; the command waits and has not expired.
-- Index: shiftboss_command_waiting.
with held as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
    for share
),
due as (
    select c.id
    from shiftboss_command c
    join held on held.name = c.host
    where c.state = 'waiting' and c.expires_at > clock_timestamp()
    order by c.id
    limit %(limit)s
    for update of c skip locked
)
update shiftboss_command c
set state = 'claimed', claimed_at = clock_timestamp(), fence = %(fence)s
from due
where c.id = due.id and c.state = 'waiting'
returning c.id, c.verb, c.program, c.pool, c.count
