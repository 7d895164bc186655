-- enqueue with on_conflict `replace`: the waiting holder of the key is superseded by the new job.
-- Its revision was noted by enqueue_keyed.sql, which came before.
-- Guard: the holder still waits (a job keeps its key and its owner, which holders.sql tells). Indexes: primary key, shiftboss_job_key.
with ended as (
    delete from shiftboss_job j
    where j.id = %(holder)s and j.state in ('scheduled', 'available', 'retryable')
    returning j.*, 'cancelled' as final_state, null::bigint as final_worker, 'superseded' as new_cause,
        null::text as result, null::integer as run_ms, null::text as new_code, null::text as new_type,
        null::text as new_message, null::text as new_fingerprint
),
rested as (
    select id from ended
),
-- part: moved
,
enqueued as (
    insert into shiftboss_job (
-- part: new_job
        , follow_up)
    select %(queue)s, %(task)s, %(args)s::jsonb,
        case when follow_up or %(due_at)s::timestamptz > statement_timestamp() then 'scheduled'
            else 'available' end,
        %(priority)s, coalesce(%(due_at)s::timestamptz, statement_timestamp()), %(deadline)s::timestamptz,
        statement_timestamp(), %(owner)s, %(tenant)s, %(key)s, %(watchers)s::text[], %(tags)s::text[],
        %(meta)s::jsonb, %(failure_limit)s, %(loss_limit)s, %(revision)s::bigint, follow_up
    from ended
    returning id, queue, priority, state, enqueued_at
),
leaving as (
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
became_available as (
    select queue, priority from enqueued where state = 'available'
    union all
    select queue, 100 from freed
),
-- part: notified
select id, state, enqueued_at, (select count(*) from notified), (select count(*) from awaited) from enqueued
