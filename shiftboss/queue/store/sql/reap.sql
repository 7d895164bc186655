-- reap: the maintainer or a keeper takes jobs from leases that have expired; at the loss limit they are
-- quarantined, and cancelled where that was asked for.
-- Guard: running and expired, by the row as locked; locks never waited for. Index: shiftboss_job_running.
with expired as materialized (
    select id, fence, worker_id, cancel_requested_at
    from shiftboss_job
    where state = 'running' and lease_expires_at <= clock_timestamp()
    order by id
    limit %(limit)s
    for no key update skip locked
),
reaped as (
    update shiftboss_job j
    set state = case when j.losses + 1 >= j.loss_limit then 'quarantined' else 'retryable' end,
        losses = j.losses + 1,
        due_at = clock_timestamp(),
        quarantine_reason = case when j.losses + 1 >= j.loss_limit then 'losses_exhausted' end,
        quarantined_at = case when j.losses + 1 >= j.loss_limit then clock_timestamp() end,
        worker_id = null, lease_expires_at = null,
        error_code = 'lease_expired', error_type = null, error_fingerprint = null,
        error_message = 'the worker stopped renewing its lease'
    from expired e
    where j.id = any (array(select id from expired where cancel_requested_at is null)) and j.id = e.id
    returning j.id, j.state, e.fence, j.slot_id, e.worker_id, j.queue, j.task, j.started_at,
        j.checkpoint
),
ended as (
    delete from shiftboss_job j
    where j.id = any (array(select id from expired where cancel_requested_at is not null))
    returning j.*, 'cancelled' as final_state, null::bigint as final_worker, null::text as new_cause,
        null::text as result, null::integer as run_ms, 'lease_expired' as new_code, null::text as new_type,
        'the worker stopped renewing its lease' as new_message, null::text as new_fingerprint
),
rested as (
    select id from reaped where state = 'quarantined'
    union all
    select id from ended
),
-- part: moved
,
taken as (
    select id, state, fence, worker_id, queue, task, started_at, checkpoint, (
        select jsonb_build_object('host', w.host) from shiftboss_worker w where w.id = reaped.worker_id) as evidence
    from reaped
    union all
    select id, final_state, fence, worker_id, queue, task, started_at, checkpoint, (
        select jsonb_build_object('host', w.host) from shiftboss_worker w where w.id = ended.worker_id)
    from ended
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message, evidence)
    select id, fence, queue, task, worker_id, 'lost', started_at, statement_timestamp(), 'lease_expired',
        'the worker stopped renewing its lease',
-- part: evidence
    from taken
)
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
select id, state, fence, worker_id, (select count(*) from awaited), (select count(*) from woken) from taken
