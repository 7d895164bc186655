-- One job, live or finished, in one statement. Indexes: primary key, shiftboss_finished_id.
select id, queue, task, state, priority, due_at, deadline, enqueued_at, started_at, null::timestamptz,
    quarantined_at, owner, tenant, key, tags, meta::text, args::text, null::text, failures, losses,
    failure_limit, loss_limit, suspect, fence, worker_id,
    extract(epoch from lease_expires_at - clock_timestamp())::double precision,
    cancel_cause, quarantine_reason, error_code, error_type, error_message, error_fingerprint, null::integer,
    rerun_of, code_version
from shiftboss_job
where id = %(id)s and (%(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers))
union all
select id, queue, task, state, priority, due_at, deadline, enqueued_at, started_at, finished_at,
    quarantined_at, owner, tenant, key, tags, meta::text, args::text, result::text, failures, losses,
    failure_limit, loss_limit, suspect, fence, worker_id, null, cancel_cause, quarantine_reason, error_code,
    error_type, error_message, error_fingerprint, run_ms, rerun_of, code_version
from shiftboss_finished
where id = %(id)s and (%(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers))
