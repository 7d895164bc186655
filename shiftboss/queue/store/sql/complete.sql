-- complete: a worker's job is done; its row moves to the history.
-- Guard (parts/guard.sql): id, fence, worker, unexpired (a CHECK ties them to running). Index: primary key.
with outcome as materialized (
    select *
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(results)s::text[], %(run_ms)s::integer[])
        as o (id, fence, result, run_ms)
),
ended as (
    delete from shiftboss_job j
    using outcome o
    where
-- part: guard
    returning j.*, 'completed' as final_state, j.worker_id as final_worker, null::text as new_cause, o.result,
        o.run_ms, null::text as new_code, null::text as new_type, null::text as new_message,
        null::text as new_fingerprint
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
select id, fence, (select count(*) from awaited), (select count(*) from woken) from moved
