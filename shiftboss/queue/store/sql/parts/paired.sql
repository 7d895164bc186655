-- Each job with a slot of its own, in one statement: no run without a slot, no slot with two runs. `paired` holds
-- the ids of both, which are locked.
claimed as (
    update shiftboss_job j
    set
-- part: leased
    , slot_id = p.slot_id
    from paired p
    where j.id = any (array(select id from paired)) and j.id = p.id
    returning
-- part: claimed_columns
    , p.slot_id
),
taken as (
    update shiftboss_slot s
    set job_id = c.id, fence = c.fence
    from claimed c
    where s.id = any (array(select slot_id from paired)) and s.id = c.slot_id
)
select id, fence, queue, task, args, priority, due_at, failures, losses, suspect, revision_id, checkpoint
from claimed
