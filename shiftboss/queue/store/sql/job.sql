-- One job, live or finished, and who holds its key instead of it, in one statement.
-- Indexes: primary key, shiftboss_finished_id, shiftboss_job_key, shiftboss_revision_revision.
select id, queue, task, state, priority, due_at, deadline, enqueued_at, started_at, null::timestamptz,
    quarantined_at, owner, tenant, key, tags, meta::text, args::text, null::text, failures, losses,
    failure_limit, loss_limit, suspect, fence, worker_id,
    extract(epoch from lease_expires_at - clock_timestamp())::double precision,
    cancel_cause, quarantine_reason, error_code, error_type, error_message, error_fingerprint, null::integer,
    rerun_of, code_version, cancel_requested_at, watchers, follow_up, (
        select h.id from shiftboss_job h
        where h.key = j.key and h.id <> j.id and h.state <> 'quarantined' and not h.follow_up),
    revision_id, (select r.config::text from shiftboss_revision r where r.revision = j.revision_id limit 1),
    progress::text, checkpoint::text,
    batch_id
from shiftboss_job j
where j.id = %(id)s
-- part: within
union all
select id, queue, task, state, priority, due_at, deadline, enqueued_at, started_at, finished_at,
    quarantined_at, owner, tenant, key, tags, meta::text, args::text, result::text, failures, losses,
    failure_limit, loss_limit, suspect, fence, worker_id, null, cancel_cause, quarantine_reason, error_code,
    error_type, error_message, error_fingerprint, run_ms, rerun_of, code_version, cancel_requested_at, watchers,
    false, (
        select h.id from shiftboss_job h
        where h.key = j.key and h.state <> 'quarantined' and not h.follow_up),
    revision_id, (select r.config::text from shiftboss_revision r where r.revision = j.revision_id limit 1),
    progress::text, checkpoint::text,
    batch_id
from shiftboss_finished j
where j.id = %(id)s
-- part: within
