-- heartbeat: a worker prolongs its leases; never waits for a row lock.
-- Guard: id, fence, worker, unexpired. Index: primary key.
with offered as materialized (
    select id, fence from unnest(%(ids)s::bigint[], %(fences)s::bigint[]) as o (id, fence)
),
held as materialized (
    select j.id
    from shiftboss_job j
    join offered o on j.id = o.id
    where j.fence = o.fence and j.worker_id = %(worker_id)s and j.lease_expires_at > clock_timestamp()
    order by j.id
    for no key update of j skip locked
),
renewed as (
    update shiftboss_job j
    set lease_expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
    from held
    where j.id = held.id
    returning j.id
)
select o.id,
    case
        when r.id is not null then 'renewed'
        -- Ours and unexpired, but locked by somebody: to be asked again.
        when exists (
            select from shiftboss_job j
            where j.id = o.id and j.fence = o.fence and j.worker_id = %(worker_id)s
                and j.lease_expires_at > clock_timestamp()) then 'busy'
        else 'lost'
    end
from offered o
left join renewed r on r.id = o.id
