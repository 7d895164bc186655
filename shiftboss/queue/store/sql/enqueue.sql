-- enqueue: a client puts one job into a queue, on its own connection and in its own transaction.
-- Due in the future → scheduled; otherwise available at once.
with
-- part: noted_revision
,
enqueued as (
    insert into shiftboss_job (
-- part: new_job
    )
    values (
-- part: new_job_values
    )
    returning id, queue, priority, state, enqueued_at
),
-- part: enqueued
