-- release: a worker gives jobs back unharmed; available at once, nothing is counted, due_at stays. Cancelled
-- where that was asked for.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *, null::integer as run_ms
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(codes)s::text[], %(evidence)s::text[])
        as o (id, fence, code, evidence)
),
released as (
    update shiftboss_job j
    set state = 'available', worker_id = null, lease_expires_at = null
    from outcome o
    where
-- part: guard
        and j.cancel_requested_at is null
    returning j.id, j.fence, j.slot_id, j.queue, j.task, j.priority, j.started_at, j.checkpoint, o.code, o.evidence
),
-- part: cancelled
,
rested as (
    select id from ended
),
-- part: moved
,
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, evidence)
    select id, fence, queue, task, %(worker_id)s, 'released', started_at, statement_timestamp(), code,
-- part: evidence
    from released
    union all
    select id, fence, queue, task, %(worker_id)s, 'cancelled', started_at, statement_timestamp(), code,
-- part: evidence
    from ended
),
leaving as (
    select id, fence, slot_id from released
    where slot_id is not null and queue <> all (array(select name from shiftboss_queue where sequential))
    union all
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
became_available as (
    select queue, priority from released
    union all
    select queue, 100 from freed
),
-- part: notified
select id, fence, (select count(*) from notified) from released
union all
select id, fence, (select count(*) from awaited) + (select count(*) from notified) from moved
