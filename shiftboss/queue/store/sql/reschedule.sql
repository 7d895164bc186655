-- reschedule: an operator sets when waiting jobs are due; available ones are staged again at that time.
-- Guard: waiting, within the authority; row locks never waited for. Index: primary key.
with picked as materialized (
    select j.id, j.state, j.due_at
    from shiftboss_job j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
        and j.state in ('scheduled', 'available', 'retryable')
    order by j.id
    for no key update skip locked
),
rescheduled as (
    update shiftboss_job j
    set due_at = %(due_at)s, state = case j.state when 'available' then 'scheduled' else j.state end
    from picked p
    where j.id = p.id
    returning j.id, j.state, j.event_seq, p.state as state_before, j.due_at, p.due_at as due_before
),
changed as (
    select id, event_seq, state_before,
        jsonb_build_object('due_at', due_at, 'due_before', due_before) as detail
    from rescheduled
),
-- part: noted
select id, state_before, state, null from rescheduled
