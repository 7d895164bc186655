    c.id, c.host, c.verb, c.program, c.pool, c.count, c.asked_by, c.asked_at,
    case
        when c.state = 'waiting' and c.expires_at <= clock_timestamp() then 'expired'
        when c.state = 'claimed' and not coalesce(
            h.fence = c.fence and h.stopped_at is null
                and h.heartbeat_at > clock_timestamp() - make_interval(secs => h.lease_seconds), false) then 'lost'
        else c.state
    end,
    c.progress, c.result::text, c.claimed_at, c.ended_at
