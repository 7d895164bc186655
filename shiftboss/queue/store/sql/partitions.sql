-- The partitions that exist, as parent and the digits of the day.
select p.relname::text, right(c.relname, 8)
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
join pg_class p on p.oid = i.inhparent
where i.inhparent in (
    'shiftboss_finished'::regclass, 'shiftboss_attempt'::regclass, 'shiftboss_event'::regclass)
    and c.relname ~ '_[0-9]{8}$'
