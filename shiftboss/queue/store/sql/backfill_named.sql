-- The backfill that an owner, or the system, has given this name. Index: shiftboss_backfill_name.
select id, task
from shiftboss_backfill
where name = %(name)s and owner is not distinct from %(owner)s::text
