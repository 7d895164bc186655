-- Quarantined jobs of a backfill run again, or have been ended or taken back by somebody: no more is wished of them.
-- Guard: it was wished. The backfill is held. Index: shiftboss_backfill_item_live.
update shiftboss_backfill_item
set job_id = -job_id
where backfill_id = %(id)s and outcome is null and job_id = any (array(select -n from unnest(%(ids)s::bigint[]) n))
