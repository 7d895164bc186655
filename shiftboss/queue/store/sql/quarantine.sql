-- quarantine: a worker holds a job back that cannot run at all (unknown task, invalid arguments).
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(reasons)s::text[], %(messages)s::text[])
        as o (id, fence, reason, message)
),
held as (
    update shiftboss_job j
    set state = 'quarantined', quarantine_reason = o.reason, quarantined_at = clock_timestamp(),
        worker_id = null, lease_expires_at = null,
        error_code = o.reason, error_type = null, error_message = o.message, error_fingerprint = null
    from outcome o
    where
-- part: guard
    returning j.id, j.fence, j.queue, j.task, j.started_at, o.reason, o.message
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message)
    select id, fence, queue, task, %(worker_id)s, 'quarantined', started_at, statement_timestamp(), reason, message
    from held
)
select id, fence from held
