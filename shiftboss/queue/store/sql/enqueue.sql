-- enqueue: a client puts one job into a queue, on its own connection and in its own transaction.
-- Due in the future → scheduled; otherwise available at once.
with enqueued as (
    insert into shiftboss_job (
        queue, task, args, state, priority, due_at, enqueued_at, owner, meta, failure_limit, loss_limit)
    values (
        %(queue)s, %(task)s, %(args)s::jsonb,
        case when %(due_at)s::timestamptz > statement_timestamp() then 'scheduled' else 'available' end,
        %(priority)s, coalesce(%(due_at)s::timestamptz, statement_timestamp()), statement_timestamp(),
        %(owner)s, %(meta)s::jsonb, %(failure_limit)s, %(loss_limit)s)
    returning id, queue, priority, state, enqueued_at
),
became_available as (
    select queue, priority from enqueued where state = 'available'
),
-- part: notified
select id, state, enqueued_at, (select count(*) from notified) from enqueued
