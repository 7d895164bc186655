-- reap: a keeper settles at once what its dead executor had in hand. A death while the job ran alone counts
-- as a loss, at the limit as poison; a death among several makes each a suspect that next runs alone. Cancelled
-- where that was asked for.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *
    from unnest(
        %(ids)s::bigint[], %(fences)s::bigint[], %(alone)s::boolean[], %(suspect)s::boolean[], %(codes)s::text[],
        %(messages)s::text[], %(evidence)s::text[])
        as o (id, fence, alone, suspect, code, message, evidence)
),
reaped as (
    update shiftboss_job j
    set state = case when o.alone and j.losses + 1 >= j.loss_limit then 'quarantined' else 'retryable' end,
        losses = j.losses + o.alone::integer,
        due_at = clock_timestamp(),
        quarantine_reason = case when o.alone and j.losses + 1 >= j.loss_limit then 'poison' end,
        quarantined_at = case when o.alone and j.losses + 1 >= j.loss_limit then clock_timestamp() end,
        suspect = o.suspect,
        worker_id = null, lease_expires_at = null,
        error_code = o.code, error_type = null, error_message = o.message, error_fingerprint = null
    from outcome o
    where
-- part: guard
        and j.cancel_requested_at is null
    returning j.id, j.state, j.fence, j.slot_id, j.queue, j.task, j.started_at, j.checkpoint, o.code, o.message,
        o.evidence
),
ended as (
    delete from shiftboss_job j
    using outcome o
    where
-- part: guard
        and j.cancel_requested_at is not null
    returning j.*, 'cancelled' as final_state, j.worker_id as final_worker, null::text as new_cause,
        null::text as result, null::integer as run_ms, o.code as new_code, null::text as new_type,
        o.message as new_message, null::text as new_fingerprint, o.evidence
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message, evidence)
    select id, fence, queue, task, %(worker_id)s, 'lost', started_at, statement_timestamp(), code, message,
-- part: evidence
    from (
        select id, fence, queue, task, started_at, code, message, evidence, checkpoint from reaped
        union all
        select id, fence, queue, task, started_at, new_code, new_message, evidence, checkpoint from ended
    ) lost
),
rested as (
    select id from reaped where state = 'quarantined'
    union all
    select id from ended
),
-- part: moved
,
leaving as (
    select id, fence, slot_id from reaped
    where slot_id is not null and (state = 'quarantined' or queue <> all (array(select name from shiftboss_queue where sequential)))
    union all
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, fence, (select count(*) from awaited), (select count(*) from woken) from reaped
union all
select id, fence, (select count(*) from awaited), (select count(*) from woken) from moved
