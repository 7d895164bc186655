-- begin: a rolling restart of the workers that run now, of a pool or of all, host after host.
-- Guard: no other roll runs (shiftboss_roll_running), and at least one such worker has an agent that lives.
-- Hosts that fell silent within the last day are named: their workers stay as they are.
-- Reads all hosts and their last pictures, and the workers of a day: few.
with known as materialized (
    select name, hostname, programs,
        stopped_at is null and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds) as alive
    from shiftboss_host
    where stopped_at is null and heartbeat_at > clock_timestamp() - interval '1 day'
),
upright as materialized (
    select k.name as host, k.alive, p.program ->> 'name' as program, p.program ->> 'pool' as pool,
        (p.program ->> 'launcher')::integer as launcher, w.code_version
    from known k
    cross join lateral jsonb_array_elements(k.programs) as p (program)
    left join lateral (
        select code_version
        from shiftboss_worker
        where host = k.hostname and pid = (p.program ->> 'pid')::integer and state <> 'stopped'
        order by id desc
        limit 1
    ) w on true
    where p.program ->> 'pool' is not null and p.program ->> 'launcher' is not null
        and (%(pool)s::text is null or p.program ->> 'pool' = %(pool)s::text)
),
begun as (
    insert into shiftboss_roll (pool, reason, asked_by, code_wanted, silent)
    select %(pool)s, %(reason)s, %(by)s, %(code_wanted)s,
        array(select distinct host from upright where not alive order by host)
    where exists (select from upright where alive)
    on conflict do nothing
    returning id
),
steps as (
    insert into shiftboss_roll_step (roll_id, number, host, program, pool, launcher, code_before)
    select begun.id, row_number() over (order by u.pool, u.host, length(u.program), u.program), u.host, u.program,
        u.pool, u.launcher, u.code_version
    from begun, upright u
    where u.alive
    returning number
)
select (select id from begun), (select count(*) from steps)::integer,
    (select id from shiftboss_roll where state = 'running'),
    array(select distinct host from upright where not alive order by host)
