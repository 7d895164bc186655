-- reap: the maintainer or a keeper takes jobs from leases that have expired; at the loss limit they are
-- quarantined. Guard: running and expired, by the row as locked; locks never waited for.
-- Index: shiftboss_job_running.
with expired as materialized (
    select id, fence, worker_id
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
    where j.id = any (array(select id from expired)) and j.id = e.id
    returning j.id, j.state, e.fence, e.worker_id, j.queue, j.task, j.started_at
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message)
    select id, fence, queue, task, worker_id, 'lost', started_at, statement_timestamp(), 'lease_expired',
        'the worker stopped renewing its lease'
    from reaped
)
select id, state, fence, worker_id from reaped
