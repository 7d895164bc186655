-- release: a worker gives jobs back unharmed; available at once, nothing is counted, due_at stays.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select * from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(codes)s::text[]) as o (id, fence, code)
),
released as (
    update shiftboss_job j
    set state = 'available', worker_id = null, lease_expires_at = null
    from outcome o
    where
-- part: guard
    returning j.id, j.fence, j.queue, j.task, j.priority, j.started_at, o.code
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code)
    select id, fence, queue, task, %(worker_id)s, 'released', started_at, statement_timestamp(), code
    from released
),
became_available as (
    select queue, priority from released
),
-- part: notified
select id, fence, (select count(*) from notified) from released
