    state = 'running',
    fence = j.fence + 1,
    worker_id = %(worker_id)s,
    started_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
