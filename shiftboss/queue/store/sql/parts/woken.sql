-- Whoever waits for a slot of the queue is woken; equal notifications of one transaction are one.
-- Index: shiftboss_worker_idle.
woken as (
    select pg_notify('shiftboss_available', '100 ' || queue)
    from freed
    where queue = any (array(
        select unnest(w.queues)
        from shiftboss_worker w
        where w.idle and w.heartbeat_at > clock_timestamp() - interval '5 minutes'))
)
