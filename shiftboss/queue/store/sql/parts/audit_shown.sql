    -- without the lists of jobs, which only one operation's own reads want
    id, at, actor_kind, actor_id, actor_name, via, act, job_id, queue, reason, jobs, operation, request_id,
    (asked - 'ids')::text, before::text, (after - array['ids', 'left', 'new'])::text
