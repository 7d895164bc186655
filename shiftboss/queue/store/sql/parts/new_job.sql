        queue, task, args, state, priority, due_at, deadline, enqueued_at, owner, tenant, key, watchers, tags, meta,
        failure_limit, loss_limit, revision_id
