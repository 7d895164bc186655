-- quarantine: a worker holds a job back that cannot run at all (unknown task, invalid arguments). Cancelled
-- where that was asked for.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *, null::integer as run_ms
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(reasons)s::text[], %(messages)s::text[],
        %(evidence)s::text[])
        as o (id, fence, code, message, evidence)
),
held as (
    update shiftboss_job j
    set state = 'quarantined', quarantine_reason = o.code, quarantined_at = clock_timestamp(),
        worker_id = null, lease_expires_at = null,
        error_code = o.code, error_type = null, error_message = o.message, error_fingerprint = null
    from outcome o
    where
-- part: guard
        and j.cancel_requested_at is null
    returning j.id, j.fence, j.slot_id, j.queue, j.task, j.started_at, j.checkpoint, o.code,
        o.message, o.evidence
),
-- part: cancelled
,
rested as (
    select id from held
    union all
    select id from ended
),
-- part: moved
,
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message, evidence)
    select id, fence, queue, task, %(worker_id)s, 'quarantined', started_at, statement_timestamp(), code, message,
-- part: evidence
    from held
    union all
    select id, fence, queue, task, %(worker_id)s, 'cancelled', started_at, statement_timestamp(), code, null,
-- part: evidence
    from ended
)
,
leaving as (
    select id, fence, slot_id from held where slot_id is not null
    union all
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, fence, (select count(*) from awaited), (select count(*) from woken) from held
union all
select id, fence, (select count(*) from awaited), (select count(*) from woken) from moved
