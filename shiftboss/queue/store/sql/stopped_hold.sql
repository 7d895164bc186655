-- hold: the program is down now. Guard: the host's agent, whose lease runs; the hold is in force. Index: primary keys.
update shiftboss_hold h
set stopped_at = clock_timestamp()
from shiftboss_host a
where h.id = %(id)s and h.stopped_at is null and h.taken_up_at is null
    and a.name = h.host and a.fence = %(fence)s and a.stopped_at is null
    and a.heartbeat_at > clock_timestamp() - make_interval(secs => a.lease_seconds)
returning h.id
