-- edit: an operator runs a finished or quarantined job with other arguments, as a new job of its owner with no
-- watchers, by the same revision of its task's configuration. The job itself stays as it is.
-- Guard: finished or quarantined, within the authority; its key held by no live job (the unique index decides).
-- Indexes: shiftboss_finished_id, primary key.
with source as (
    select id, queue, task, priority, owner, tenant, key, tags, meta, revision_id
    from shiftboss_finished
    where id = %(id)s
-- part: scope
    union all
    select id, queue, task, priority, owner, tenant, key, tags, meta, revision_id
    from shiftboss_job
    where id = %(id)s and state = 'quarantined'
-- part: scope
),
enqueued as (
    insert into shiftboss_job (
        queue, task, args, state, priority, due_at, enqueued_at, owner, tenant, key, tags, meta, rerun_of,
        failure_limit, loss_limit, revision_id)
    select s.queue, s.task, %(args)s::jsonb, 'available', s.priority, statement_timestamp(), statement_timestamp(),
        s.owner, s.tenant, s.key, s.tags, s.meta, s.id,
        coalesce((%(limits)s::jsonb -> s.task ->> 0)::integer, %(failure_limit)s),
        coalesce((%(limits)s::jsonb -> s.task ->> 1)::integer, %(loss_limit)s),
        s.revision_id
    from source s
    limit 1
    on conflict (key) where key is not null and state <> 'quarantined' and not follow_up do nothing
    returning id, queue, priority, state, enqueued_at
),
became_available as (
    select queue, priority from enqueued
),
-- part: notified
select id, state, enqueued_at, (select count(*) from notified) from enqueued
