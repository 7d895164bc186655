-- sample: queues with available jobs: how many, at most %(cap)s, and the age of the one that is due for longest.
-- Index: shiftboss_job_claim, from one queue and priority to the next.
with recursive
-- part: sample_due
ladder (queue, priority, step) as (
    (select queue, priority, 1 from shiftboss_job
    where state = 'available' and (select exists (select from due))
    order by queue, priority desc
    limit 1)
    union all
    select next.queue, next.priority, l.step + 1
    from ladder l
    cross join lateral (
        (select 1 as turn, queue, priority from shiftboss_job
        where state = 'available' and queue = l.queue and priority < l.priority
        order by priority desc
        limit 1)
        union all
        (select 2, queue, priority from shiftboss_job
        where state = 'available' and queue > l.queue
        order by queue, priority desc
        limit 1)
        order by turn
        limit 1
    ) next
    where l.step < 2000
),
oldest as (
    select l.queue, min(first.due_at) as due_at
    from ladder l
    cross join lateral (
        select due_at from shiftboss_job
        where state = 'available' and queue = l.queue and priority = l.priority
        order by due_at, id
        limit 1
    ) first
    group by l.queue
),
seen as materialized (
    select coalesce(jsonb_agg(jsonb_build_array(
        o.queue, waiting.jobs, extract(epoch from clock_timestamp() - o.due_at))), '[]') as whole
    from oldest o
    cross join lateral (
        select count(*) as jobs
        from (
            select from shiftboss_job where state = 'available' and queue = o.queue limit %(cap)s
        ) first_ones
    ) waiting
)
-- part: sample_write
