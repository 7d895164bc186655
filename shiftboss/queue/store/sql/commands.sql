-- Commands, the newest first: one, those of a host, or of all. What waits past its time has expired; what an agent
-- claimed that is its host's no more is lost: nobody knows whether it was done. Index: primary key.
select c.id, c.host, c.verb, c.program, c.pool, c.count, c.asked_by, c.asked_at,
    case
        when c.state = 'waiting' and c.expires_at <= clock_timestamp() then 'expired'
        when c.state = 'claimed' and not coalesce(
            h.fence = c.fence and h.stopped_at is null
                and h.heartbeat_at > clock_timestamp() - make_interval(secs => h.lease_seconds), false) then 'lost'
        else c.state
    end,
    c.progress, c.result::text, c.claimed_at, c.ended_at
from shiftboss_command c
left join shiftboss_host h on h.name = c.host
where (%(command_id)s::bigint is null or c.id = %(command_id)s::bigint)
    and (%(host)s::text is null or c.host = %(host)s::text)
order by c.id desc
limit %(limit)s
