-- limit: what the settings say of all queues, where no person has said otherwise; a queue of which they say nothing
-- has no limit. Guard: something changes, and no person's word stands against it. Index: primary key.
with said as (
    select s.queue, s.concurrency, s.sequential
    from unnest(%(queues)s::text[], %(concurrency)s::integer[], %(sequential)s::boolean[])
        as s (queue, concurrency, sequential)
    union all
    select name, null, false
    from shiftboss_queue
    where concurrency is not null and name <> all (%(queues)s::text[])
)
insert into shiftboss_queue as q (name, concurrency, sequential)
select queue, concurrency, sequential from said order by queue
on conflict (name) do update
set concurrency = excluded.concurrency, sequential = excluded.sequential
where q.limited_by is null
    and (q.concurrency, q.sequential) is distinct from (excluded.concurrency, excluded.sequential)
returning name
