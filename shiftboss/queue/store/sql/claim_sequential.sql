-- claim: the one job that is next in a sequential queue: the holder of the slot, else the head of the line.
-- Guard: sequential, not paused; no more slots than one (as in claim_limited.sql); the slot free or held by this
-- very job, available, of a task that the worker knows; the row locks, never waited for.
-- Indexes: shiftboss_slot_queue, shiftboss_job_claim, primary key.
with line as materialized (
    select id, job_id
    from shiftboss_slot
    where queue = %(queue)s
        and exists (
            select from shiftboss_queue q
            where q.name = %(queue)s and q.sequential and q.paused_at is null
                and q.concurrency >= (select count(*) from shiftboss_slot s where s.queue = %(queue)s))
    for update skip locked
),
-- Chosen without a lock, of whatever task: a head that cannot be had now is waited for, never passed.
head as materialized (
    select l.id as slot_id, coalesce(l.job_id, (
            select j.id
            from shiftboss_job j
            where j.state = 'available' and j.queue = %(queue)s
                and (j.deadline is null or j.deadline > clock_timestamp())
            order by j.priority desc, j.due_at, j.id
            limit 1)) as id
    from line l
),
picked as materialized (
    select id
    from shiftboss_job
    where id = any (array(select id from head)) and state = 'available' and task = any (%(tasks)s)
        and (deadline is null or deadline > clock_timestamp())
    for update skip locked
),
paired as materialized (
    select p.id, h.slot_id from picked p join head h on h.id = p.id
),
-- part: paired
