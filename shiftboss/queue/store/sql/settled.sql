-- Settled or lost: which of these outcomes of this worker does the record hold already?
-- The trace of a completion is the finished row, of any other end the attempt row; a completion whose result
-- could not be stored has become a failure.
-- Indexes: shiftboss_finished_id, shiftboss_attempt_job.
select o.id, o.fence
from unnest(%(ids)s::bigint[], %(fences)s::bigint[]) as o (id, fence)
cross join lateral (
    (
        select true
        from shiftboss_finished f
        where f.id = o.id and f.fence = o.fence and f.worker_id = %(worker_id)s and f.state = %(outcome)s
        limit 1
    )
    union all
    (
        select true
        from shiftboss_attempt a
        where a.job_id = o.id and a.fence = o.fence and a.worker_id = %(worker_id)s
            and (a.outcome = %(outcome)s
                or %(outcome)s = 'completed' and a.error_code = 'result_not_storable')
        limit 1
    )
    limit 1
) trace
