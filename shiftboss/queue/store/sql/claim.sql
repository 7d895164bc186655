-- claim: a worker takes available jobs of one queue that it knows, from the bottom of the queue.
-- Guard: the row lock, taken on available rows only. Index: shiftboss_job_claim.
with picked as materialized (
    select id
    from shiftboss_job
    where state = 'available' and queue = %(queue)s and task = any (%(tasks)s)
    order by priority desc, due_at, id
    limit %(limit)s
    for update skip locked
)
-- part: claimed
