-- What may keep a waiting job from running: what is ordered of its queue, who serves it, how much of its limit is
-- taken, and how many jobs go before it.
-- Budget: one row of shiftboss_queue, all workers of the last day, 10,000 slots, twice `cap` entries of the claims
-- index. Indexes: shiftboss_slot_queue, shiftboss_job_claim.
with q as (
    select paused_at, paused_by, pause_reason, concurrency, sequential
    from shiftboss_queue
    where name = %(queue)s
),
served as (
    select *, state <> 'stopped' and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds) as alive
    from shiftboss_worker
    where %(queue)s = any (queues)
),
serving as (
    select count(*) filter (where alive and state = 'running') as workers,
        count(*) filter (where alive and state = 'draining') as draining,
        count(*) filter (where alive and state = 'running' and %(task)s = any (tasks)) as knowing,
        array_agg(distinct code_version) filter (
            where alive and %(task)s <> all (tasks) and code_version is not null) as versions_without,
        coalesce(sum(processes * threads) filter (where alive and state = 'running'), 0) as slots,
        coalesce(sum(in_use) filter (where alive and state = 'running'), 0) as in_use,
        max(heartbeat_at) as last_seen_at
    from served
),
taken as (
    select job_id from shiftboss_slot where queue = %(queue)s and job_id is not null
),
ahead as (
    (select 1 from shiftboss_job
    where state = 'available' and queue = %(queue)s and priority > %(priority)s
    limit %(cap)s)
    union all
    (select 1 from shiftboss_job
    where state = 'available' and queue = %(queue)s and priority = %(priority)s
        and (due_at, id) < (%(due_at)s, %(id)s)
    limit %(cap)s)
)
select paused_at, paused_by, pause_reason, concurrency, coalesce(sequential, false),
    workers, draining, knowing, coalesce(versions_without, '{}'), slots::integer, in_use::integer, last_seen_at,
    (select count(*) from taken), array(select job_id from taken order by job_id limit 5),
    (select count(*) from ahead)
from serving left join q on true
