-- stage: the maintainer or a keeper makes follow-ups available whose key is free. Which, to be done one by one.
-- Index: shiftboss_job_follow_up.
select id from shiftboss_job j
where j.follow_up and j.key is not null and j.state <> 'quarantined'
    and j.due_at <= statement_timestamp()
    and not exists (
        select from shiftboss_job h where h.key = j.key and h.state <> 'quarantined' and not h.follow_up)
order by id
limit %(limit)s
