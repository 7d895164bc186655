update shiftboss_job j
set state = 'running',
    fence = j.fence + 1,
    worker_id = %(worker_id)s,
    started_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
-- By primary key, whatever the planner believes of the table.
where j.id = any (array(select id from picked))
returning j.id, j.fence, j.queue, j.task, j.args::text, j.priority, j.due_at, j.failures, j.losses, j.suspect,
    j.revision_id, j.checkpoint::text
