-- heartbeat: a worker prolongs its leases; never waits for a row lock.
-- Guard (parts/guard.sql): id, fence, worker, unexpired. Index: primary key.
with outcome as materialized (
    select id, fence from unnest(%(ids)s::bigint[], %(fences)s::bigint[]) as o (id, fence)
),
held as materialized (
    select j.id
    from shiftboss_job j, outcome o
    where
-- part: guard
    order by j.id
    for no key update of j skip locked
),
renewed as (
    update shiftboss_job j
    set lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
    where j.id = any (array(select id from held))
    returning j.id, j.fence, j.cancel_cause
)
select o.id, o.fence,
    case
        when r.id is not null then 'renewed'
        -- Ours and unexpired, but locked by somebody: to be asked again.
        when ours.yes then 'busy'
        else 'lost'
    end,
    r.cancel_cause
from outcome o
left join renewed r on r.id = o.id and r.fence = o.fence
left join lateral (
    select true as yes
    from shiftboss_job j
    where j.id = o.id and j.fence = o.fence and j.worker_id = %(worker_id)s
        and j.lease_expires_at > clock_timestamp()
    limit 1
) ours on true
