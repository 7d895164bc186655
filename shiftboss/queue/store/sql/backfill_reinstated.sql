-- Quarantined jobs of a backfill run again, or have been ended or taken back by somebody: no more is wished of them.
-- Guard: it was wished. The backfill is held. Index: shiftboss_backfill_item_again.
update shiftboss_backfill_item
set again = false
where backfill_id = %(id)s and again and job_id = any (%(ids)s::bigint[])
