-- An operator lets what failed of a backfill run again: cancelled and discarded items wait for a new job, and
-- quarantined jobs are to be reinstated when there is room. Guard: failed. The backfill is held, its ends are noted.
-- Index: primary key.
update shiftboss_backfill_item i
set job_id = case when i.outcome is null then i.job_id end, outcome = null, again = i.outcome is null
where i.backfill_id = %(id)s
    and (i.outcome in ('cancelled', 'discarded')
        or (i.outcome is null and not i.again and exists (
            select from shiftboss_job j where j.id = i.job_id and j.state = 'quarantined')))
returning not i.again
