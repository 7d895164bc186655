-- beat: the agent lives, and this is what it sees. Guard: it is still the one, and its lease has not run out.
-- Index: primary key. Nothing that is written is indexed.
update shiftboss_host
set heartbeat_at = clock_timestamp(), programs = %(programs)s::jsonb, trouble = %(trouble)s,
    resources = %(resources)s::jsonb, dropped = dropped + %(dropped)s
where name = %(name)s and fence = %(fence)s and stopped_at is null
    and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
returning fence
