-- snooze: a worker's handler asks to run again later; nothing is counted. Cancelled where that was asked for.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select *, null::text as code
    from unnest(
        %(ids)s::bigint[], %(fences)s::bigint[], %(seconds)s::double precision[], %(run_ms)s::integer[],
        %(evidence)s::text[])
        as o (id, fence, seconds, run_ms, evidence)
),
snoozed as (
    update shiftboss_job j
    set state = 'scheduled', due_at = clock_timestamp() + make_interval(secs => o.seconds),
        worker_id = null, lease_expires_at = null
    from outcome o
    where
-- part: guard
        and j.cancel_requested_at is null
    returning j.id, j.fence, j.slot_id, j.queue, j.task, j.started_at, j.checkpoint, o.run_ms, o.evidence
),
-- part: cancelled
,
rested as (
    select id from ended
),
-- part: moved
,
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, run_ms, evidence)
    select id, fence, queue, task, %(worker_id)s, 'snoozed', started_at, statement_timestamp(), run_ms,
-- part: evidence
    from snoozed
    union all
    select id, fence, queue, task, %(worker_id)s, 'cancelled', started_at, statement_timestamp(), run_ms,
-- part: evidence
    from ended
)
,
leaving as (
    select id, fence, slot_id from snoozed
    where slot_id is not null and queue <> all (array(select name from shiftboss_queue where sequential))
    union all
    select id, fence, slot_id from ended where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, fence, null, (select count(*) from woken) from snoozed
union all
select id, fence, (select count(*) from awaited), (select count(*) from woken) from moved
