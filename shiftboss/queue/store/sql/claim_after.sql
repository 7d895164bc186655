-- claim: as claim.sql, past a low-water mark of one priority, so that the dead index entries below it are
-- not walked again. Index: shiftboss_job_claim.
with picked as materialized (
    select id
    from shiftboss_job
    where state = 'available' and queue = %(queue)s and task = any (%(tasks)s)
        and (deadline is null or deadline > clock_timestamp())
        and not exists (
            select from shiftboss_queue q
            where q.name = %(queue)s and (q.paused_at is not null or q.concurrency is not null))
        -- Whoever limits the queue waits for this claim, and nothing is claimed meanwhile (await_claims.sql).
        and (select pg_try_advisory_xact_lock_shared(hashtextextended('shiftboss_queue ' || %(queue)s::text, 0)))
        and priority = %(priority)s and (due_at, id) > (%(due_at)s, %(id)s)
    order by due_at, id
    limit %(limit)s
    for update skip locked
)
-- part: claimed
