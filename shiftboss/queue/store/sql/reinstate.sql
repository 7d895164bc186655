-- reinstate: an operator lets quarantined jobs run again, with as many attempts as their tasks have.
-- Guard: quarantined, within the authority, its key held by no other live job; row locks never waited for.
-- Index: primary key.
with picked as materialized (
    select j.id
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
        and j.state = 'quarantined'
        and (%(reason)s::text is null or j.quarantine_reason = %(reason)s)
        and (j.key is null or not exists (
            select from shiftboss_job h
            where h.key = j.key and h.state <> 'quarantined' and not h.follow_up))
    order by j.id
    for no key update skip locked
),
reinstated as (
    update shiftboss_job j
    set state = 'available', due_at = clock_timestamp(), follow_up = false,
        quarantine_reason = null, quarantined_at = null,
        failure_limit = j.failures + coalesce((%(limits)s::jsonb -> j.task ->> 0)::integer, %(failure_limit)s),
        loss_limit = j.losses + coalesce((%(limits)s::jsonb -> j.task ->> 1)::integer, %(loss_limit)s)
    where j.id = any (array(select id from picked))
    returning j.id, j.queue, j.priority, j.event_seq
),
changed as (
    select id, event_seq, 'quarantined' as state_before, '{}'::jsonb as detail from reinstated
),
-- part: noted
,
became_available as (
    select queue, priority from reinstated
),
-- part: notified
select id, 'quarantined', 'available', (select count(*) from notified) from reinstated
