-- Ids of quarantined jobs that a bulk act means, from the newest down. Index: shiftboss_job_reason, backwards; an
-- equal reason would be no order, and another index chosen that finds it nowhere.
select id
from shiftboss_job
where state = 'quarantined' and quarantine_reason between %(reason)s and %(reason)s
-- part: scope
    and (%(before_id)s::bigint is null or id < %(before_id)s)
    and (%(task)s::text is null or task = %(task)s)
    and (%(fingerprint)s::text is null or coalesce(error_fingerprint, '') = %(fingerprint)s)
order by quarantine_reason desc, id desc
limit %(limit)s
