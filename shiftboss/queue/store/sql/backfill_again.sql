-- Quarantined jobs of a backfill that are to run again, as many as there is room for. The backfill is held.
-- Index: shiftboss_backfill_item_live.
select -i.job_id
from shiftboss_backfill_item i
where i.backfill_id = %(id)s and i.job_id < 0 and i.outcome is null
order by i.job_id desc
limit greatest(0, coalesce((
-- part: backfill_room
), 0))
