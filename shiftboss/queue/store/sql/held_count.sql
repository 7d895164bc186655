-- How many quarantined jobs a bulk act would mean, by task, among the newest %(cap)s of their reason; and how many
-- those are. Index: shiftboss_job_reason, backwards; an equal reason would be no order, and another index chosen.
with looked as materialized (
    select task, error_fingerprint, queue, owner
    from shiftboss_job
    where state = 'quarantined' and quarantine_reason between %(reason)s and %(reason)s
    order by quarantine_reason desc, id desc
    limit %(cap)s
)
select task, count(*), (select count(*) from looked)
from looked
where (%(task)s::text is null or task = %(task)s)
    and (%(fingerprint)s::text is null or coalesce(error_fingerprint, '') = %(fingerprint)s)
-- part: scope
group by task
order by 2 desc, 1
