-- Keep an act of a person. Guard: the unique index shiftboss_audit_request lets a request be done once.
insert into shiftboss_audit (
    actor_kind, actor_id, actor_name, via, act, job_id, queue, reason, jobs, operation, request_id, asked, before,
    after)
values (
    %(actor_kind)s, %(actor_id)s, %(actor_name)s, %(via)s, %(act)s, %(job_id)s, %(queue)s, %(reason)s, %(jobs)s,
    %(operation)s, %(request_id)s, %(asked)s::jsonb, %(before)s::jsonb, %(after)s::jsonb)
returning id
