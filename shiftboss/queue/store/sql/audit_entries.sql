-- Acts, the newest first. Indexes: primary key, shiftboss_audit_job, shiftboss_audit_queue.
select
-- part: audit_shown
from shiftboss_audit
where (%(job_id)s::bigint is null or job_id = %(job_id)s)
    and (%(queue)s::text is null or queue = %(queue)s)
    and (%(before_id)s::bigint is null or id < %(before_id)s)
order by id desc
limit %(limit)s
