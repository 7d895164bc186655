-- cancel: the maintainer ends jobs that still wait after their deadline.
-- Guard: waiting and past the deadline; row locks never waited for. Index: shiftboss_job_deadline.
with late as materialized (
    select id
    from shiftboss_job
    where state in ('scheduled', 'available', 'retryable') and deadline is not null
        and deadline <= statement_timestamp()
    order by id
    limit %(limit)s
    for no key update skip locked
),
ended as (
    delete from shiftboss_job j
    where j.id = any (array(select id from late))
    returning j.*, 'cancelled' as final_state, null::bigint as final_worker, 'deadline' as new_cause,
        null::text as result, null::integer as run_ms, null::text as new_code, null::text as new_type,
        null::text as new_message, null::text as new_fingerprint
),
rested as (
    select id from ended
),
-- part: moved
,
leaving as (
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, (select count(*) from awaited), (select count(*) from woken) from moved
