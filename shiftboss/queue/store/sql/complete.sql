-- complete: a worker's job is done; its row moves to the history.
-- Guard (parts/guard.sql): id, fence, worker, unexpired (a CHECK ties them to running). Index: primary key.
with outcome as materialized (
    select *
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(results)s::text[], %(run_ms)s::integer[])
        as o (id, fence, result, run_ms)
),
gone as (
    delete from shiftboss_job j
    using outcome o
    where
-- part: guard
    returning j.*, o.result, o.run_ms
)
insert into shiftboss_finished (id,
-- part: job_columns
    , result, run_ms, finished_at)
select id, queue, task, args, 'completed', priority, due_at, deadline, enqueued_at, owner, tenant, key, watchers,
    tags, limit_keys, meta, trace, batch_id, rerun_of, revision_id, code_version, failures, losses,
    failure_limit, loss_limit, suspect, worker_id, fence, null, started_at, cancel_cause, cancel_requested_at,
    null, null, progress, event_seq, error_code, error_type, error_message, error_fingerprint,
    result::jsonb, run_ms, statement_timestamp()
from gone
returning id, fence
