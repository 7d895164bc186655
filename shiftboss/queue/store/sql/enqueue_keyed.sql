-- enqueue: as enqueue.sql, for a job with a key. No row back: a live job holds the key, or a follow-up waits.
-- Guard: the unique index shiftboss_job_key. Index: shiftboss_job_follow_up.
with
-- part: noted_revision
,
enqueued as (
    insert into shiftboss_job (
-- part: new_job
    )
    select
-- part: new_job_values
    where not exists (
        select from shiftboss_job f where f.key = %(key)s and f.state <> 'quarantined' and f.follow_up)
    on conflict (key) where key is not null and state <> 'quarantined' and not follow_up do nothing
    returning id, queue, priority, state, enqueued_at
),
-- part: enqueued
