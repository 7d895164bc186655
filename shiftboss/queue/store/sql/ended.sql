-- Which of these leases has this worker itself ended already, in whatever way? What the reaper wrote for it is
-- not its own word. Indexes: shiftboss_finished_id, shiftboss_attempt_job.
select o.id, o.fence
from unnest(%(ids)s::bigint[], %(fences)s::bigint[]) as o (id, fence)
cross join lateral (
    (
        select true
        from shiftboss_finished f
        where f.id = o.id and f.fence = o.fence and f.worker_id = %(worker_id)s
        limit 1
    )
    union all
    (
        select true
        from shiftboss_attempt a
        where a.job_id = o.id and a.fence = o.fence and a.worker_id = %(worker_id)s
            and (a.outcome <> 'lost' or a.error_code is distinct from 'lease_expired')
        limit 1
    )
    limit 1
) trace
