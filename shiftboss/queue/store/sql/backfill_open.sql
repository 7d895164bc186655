-- Backfills that have something to enqueue or jobs whose end is to be noted.
-- Indexes: shiftboss_backfill_item_next, shiftboss_backfill_item_live.
select b.id
from shiftboss_backfill b
where (b.paused_at is null and exists (
        select from shiftboss_backfill_item i where i.backfill_id = b.id and i.job_id is null and i.outcome is null))
    or exists (
        select from shiftboss_backfill_item i
        where i.backfill_id = b.id and i.job_id is not null and i.outcome is null)
order by b.id
