-- rerun: an operator runs a finished job once more, as a new job of its owner with no watchers; by the same
-- revision of its task's configuration, or by the one given.
-- Guard: finished, within the authority; its key held by no live job (the unique index decides).
-- Index: shiftboss_finished_id.
with
-- part: noted_revision
,
enqueued as (
    insert into shiftboss_job (
        queue, task, args, state, priority, due_at, enqueued_at, owner, tenant, key, tags, meta, rerun_of,
        failure_limit, loss_limit, revision_id)
    select j.queue, j.task, j.args, 'available', j.priority, statement_timestamp(), statement_timestamp(),
        j.owner, j.tenant, j.key, j.tags, j.meta, j.id,
        coalesce((%(limits)s::jsonb -> j.task ->> 0)::integer, %(failure_limit)s),
        coalesce((%(limits)s::jsonb -> j.task ->> 1)::integer, %(loss_limit)s),
        coalesce(%(revision)s::bigint, j.revision_id)
    from shiftboss_finished j
    where j.id = %(id)s
-- part: scope
    limit 1
    on conflict (key) where key is not null and state <> 'quarantined' and not follow_up do nothing
    returning id, queue, priority, state, enqueued_at
),
became_available as (
    select queue, priority from enqueued
),
-- part: notified
select id, state, enqueued_at, (select count(*) from notified) from enqueued
