-- The partitions that exist, as parent and day.
select p.relname::text, to_date(right(c.relname, 8), 'YYYYMMDD')
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
join pg_class p on p.oid = i.inhparent
where i.inhparent in (
    'shiftboss_finished'::regclass, 'shiftboss_attempt'::regclass, 'shiftboss_event'::regclass)
