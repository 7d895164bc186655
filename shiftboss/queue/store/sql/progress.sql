-- progress: a worker's handlers say how far they are; the last word of each job counts.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key. The rows are locked (lock.sql).
with outcome as materialized (
    select * from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(data)s::text[]) as o (id, fence, data)
)
update shiftboss_job j
set progress = o.data::jsonb
from outcome o
where
-- part: guard
returning j.id, j.fence
