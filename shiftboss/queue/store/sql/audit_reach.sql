-- The oldest of the newest `reach` acts, where there are older ones: how far back a narrowed list has looked.
-- Indexes: as audit_entries.sql.
select id, at
from shiftboss_audit
where (%(queue)s::text is null or queue = %(queue)s)
    and (%(before_id)s::bigint is null or id < %(before_id)s)
order by id desc
offset %(reach)s - 1
limit 1
