-- The live jobs of a backfill, quarantined ones too. The backfill is held.
-- Indexes: shiftboss_backfill_item_live, primary key.
select j.id
from shiftboss_job j
where j.id = any (array(
-- part: backfill_jobs
    ))
order by j.id
