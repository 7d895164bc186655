update shiftboss_job j
set state = 'running',
    fence = j.fence + 1,
    worker_id = %(worker_id)s,
    started_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
from picked
where j.id = picked.id
returning j.id, j.fence, j.queue, j.task, j.args::text, j.priority, j.due_at, j.failures, j.losses, j.suspect
