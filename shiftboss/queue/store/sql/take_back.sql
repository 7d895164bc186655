-- reap: the agent of a host takes jobs back that several deaths had in common, and nobody knows which of them is to
-- blame: it counts against none, and each comes back in `seconds` of its own, so that not all meet again.
-- Guard: the host's agent, whose lease runs, and the end of the worker is noted; a job runs under that worker's lease,
-- its end was not asked for, and its row's lock is never waited for. Indexes: primary keys.
with agent as (
    select a.name
    from shiftboss_host a
    join shiftboss_process p on p.host = a.name
    where a.name = %(host)s and a.fence = %(fence)s and a.stopped_at is null
        and a.heartbeat_at > clock_timestamp() - make_interval(secs => a.lease_seconds)
        and p.id = %(process_id)s and p.worker_id = %(worker_id)s and p.ending <> 'unknown'
    for share of a
),
returning_in as materialized (
    select * from unnest(%(ids)s::bigint[], %(seconds)s::double precision[]) as o (id, seconds)
),
picked as materialized (
    select j.id
    from shiftboss_job j
    where j.id = any (array(select id from returning_in)) and j.worker_id = %(worker_id)s
        and j.cancel_requested_at is null and exists (select from agent)
    order by j.id
    for no key update skip locked
),
reaped as (
    update shiftboss_job j
    set state = 'retryable', due_at = clock_timestamp() + make_interval(secs => o.seconds),
        worker_id = null, lease_expires_at = null,
        error_code = 'worker_died', error_type = null, error_message = %(message)s, error_fingerprint = null
    from returning_in o
    where j.id = any (array(select id from picked)) and j.id = o.id
    returning j.id, j.fence, j.slot_id, j.queue, j.task, j.started_at, j.checkpoint,
        jsonb_build_object('host', %(host)s::text)::text as evidence
),
lost as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message, evidence)
    select id, fence, queue, task, %(worker_id)s, 'lost', started_at, statement_timestamp(), 'worker_died', %(message)s,
-- part: evidence
    from reaped
),
leaving as (
    select id, fence, slot_id from reaped
    where slot_id is not null and queue <> all (array(select name from shiftboss_queue where sequential))
),
-- part: freed
,
-- part: woken
select id, (select count(*) from woken) from reaped
