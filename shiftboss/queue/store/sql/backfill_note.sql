-- What became of a backfill's jobs that live no more. Guard: not noted yet, and no live job. The backfill is held.
-- An end that the history tells no more counts as not done. Indexes: shiftboss_backfill_item_live, primary key,
-- shiftboss_finished_id.
with alive as materialized (
    select j.id
    from shiftboss_job j
    where j.id = any (array(
-- part: backfill_jobs
    ))
)
update shiftboss_backfill_item i
set outcome = coalesce((select f.state from shiftboss_finished f where f.id = i.job_id limit 1), 'discarded'),
    again = false
where i.backfill_id = %(id)s
    and i.job_id is not null
    and i.outcome is null
    and i.job_id not in (select id from alive)
returning i.outcome
