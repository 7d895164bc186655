-- A run that ends frees its slot, named by slot, job and fence: a late one frees nothing. `leaving` holds the jobs,
-- of a sequential queue only those that rest: any other keeps its slot, and so holds the line. Index: primary key.
freed as (
    update shiftboss_slot s
    set job_id = null, fence = null
    from leaving l
    where s.id = any (array(select slot_id from leaving))
        and s.id = l.slot_id and s.job_id = l.id and s.fence = l.fence
    returning s.queue
)
