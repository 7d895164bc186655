    j.id, j.fence, j.queue, j.task, j.args::text, j.priority, j.due_at, j.failures, j.losses, j.suspect,
    j.revision_id, j.checkpoint::text
