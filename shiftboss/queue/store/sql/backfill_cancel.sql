-- An operator ends a backfill: its items that wait get no job any more. Guard: no job yet, not cancelled. The backfill
-- is held. Index: shiftboss_backfill_item_next.
update shiftboss_backfill_item
set outcome = 'cancelled'
where backfill_id = %(id)s and job_id is null and outcome is null
returning 1
