-- stage: the maintainer or a keeper makes due jobs available.
-- Guard: waiting and due; row locks never waited for. Index: shiftboss_job_due.
with due as materialized (
    select id
    from shiftboss_job
    -- By a stable function, so that the index ends the walk at what is not yet due.
    where state in ('scheduled', 'retryable') and not follow_up and due_at <= statement_timestamp()
    order by due_at, id
    limit %(limit)s
    for no key update skip locked
),
staged as (
    update shiftboss_job j
    set state = 'available'
    where j.id = any (array(select id from due))
    returning j.id, j.queue, j.priority
),
became_available as (
    select queue, priority from staged
),
-- part: notified
select id, (select count(*) from notified) from staged
