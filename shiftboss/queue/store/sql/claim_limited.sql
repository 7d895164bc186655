-- claim: as claim.sql from a queue with a limit, as many jobs as it has free slots.
-- Guard: limited, not sequential, not paused; no more slots than the limit says (after it was lowered there are,
-- until those above it are free and gone); the row locks, never waited for.
-- Indexes: shiftboss_slot_queue, shiftboss_job_claim.
with free as materialized (
    select id
    from shiftboss_slot
    where queue = %(queue)s and job_id is null
        and exists (
            select from shiftboss_queue q
            where q.name = %(queue)s and not q.sequential and q.paused_at is null
                and q.concurrency >= (select count(*) from shiftboss_slot s where s.queue = %(queue)s))
    order by id
    limit %(limit)s
    for update skip locked
),
picked as materialized (
    select id
    from shiftboss_job
    where state = 'available' and queue = %(queue)s and task = any (%(tasks)s)
        and (deadline is null or deadline > clock_timestamp())
    order by priority desc, due_at, id
    limit (select count(*) from free)
    for update skip locked
),
paired as materialized (
    select p.id, f.id as slot_id
    from (select id, row_number() over () as place from picked) p
    join (select id, row_number() over () as place from free) f on f.place = p.place
),
-- part: paired
