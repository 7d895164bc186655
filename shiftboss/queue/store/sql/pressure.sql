-- How long the oldest due job waits that one more worker of a pool could take: not one of a queue that is paused,
-- nor of one whose limit is full, nor one whose task no worker of the pool knows. And how many workers of the pool
-- run on each host that lives, and how many it knows.
-- Budget: 50 priorities of each queue, the first 100 jobs of each; the workers of a day.
-- Indexes: shiftboss_job_claim, shiftboss_slot_queue.
with recursive served as (
    select array_agg(distinct known.task) as tasks
    from shiftboss_worker w, unnest(w.tasks) known (task)
    where w.pool = %(pool)s and w.state <> 'stopped'
        and w.heartbeat_at > clock_timestamp() - make_interval(secs => w.lease_seconds)
),
open_queue as (
    select q.name
    from unnest(%(queues)s::text[]) q (name)
    where not exists (
        select from shiftboss_queue o
        where o.name = q.name and (o.paused_at is not null or o.concurrency <= (
            select count(*) from shiftboss_slot s where s.queue = q.name and s.job_id is not null)))
),
ladder (queue, priority, step) as (
    select o.name, first.priority, 1
    from open_queue o
    cross join lateral (
        select priority from shiftboss_job
        where state = 'available' and queue = o.name
        order by priority desc
        limit 1
    ) first
    union all
    select l.queue, next.priority, l.step + 1
    from ladder l
    cross join lateral (
        select priority from shiftboss_job
        where state = 'available' and queue = l.queue and priority < l.priority
        order by priority desc
        limit 1
    ) next
    where l.step < 50
),
oldest as (
    select min(first.due_at) as due_at
    from served
    cross join ladder l
    cross join lateral (
        select due_at, task, deadline from shiftboss_job
        where state = 'available' and queue = l.queue and priority = l.priority
        order by due_at, id
        limit 100
    ) first
    where (served.tasks is null or first.task = any (served.tasks))
        and (first.deadline is null or first.deadline > clock_timestamp())
)
select (select extract(epoch from clock_timestamp() - due_at)::double precision from oldest),
    coalesce((
        select jsonb_object_agg(h.name, (
            select jsonb_build_array(count(*) filter (where p ->> 'launcher' is not null), count(*))
            from jsonb_array_elements(h.programs) p
            where p ->> 'pool' = %(pool)s::text))
        from shiftboss_host h
        where h.stopped_at is null
            and h.heartbeat_at > clock_timestamp() - make_interval(secs => h.lease_seconds)
            and h.programs @> jsonb_build_array(jsonb_build_object('pool', %(pool)s::text))
    ), '{}')::text
