-- An operator ends a backfill: its items that wait get no job any more. Guard: no job yet. The backfill is held.
-- Index: shiftboss_backfill_item_next.
update shiftboss_backfill_item
set job_id = 0, outcome = 'cancelled'
where backfill_id = %(id)s and job_id is null
returning 1
