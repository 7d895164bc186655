-- Quarantined jobs of a backfill that are to run again, as many as there is room for. The backfill is held.
-- Index: shiftboss_backfill_item_again.
select job_id
from shiftboss_backfill_item
where backfill_id = %(id)s and again
order by job_id
limit greatest(0, coalesce((
-- part: backfill_room
), 0))
