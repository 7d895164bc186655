-- One operation as a whole: its first entry, how many jobs its entries changed, and how long ago the last one was.
-- Index: shiftboss_audit_operation.
select o.act, o.actor_name, o.reason, o.queue, o.asked::text, s.jobs, o.at, s.age_seconds
from (
    select *
    from shiftboss_audit
    where operation = %(operation)s
-- part: audit_within
    order by id
    limit 1
) o
cross join (
    select coalesce(sum(jobs), 0) as jobs,
        extract(epoch from clock_timestamp() - max(at))::double precision as age_seconds
    from shiftboss_audit
    where operation = %(operation)s
) s
