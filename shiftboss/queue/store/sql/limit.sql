-- limit: settings (no `by`) or a person say how many jobs of a queue run at once; what a person has said stands
-- against the settings until a person resets it to them. Keepers that wait for the queue are woken.
-- Guard: something changes, and no person's word stands against it. Index: primary key.
with was as materialized (
    select name, concurrency, sequential
    from shiftboss_queue
    where name = %(queue)s
    for no key update
),
limited as (
    insert into shiftboss_queue as q (name, concurrency, sequential, limited_by)
    -- Not before the row as it was is locked.
    select %(queue)s, %(concurrency)s, %(sequential)s, %(by)s from (select count(*) from was) locked
    on conflict (name) do update
    set concurrency = excluded.concurrency, sequential = excluded.sequential, limited_by = excluded.limited_by
    where (q.limited_by is null or %(by)s::text is not null or %(reset)s)
        and (q.concurrency, q.sequential, q.limited_by)
            is distinct from (excluded.concurrency, excluded.sequential, excluded.limited_by)
    returning name
),
became_available as (
    select name as queue, 100 as priority from limited
),
-- part: notified
select l.name, w.concurrency, coalesce(w.sequential, false), (select count(*) from notified)
from limited l
left join was w on w.name = l.name
