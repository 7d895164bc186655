-- limit: what runs already when its queue gets a limit takes a slot like any other, above the limit too.
-- Guard: running without a slot, in a limited queue; row locks never waited for. Index: shiftboss_job_running.
with adopted as materialized (
    select j.id, j.fence, j.queue
    from shiftboss_job j
    where j.state = 'running'
        and j.queue = any (array(select name from shiftboss_queue where concurrency is not null))
        and not exists (
            select from shiftboss_slot s where s.id = j.slot_id and s.job_id = j.id and s.fence = j.fence)
    order by j.id
    for no key update of j skip locked
),
taken as (
    insert into shiftboss_slot (queue, job_id, fence)
    select queue, id, fence from adopted
    returning id, job_id
)
update shiftboss_job j
set slot_id = t.id
from taken t
where j.id = any (array(select id from adopted)) and j.id = t.job_id
returning j.id
