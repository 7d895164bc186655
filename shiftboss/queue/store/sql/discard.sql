-- discard: a worker's handler gives its job up for good. Cancelled where that was asked for.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(messages)s::text[], %(run_ms)s::integer[],
        %(evidence)s::text[])
        as o (id, fence, message, run_ms, evidence)
),
ended as (
    delete from shiftboss_job j
    using outcome o
    where
-- part: guard
    returning j.*, case when j.cancel_requested_at is null then 'discarded' else 'cancelled' end as final_state,
        j.worker_id as final_worker, null::text as new_cause, null::text as result, o.run_ms,
        'discarded' as new_code, null::text as new_type, o.message as new_message, null::text as new_fingerprint,
        o.evidence
),
rested as (
    select id from ended
),
-- part: moved
,
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, run_ms, error_code, error_message,
        evidence)
    select id, fence, queue, task, %(worker_id)s, final_state, started_at, statement_timestamp(), run_ms,
        new_code, new_message,
-- part: evidence
    from ended
)
,
leaving as (
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, fence, (select count(*) from awaited), (select count(*) from woken) from moved
