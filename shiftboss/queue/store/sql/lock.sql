-- lock: a worker locks the rows of its leases before it reports ends that a first offer did not settle. Never
-- waits: the answer is those that it still holds but somebody else has locked.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select id, fence from unnest(%(ids)s::bigint[], %(fences)s::bigint[]) as o (id, fence)
),
locked as materialized (
    select j.id
    from shiftboss_job j, outcome o
    where
-- part: guard
    order by j.id
    for update of j skip locked
)
select j.id, j.fence
from shiftboss_job j, outcome o
where
-- part: guard
    and j.id <> all (array(select id from locked))
