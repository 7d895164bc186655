-- A page of jobs in one state, newest first, below an id. Live states come from one table, final ones from the other.
-- Indexes: primary key or shiftboss_job_quarantined; shiftboss_finished_id or shiftboss_finished_unusual;
-- the owner's indexes.
(
    select id, queue, task, state, priority, due_at, enqueued_at, started_at, null::timestamptz, owner,
        failures, losses, failure_limit, loss_limit, fence, worker_id, quarantine_reason, error_type,
        error_message, null::integer
    from shiftboss_job
    where state = %(state)s and (%(beyond)s::bigint is null or id < %(beyond)s)
        and (%(queue)s::text is null or queue = %(queue)s)
        and (%(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers))
    order by id desc
    limit %(limit)s
)
union all
(
    select id, queue, task, state, priority, due_at, enqueued_at, started_at, finished_at, owner,
        failures, losses, failure_limit, loss_limit, fence, worker_id, quarantine_reason, error_type,
        error_message, run_ms
    from shiftboss_finished
    where state = %(state)s and (%(beyond)s::bigint is null or id < %(beyond)s)
        and (%(queue)s::text is null or queue = %(queue)s)
        and (%(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers))
    order by id desc
    limit %(limit)s
)
