-- cancel: a person or the system ends jobs: waiting and held ones at once, of running ones the end is asked for
-- and their workers are told. A quarantined job is an operator's to cancel.
-- Guard: live, within the authority; row locks never waited for. Index: primary key.
with picked as materialized (
    select j.id, j.state
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: within
        and (j.state <> 'quarantined' or %(owner)s::text is null)
    order by j.id
    for no key update skip locked
),
requested as (
    update shiftboss_job j
    set cancel_cause = coalesce(j.cancel_cause, %(cause)s),
        cancel_requested_at = coalesce(j.cancel_requested_at, clock_timestamp())
    where j.id = any (array(select id from picked where state = 'running'))
    returning j.id, j.worker_id
),
-- Once a worker.
told as (
    select pg_notify('shiftboss_worker_' || worker_id, 'cancel') from (select distinct worker_id from requested) w
),
ended as (
    delete from shiftboss_job j
    where j.id = any (array(select id from picked where state <> 'running'))
    returning j.*, 'cancelled' as final_state, null::bigint as final_worker, %(cause)s::text as new_cause,
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
select id, 'running', 'running', (select count(*) from told), null from requested
union all
select id, state, final_state, (select count(*) from awaited), (select count(*) from woken) from ended
