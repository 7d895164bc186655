-- stage: the maintainer or a keeper makes follow-ups available whose key is free. Which, to be done one by one.
-- Indexes: shiftboss_job_follow_up, shiftboss_job_key.
select j.id
from shiftboss_job j
-- One look a follow-up, not a walk over all keys.
left join lateral (
    select true as found from shiftboss_job h
    where h.key = j.key and h.state <> 'quarantined' and not h.follow_up
    limit 1
) holder on true
where j.follow_up and j.key is not null and j.state <> 'quarantined'
    and j.due_at <= statement_timestamp()
    and holder.found is null
order by j.id
limit %(limit)s
