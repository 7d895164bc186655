-- The agent drops commands of its host that are older than a week. Guard: it is the host's agent. A host has few.
delete from shiftboss_command c
using shiftboss_host h
where h.name = %(host)s and h.fence = %(fence)s and h.stopped_at is null and c.host = h.name
    and c.asked_at < clock_timestamp() - interval '7 days'
returning c.id
