-- quarantine: an operator's reinstatement is undone: jobs are held back again that nobody has claimed since.
-- Guard: waiting, within the authority, and no attempt of it has ended since; row locks never waited for.
-- Indexes: primary key, shiftboss_attempt_job.
with picked as materialized (
    select j.id, j.state
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
        and j.state in ('scheduled', 'available', 'retryable')
        and not exists (
            select from shiftboss_attempt a where a.job_id = j.id and a.ended_at > %(since)s::timestamptz)
    order by j.id
    for no key update skip locked
),
held as (
    update shiftboss_job j
    set state = 'quarantined', quarantine_reason = %(reason)s, quarantined_at = clock_timestamp()
    from picked p
    where j.id = p.id
    returning j.id, j.fence, j.slot_id, j.event_seq, p.state as state_before
),
rested as (
    select id from held
),
-- part: awaited
,
changed as (
    select id, event_seq, state_before, '{}'::jsonb as detail from held
),
-- part: noted
,
leaving as (
    select id, fence, slot_id from held where slot_id is not null
),
-- part: freed
,
-- part: woken
select id, state_before, 'quarantined', (select count(*) from awaited), (select count(*) from woken) from held
