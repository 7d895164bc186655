-- prune: the partitions of days before this one, those whose detach was begun first. `standing`: attached,
-- pending (a detach was interrupted), or detached: it only has to be dropped, as the mark says that prune has left
-- on it. A day that somebody else has detached is not ours.
select p.relname::text as parent, right(c.relname, 8) as day,
    case when i.inhparent is null then 'detached' when i.inhdetachpending then 'pending' else 'attached' end
        as standing
from pg_class c
join pg_class p on p.relname = left(c.relname, -9) and p.relnamespace = c.relnamespace
left join pg_inherits i on i.inhrelid = c.oid
where p.oid in ('shiftboss_finished'::regclass, 'shiftboss_attempt'::regclass, 'shiftboss_event'::regclass)
    and right(c.relname, 8) < to_char(%(before)s::date, 'YYYYMMDD')
    and (i.inhparent = p.oid
        or i.inhparent is null
            and obj_description(c.oid, 'pg_class') = 'shiftboss: past its retention, to be dropped')
order by i.inhparent is not null and not i.inhdetachpending, 1, 2
