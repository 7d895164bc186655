        select e.job_id
        from shiftboss_backfill_item e
        where e.backfill_id = %(id)s and e.job_id is not null and e.outcome is null
