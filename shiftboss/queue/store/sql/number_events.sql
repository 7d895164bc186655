-- Whoever stores events of these jobs numbers them alone until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('shiftboss_event', id))
from (select id from unnest(%(ids)s::bigint[]) as o (id) order by id) o
