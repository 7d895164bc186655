-- Rolls, the newest first: one, or all; with how far they are, and where the one that runs waits for a host whose
-- agent is silent, since when. Primary keys: a roll has as many steps as there are workers.
select r.id, r.pool, r.reason, r.asked_by, r.asked_at, r.code_wanted, r.state, r.why, r.silent, r.ended_at,
    s.steps::integer, s.done::integer, s.code_before, s.code_after,
    (
        select extract(epoch from clock_timestamp() - h.heartbeat_at)::double precision
        from shiftboss_roll_step n
        join shiftboss_host h on h.name = n.host
        where r.state = 'running' and n.roll_id = r.id and n.number = s.next
            and not (h.stopped_at is null
                and h.heartbeat_at > clock_timestamp() - make_interval(secs => h.lease_seconds))
    )
from (
    select *
    from shiftboss_roll
    where %(roll_id)s::bigint is null or id = %(roll_id)s::bigint
    order by id desc
    limit %(limit)s
) r
cross join lateral (
    select count(*) as steps, count(*) filter (where state = 'done') as done,
        min(number) filter (where state <> 'done') as next,
        array_agg(distinct code_before order by code_before) filter (where code_before is not null) as code_before,
        array_agg(distinct code_after order by code_after) filter (where code_after is not null) as code_after
    from shiftboss_roll_step
    where roll_id = r.id
) s
order by r.id desc
