-- Who holds a key: the live job, and its follow-up; `own`: the authority may end it. Indexes: shiftboss_job_key, shiftboss_job_follow_up.
select id, state, enqueued_at, follow_up,
    %(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers), cardinality(watchers)
from shiftboss_job
where key = %(key)s and state <> 'quarantined' and not follow_up
union all
select id, state, enqueued_at, follow_up,
    %(owner)s::text is null or owner = %(owner)s or %(owner)s = any (watchers), cardinality(watchers)
from shiftboss_job
where key = %(key)s and state <> 'quarantined' and follow_up
