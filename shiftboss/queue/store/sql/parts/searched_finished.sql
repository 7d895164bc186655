        select id, queue, task, state, priority, due_at, enqueued_at, started_at, finished_at,
            quarantined_at, owner, failures, losses, failure_limit, loss_limit, fence, worker_id, quarantine_reason,
            error_type, error_message, run_ms, rerun_of, batch_id,
-- part: searched_more
