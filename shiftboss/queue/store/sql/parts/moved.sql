-- What has ended moves to the history. `ended` holds the live rows with what is new about each: final_state,
-- final_worker, new_cause (of a cancellation), result, run_ms, and new_code … new_fingerprint (of an error).
moved as (
    insert into shiftboss_finished (id,
-- part: job_columns
        , result, run_ms, finished_at)
    select id, queue, task, args, final_state, priority, due_at, deadline, enqueued_at, owner, tenant, key,
        watchers, tags, limit_keys, meta, trace, batch_id, rerun_of, revision_id, code_version, failures, losses,
        failure_limit, loss_limit, suspect, final_worker, fence, null, started_at,
        coalesce(cancel_cause, new_cause),
        case when new_cause is null then cancel_requested_at else coalesce(cancel_requested_at, clock_timestamp()) end,
        null, null, progress, checkpoint, event_seq,
        case when new_code is null then error_code else new_code end,
        case when new_code is null then error_type else new_type end,
        case when new_code is null then error_message else new_message end,
        case when new_code is null then error_fingerprint else new_fingerprint end,
        result::jsonb, run_ms, statement_timestamp()
    from ended
    returning id, fence
),
-- part: awaited
