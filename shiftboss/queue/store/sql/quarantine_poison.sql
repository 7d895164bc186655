-- quarantine: the agent of a host holds back the job with which a program of it died again and again, and keeps why in
-- the place of a hold: the program is not held back for it, and its start is owed where supervisord has given it up.
-- Guard: the host's agent, whose lease runs, which has judged by the last hold of the program (`after`), and none is
-- open; nobody has claimed the job since that death (`of`): it runs under the lease of the worker that died, or waits;
-- its end was not asked for, and its row's lock is never waited for.
-- Indexes: primary keys, shiftboss_hold_program, shiftboss_hold_open.
with agent as (
    select name
    from shiftboss_host
    where name = %(host)s and fence = %(fence)s and stopped_at is null
        and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
        and not exists (
            select from shiftboss_hold h where h.host = %(host)s and h.program = %(program)s and h.id > %(after)s)
        and not exists (
            select from shiftboss_hold h
            where h.host = %(host)s and h.program = %(program)s and h.taken_up_at is null)
    for share
),
picked as materialized (
    select j.id, j.state, j.worker_id, j.started_at
    from shiftboss_job j
    where j.id = %(job_id)s and j.fence = %(of)s and j.cancel_requested_at is null
        and (j.state in ('scheduled', 'available', 'retryable')
            or (j.state = 'running' and j.worker_id = %(worker_id)s))
        and exists (select from agent)
    for no key update skip locked
),
held as (
    update shiftboss_job j
    set state = 'quarantined', quarantine_reason = 'poison', quarantined_at = clock_timestamp(),
        losses = j.losses + (p.state = 'running')::integer,
        worker_id = null, lease_expires_at = null,
        error_code = 'worker_died', error_type = null, error_message = %(message)s, error_fingerprint = null
    from picked p
    where j.id = p.id
    returning j.id, j.fence, j.slot_id, j.event_seq, j.queue, j.task, p.state as state_before,
        p.worker_id as worker_before, p.started_at, j.checkpoint, %(evidence)s::text as evidence
),
lost as (
    insert into shiftboss_attempt (
        job_id, fence, queue, task, worker_id, outcome, started_at, ended_at, error_code, error_message, evidence)
    select id, fence, queue, task, worker_before, 'lost', started_at, statement_timestamp(), 'worker_died', %(message)s,
-- part: evidence
    from held
    where state_before = 'running'
),
kept as (
    insert into shiftboss_hold (
        host, program, pool, step, until, evidence, fence, poison_job, released_at, released_as)
    select %(host)s, %(program)s, %(pool)s, 1, clock_timestamp(), evidence::jsonb, %(fence)s, id, clock_timestamp(),
        'poison'
    from held
),
rested as (
    select id from held
),
-- part: awaited
,
changed as (
    select id, event_seq, state_before, evidence::jsonb as detail from held
),
-- part: noted
,
leaving as (
    select id, fence, slot_id from held where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, (select count(*) from awaited), (select count(*) from woken) from held
