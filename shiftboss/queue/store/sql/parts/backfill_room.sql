-- How many more jobs of a backfill may live: none where it is paused. Those in quarantine keep nobody back.
-- The table of jobs is asked, not what was noted. Indexes: shiftboss_backfill_item_live, primary key.
    select b.concurrency - (
        select count(*)
        from shiftboss_job j
        where j.id = any (array(
-- part: backfill_jobs
        )) and j.state <> 'quarantined')
    from shiftboss_backfill b
    where b.id = %(id)s and b.paused_at is null
