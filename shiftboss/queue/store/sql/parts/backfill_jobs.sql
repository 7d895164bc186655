        select i.job_id
        from shiftboss_backfill_item i
        where i.backfill_id = %(id)s and i.job_id is not null and i.outcome is null
