-- limit: the slots of a queue, or of all, follow its limit. Those whose run is over are free (each end of a run
-- frees its own; this is for what was missed), free ones above the limit go, missing ones come.
-- Guard: the queue's row and the slots as they are when locked, locks never waited for. Double work of two of these
-- makes too few or too many slots for a moment, and of too many none is claimed. Index: shiftboss_slot_queue.
with settling as materialized (
    select q.name, coalesce(q.concurrency, 0) as size, q.sequential,
        (select count(*) from shiftboss_slot s where s.queue = q.name) as present
    from shiftboss_queue q
    where (%(queue)s::text is null or q.name = %(queue)s)
        and (q.concurrency is not null or exists (select from shiftboss_slot s where s.queue = q.name))
    order by q.name
    for no key update of q skip locked
),
-- Slots and runs change in one transaction, so that as of one moment a slot without its run is nobody's; a job that
-- waits for its next run keeps its slot in a sequential queue, but not one above the limit.
unheld as materialized (
    select s.id, s.job_id, s.fence
    from shiftboss_slot s
    join settling q on q.name = s.queue
    where not exists (
        select from shiftboss_job j
        where j.id = s.job_id and j.fence = s.fence
            and (j.state = 'running' or q.sequential and q.present <= q.size and j.state <> 'quarantined'))
),
-- Nobody's still, and not somebody else's by now.
idle as materialized (
    select s.id, s.queue, s.job_id
    from shiftboss_slot s
    join unheld u on u.id = s.id and u.job_id is not distinct from s.job_id and u.fence is not distinct from s.fence
    order by s.id
    for update of s skip locked
),
surplus as materialized (
    select i.id
    from (select id, queue, row_number() over (partition by queue order by id desc) as place from idle) i
    join settling q on q.name = i.queue and i.place <= q.present - q.size
),
gone as (
    delete from shiftboss_slot where id = any (array(select id from surplus))
),
freed as (
    update shiftboss_slot
    set job_id = null, fence = null
    where id = any (array(select id from idle where job_id is not null))
        and id <> all (array(select id from surplus))
    returning queue
),
added as (
    insert into shiftboss_slot (queue)
    select q.name from settling q cross join generate_series(1, q.size - q.present)
    returning queue
),
became_available as (
    select queue, 100 as priority from freed
    union all
    select queue, 100 from added
),
-- part: notified
select name, size > 0, (select count(*) from notified) from settling
