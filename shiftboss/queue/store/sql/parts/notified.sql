-- Became available: wake a keeper where one has declared itself idle for the queue.
-- Once a queue, and the idle ones are looked up once for all. Index: shiftboss_worker_idle.
highest as materialized (
    select queue, max(priority) as priority from became_available group by queue
),
notified as (
    select pg_notify('shiftboss_available', priority || ' ' || queue)
    from highest
    where queue = any (array(
        select distinct unnest(w.queues)
        from shiftboss_worker w
        where w.idle and w.heartbeat_at > clock_timestamp() - interval '5 minutes'))
)
