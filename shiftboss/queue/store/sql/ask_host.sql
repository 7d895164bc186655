-- ask: a person asks something of a program, or of a pool, of a host.
-- Guard: the host has an agent that lives, and its last picture has the program, or a worker of the pool.
-- Index: primary key of the host. Why nothing was asked is in the rest of the row.
with host as (
    select name, stopped_at is null and heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds) as alive,
        case when %(pool)s::text is null
            then programs @> jsonb_build_array(jsonb_build_object('name', %(program)s::text))
            else programs @> jsonb_build_array(jsonb_build_object('pool', %(pool)s::text))
        end as knows
    from shiftboss_host
    where name = %(host)s
),
asked as (
    insert into shiftboss_command (host, verb, program, pool, count, asked_by, expires_at)
    select name, %(verb)s, %(program)s, %(pool)s, %(count)s, %(by)s,
        clock_timestamp() + make_interval(secs => %(seconds)s)
    from host
    where alive and knows
    returning id
)
select (select id from asked), exists (select from host), coalesce((select alive from host), false),
    coalesce((select knows from host), false)
