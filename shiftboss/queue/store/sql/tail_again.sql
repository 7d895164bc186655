-- tail again: whoever has asked for a program's log wants it as it is now: the command is to be done once more, and
-- what it told stays until it tells anew. Guard: it is theirs, not older than so many seconds, has ended, and the
-- host has an agent that lives. Indexes: primary keys. Nobody else takes what has ended.
update shiftboss_command c
set state = 'waiting', expires_at = clock_timestamp() + make_interval(secs => %(expire_seconds)s), claimed_at = null,
    fence = null, progress = null, ended_at = null
from shiftboss_host h
where c.id = %(command_id)s and c.verb = 'tail' and c.asked_by = %(by)s and c.state in ('done', 'failed')
    and c.asked_at > clock_timestamp() - make_interval(secs => %(within_seconds)s)
    and h.name = c.host and h.stopped_at is null
    and h.heartbeat_at > clock_timestamp() - make_interval(secs => h.lease_seconds)
returning c.id
