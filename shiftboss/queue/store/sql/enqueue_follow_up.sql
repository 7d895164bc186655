-- enqueue: a follow-up of the job that runs under the key; it becomes available when that one has ended.
-- Its revision was noted by enqueue_keyed.sql, which came before.
-- Guard: the holder runs; the unique index shiftboss_job_follow_up. Index: shiftboss_job_key.
insert into shiftboss_job (
-- part: new_job
    , follow_up)
select %(queue)s, %(task)s, %(args)s::jsonb, 'scheduled', %(priority)s,
    coalesce(%(due_at)s::timestamptz, statement_timestamp()), %(deadline)s::timestamptz, statement_timestamp(),
    %(owner)s, %(tenant)s, %(key)s, %(watchers)s::text[], %(tags)s::text[], %(meta)s::jsonb, %(failure_limit)s,
    %(loss_limit)s, %(revision)s::bigint, true
where exists (
    select from shiftboss_job h
    where h.key = %(key)s and h.state <> 'quarantined' and not h.follow_up and h.state = 'running')
on conflict (key) where key is not null and state <> 'quarantined' and follow_up do nothing
returning id, state, enqueued_at, null
