-- Quarantined jobs that have been held for longer than their retention. Index: shiftboss_job_quarantined.
select id from shiftboss_job
where state = 'quarantined' and quarantined_at < clock_timestamp() - make_interval(secs => %(seconds)s)
order by id
limit %(limit)s
