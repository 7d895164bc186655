    id, at, actor_kind, actor_id, actor_name, via, act, job_id, queue, reason, jobs, operation, request_id,
    asked::text, before::text, after::text
