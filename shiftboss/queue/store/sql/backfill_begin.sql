-- A client begins a backfill. Guard: its owner has none of this name (the unique constraint decides).
insert into shiftboss_backfill (
    name, owner, task, queue, priority, concurrency, failure_limit, loss_limit, revision_id)
values (
    %(name)s, %(owner)s, %(task)s, %(queue)s, %(priority)s, %(concurrency)s, %(failure_limit)s, %(loss_limit)s,
    %(revision_id)s)
on conflict (owner, name) do nothing
returning id, task
