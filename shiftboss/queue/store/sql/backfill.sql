-- backfill: the maintainer or a keeper enqueues the next items of a backfill, as many as there is room for.
-- Guard: not paused, no job yet, not cancelled, room. The backfill is held by a statement of its own before, so that this one
-- sees what the last one who held it has done. Index: shiftboss_backfill_item_next.
with next as materialized (
    select n.item, n.args, nextval(pg_get_serial_sequence('shiftboss_job', 'id')) as job_id
    from (
        select item, args
        from shiftboss_backfill_item
        where backfill_id = %(id)s and job_id is null and outcome is null
        order by item
        limit greatest(0, coalesce((
-- part: backfill_room
        ), 0))
    ) n
),
taken as (
    update shiftboss_backfill_item i
    set job_id = next.job_id
    from next
    -- By primary key, whatever the planner believes of the table.
    where i.backfill_id = %(id)s and i.item = any (array(select item from next)) and i.item = next.item
),
enqueued as (
    insert into shiftboss_job (
        id, queue, task, args, state, priority, due_at, enqueued_at, owner, meta, failure_limit, loss_limit, batch_id,
        revision_id)
    select next.job_id, b.queue, b.task, next.args, 'available', b.priority, statement_timestamp(),
        statement_timestamp(), b.owner, jsonb_build_object('backfill', b.name, 'item', next.item), b.failure_limit,
        b.loss_limit, b.id, b.revision_id
    from next, shiftboss_backfill b
    where b.id = %(id)s
    returning id, queue, priority
),
became_available as (
    select queue, priority from enqueued
),
-- part: notified
select id, (select count(*) from notified) from enqueued
