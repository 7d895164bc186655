-- Whoever acts on a backfill holds it until the transaction ends, waiting as long as lock_timeout says.
select id
from shiftboss_backfill
where id = %(id)s
-- part: scope
for no key update
