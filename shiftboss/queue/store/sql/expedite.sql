-- expedite: an operator makes waiting jobs available before they are due.
-- Guard: scheduled or retryable, within the authority; the unique index lets no follow-up pass the holder of its
-- key; row locks never waited for. Index: primary key.
with picked as materialized (
    select j.id, j.state
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
        and j.state in ('scheduled', 'retryable')
    order by j.id
    for no key update skip locked
),
expedited as (
    update shiftboss_job j
    set state = 'available', due_at = least(j.due_at, clock_timestamp()), follow_up = false
    from picked p
    where j.id = p.id
    returning j.id, j.queue, j.priority, j.event_seq, p.state as state_before
),
changed as (
    select id, event_seq, state_before, '{}'::jsonb as detail from expedited
),
-- part: noted
,
became_available as (
    select queue, priority from expedited
),
-- part: notified
select id, state_before, 'available', (select count(*) from notified) from expedited
