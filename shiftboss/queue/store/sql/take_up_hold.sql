-- take up: the program has been started again, or needs it no more; nothing is owed to it. A hold that nobody has
-- ended ends by its time, and before that (`by_others`) because somebody has started the program past the agent.
-- Guard: the host's agent, whose lease runs; the hold is open, and is over where it is to end by its time.
-- Index: primary keys.
update shiftboss_hold h
set taken_up_at = clock_timestamp(), released_at = coalesce(h.released_at, clock_timestamp()),
    released_as = coalesce(h.released_as, case when %(by_others)s then 'others' else 'time' end)
from shiftboss_host a
where h.id = %(id)s and h.taken_up_at is null
    and (h.released_at is not null or %(by_others)s or h.until <= clock_timestamp())
    and a.name = h.host and a.fence = %(fence)s and a.stopped_at is null
    and a.heartbeat_at > clock_timestamp() - make_interval(secs => a.lease_seconds)
returning h.id
