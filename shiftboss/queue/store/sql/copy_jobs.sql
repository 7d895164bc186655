copy shiftboss_job (
    id, queue, task, args, state, priority, due_at, deadline, enqueued_at, owner, tenant, watchers, tags, meta,
    failure_limit, loss_limit, revision_id)
from stdin
