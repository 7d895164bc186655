-- fail: a worker's handler raised; retryable after its backoff, quarantined at the failure limit or where no
-- backoff is given, cancelled where that was asked for.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *, backoff_seconds is null as final
    from unnest(
        %(ids)s::bigint[], %(fences)s::bigint[], %(backoff_seconds)s::double precision[], %(run_ms)s::integer[],
        %(codes)s::text[], %(types)s::text[], %(messages)s::text[], %(fingerprints)s::text[],
        %(tracebacks)s::text[], %(evidence)s::text[])
        as o (id, fence, backoff_seconds, run_ms, code, type, message, fingerprint, traceback, evidence)
),
failed as (
    update shiftboss_job j
    set state = case when o.final or j.failures + 1 >= j.failure_limit then 'quarantined' else 'retryable' end,
        failures = j.failures + 1,
        due_at = clock_timestamp() + make_interval(secs => coalesce(o.backoff_seconds, 0)),
        quarantine_reason = case when o.final or j.failures + 1 >= j.failure_limit then 'failures_exhausted' end,
        quarantined_at = case when o.final or j.failures + 1 >= j.failure_limit then clock_timestamp() end,
        worker_id = null,
        lease_expires_at = null,
        suspect = false,
        error_code = o.code, error_type = o.type, error_message = o.message, error_fingerprint = o.fingerprint
    from outcome o
    where
-- part: guard
        and j.cancel_requested_at is null
    returning j.id, j.state, j.fence, j.slot_id, j.queue, j.task, j.started_at, j.checkpoint, o.run_ms, o.code, o.type,
        o.message, o.fingerprint, o.traceback, o.evidence
),
ended as (
    delete from shiftboss_job j
    using outcome o
    where
-- part: guard
        and j.cancel_requested_at is not null
    returning j.*, 'cancelled' as final_state, j.worker_id as final_worker, null::text as new_cause,
        null::text as result, o.run_ms, o.code as new_code, o.type as new_type, o.message as new_message,
        o.fingerprint as new_fingerprint, o.traceback, o.evidence
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, run_ms, error_code, error_type,
        error_message, error_fingerprint, traceback, evidence)
    select id, fence, queue, task, %(worker_id)s, 'failed', started_at, statement_timestamp(), run_ms, code,
        type, message, fingerprint, traceback,
-- part: evidence
    from (
        select id, fence, queue, task, started_at, run_ms, code, type, message, fingerprint, traceback, evidence,
            checkpoint
        from failed
        union all
        select id, fence, queue, task, started_at, run_ms, new_code, new_type, new_message, new_fingerprint,
            traceback, evidence, checkpoint
        from ended
    ) attempt
),
rested as (
    select id from failed where state = 'quarantined'
    union all
    select id from ended
),
-- part: moved
,
leaving as (
    select id, fence, slot_id from failed
    where slot_id is not null and (state = 'quarantined' or queue <> all (array(select name from shiftboss_queue where sequential)))
    union all
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, fence, (select count(*) from awaited), (select count(*) from woken) from failed
union all
select id, fence, (select count(*) from awaited), (select count(*) from woken) from moved
