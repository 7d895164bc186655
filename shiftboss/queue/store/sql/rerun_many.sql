-- rerun: an operator runs finished jobs once more, each as a new job of its owner with no watchers, by the same
-- revision of its task's configuration.
-- Guard: finished, within the authority; its key held by no live job (the unique index decides), nor by a rerun of
-- this statement.
-- Index: shiftboss_finished_id.
with enqueued as (
    insert into shiftboss_job (
        queue, task, args, state, priority, due_at, enqueued_at, owner, tenant, key, tags, meta, rerun_of,
        failure_limit, loss_limit, revision_id)
    select j.queue, j.task, j.args, 'available', j.priority, statement_timestamp(), statement_timestamp(),
        j.owner, j.tenant, j.key, j.tags, j.meta, j.id,
        coalesce((%(limits)s::jsonb -> j.task ->> 0)::integer, %(failure_limit)s),
        coalesce((%(limits)s::jsonb -> j.task ->> 1)::integer, %(loss_limit)s),
        j.revision_id
    from shiftboss_finished j
    where j.id = any (%(ids)s::bigint[])
-- part: scope
    order by j.id
    on conflict (key) where key is not null and state <> 'quarantined' and not follow_up do nothing
    returning id, rerun_of, queue, priority
),
became_available as (
    select queue, priority from enqueued
),
-- part: notified
select e.rerun_of, e.id, f.state, (select count(*) from notified)
from enqueued e
join lateral (select state from shiftboss_finished f where f.id = e.rerun_of limit 1) f on true
