-- enqueue: as enqueue_keyed.sql for many jobs with keys, in key order, so that two of these never deadlock.
-- No row back for a job: its key is held. Guard: the unique index shiftboss_job_key.
with enqueued as (
    insert into shiftboss_job (
-- part: new_job
    )
    select n.queue, n.task, n.args::jsonb,
        case when n.due_at > statement_timestamp() then 'scheduled' else 'available' end,
        n.priority, coalesce(n.due_at, statement_timestamp()), n.deadline, statement_timestamp(), %(owner)s,
        n.tenant, n.key, array(select jsonb_array_elements_text(n.watchers::jsonb)),
        array(select jsonb_array_elements_text(n.tags::jsonb)), n.meta::jsonb, n.failure_limit, n.loss_limit,
        n.revision
    from unnest(
        %(queue)s::text[], %(task)s::text[], %(args)s::text[], %(priority)s::integer[], %(due_at)s::timestamptz[],
        %(deadline)s::timestamptz[], %(tenant)s::text[], %(key)s::text[], %(watchers)s::text[], %(tags)s::text[],
        %(meta)s::text[], %(failure_limit)s::integer[], %(loss_limit)s::integer[],
        %(revision)s::bigint[])
        with ordinality
        as n (queue, task, args, priority, due_at, deadline, tenant, key, watchers, tags, meta, failure_limit,
            loss_limit, revision, place)
    where not exists (
        select from shiftboss_job f where f.key = n.key and f.state <> 'quarantined' and f.follow_up)
    order by n.key collate "C", n.place
    on conflict (key) where key is not null and state <> 'quarantined' and not follow_up do nothing
    returning id, key, queue, priority, state, enqueued_at
),
became_available as (
    select queue, priority from enqueued where state = 'available'
),
-- part: notified
select id, state, enqueued_at, key, (select count(*) from notified) from enqueued
