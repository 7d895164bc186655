-- A worker's run that ends where a cancellation was asked for ends the job.
ended as (
    delete from shiftboss_job j
    using outcome o
    where
-- part: guard
        and j.cancel_requested_at is not null
    returning j.*, 'cancelled' as final_state, j.worker_id as final_worker, null::text as new_cause,
        null::text as result, o.run_ms, null::text as new_code, null::text as new_type,
        null::text as new_message, null::text as new_fingerprint, o.code, o.evidence
)
