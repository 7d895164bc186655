-- leave: the agent ends in order; the next one need not wait. Guard: it is still the one. Index: primary key.
update shiftboss_host
set stopped_at = clock_timestamp()
where name = %(name)s and fence = %(fence)s and stopped_at is null
returning fence
