-- Became available: wake a keeper where one has declared itself idle for the queue.
notified as (
    select pg_notify('shiftboss_available', max(b.priority) || ' ' || b.queue)
    from became_available b
    where exists (
        select from shiftboss_worker w
        where w.idle and b.queue = any (w.queues) and w.heartbeat_at > clock_timestamp() - interval '5 minutes')
    group by b.queue
)
