-- Settled or lost: which of these outcomes of this worker does the record hold already?
-- The trace of a completion is the finished row with the same result, of any other end the attempt row.
-- Indexes: shiftboss_finished_id, shiftboss_attempt_job.
with outcome as materialized (
    -- A result that jsonb refuses is refused here too, where no row takes it any more: it is a failure.
    select id, fence, result::jsonb as result
    from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(results)s::text[]) as o (id, fence, result)
)
select o.id, o.fence
from outcome o
cross join lateral (
    (
        select true
        from shiftboss_finished f
        where f.id = o.id and f.fence = o.fence and f.worker_id = %(worker_id)s and f.state = %(outcome)s
            and f.result is not distinct from o.result
        limit 1
    )
    union all
    (
        select true
        from shiftboss_attempt a
        where a.job_id = o.id and a.fence = o.fence and a.worker_id = %(worker_id)s
            and (a.outcome = %(outcome)s
                or a.outcome = 'cancelled' and %(outcome)s in ('released', 'snoozed', 'discarded', 'quarantined'))
        limit 1
    )
    limit 1
) trace
