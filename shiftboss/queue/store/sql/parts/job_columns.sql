    queue, task, args, state, priority, due_at, deadline, enqueued_at, owner, tenant, key, watchers, tags,
    limit_keys, meta, trace, batch_id, rerun_of, revision_id, code_version, failures, losses, failure_limit,
    loss_limit, suspect, worker_id, fence, lease_expires_at, started_at, cancel_cause, cancel_requested_at,
    quarantine_reason, quarantined_at, progress, checkpoint, event_seq, error_code, error_type, error_message,
    error_fingerprint
