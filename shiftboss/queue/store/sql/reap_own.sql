-- reap: a keeper settles at once what its dead executor had in hand. A death while the job ran alone counts
-- as a loss, at the limit as poison; a death among several makes each a suspect that next runs alone.
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
    returning j.id, j.state, j.fence, j.queue, j.task, j.started_at, o.code, o.message, o.evidence
),
evidence as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message, evidence)
    select id, fence, queue, task, %(worker_id)s, 'lost', started_at, statement_timestamp(), code, message,
        evidence::jsonb
    from reaped
)
select id, fence from reaped
