-- reprioritise: an operator moves waiting jobs forward or back in their queues.
-- Guard: waiting, within the authority; row locks never waited for. Index: primary key.
with picked as materialized (
    select j.id, j.priority
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
        and j.state in ('scheduled', 'available', 'retryable')
    order by j.id
    for no key update skip locked
),
moved as (
    update shiftboss_job j
    set priority = %(priority)s
    from picked p
    where j.id = p.id
    returning j.id, j.state, j.queue, j.priority, j.event_seq, p.priority as priority_before
),
changed as (
    select id, event_seq, state as state_before,
        jsonb_build_object('priority', priority, 'priority_before', priority_before) as detail
    from moved
),
-- part: noted
,
became_available as (
    select queue, priority from moved where state = 'available'
),
-- part: notified
select id, state, state, (select count(*) from notified) from moved
